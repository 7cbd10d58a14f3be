"""Our converters compared with Apache's, by a recorded corpus.

The record is every second line that tests/java/converters/ConverterCorpus.java prints for seed 11
and 16 cases; tests/java/converters runs that program with many more.
"""

from pathlib import Path

from tests.agent.builtin.converters import converter_corpus
from tests.agent.builtin.converters.converter_corpus import Case, Failed
from tests.agent.builtin.converters.converter_deviations import unexplained

LINES = (Path(__file__).parent / "apache-corpus.jsonl").read_text(encoding="ascii").splitlines()
JAVA_VERSION = converter_corpus.java_version(LINES)
CASES = list(converter_corpus.cases(LINES))


def test_converters_differ_from_apaches_by_known_rules_only() -> None:
    """Each case of the record, which covers all converters, has Apache's outcome or a reason."""
    differences = [text for case in CASES if (text := unexplained(case, JAVA_VERSION))]
    assert not differences, "\n".join(differences[:10])
    covered = {
        (case.java_class, case.kind) for case in CASES if not isinstance(case.outcome, Failed)
    }
    expected = {(name, kind) for name in converter_corpus.CONVERTERS for kind in ("read", "write")}
    assert covered == expected


def test_the_comparison_notices_a_changed_byte() -> None:
    """The comparison reports a case whose outcome is not ours."""
    case = next(
        case
        for case in CASES
        if case.kind == "write" and isinstance(case.outcome, bytes) and case.outcome
    )
    changed = Case(
        kind=case.kind,
        java_class=case.java_class,
        options=case.options,
        given=case.given,
        outcome=case.outcome + b"x",
    )
    assert unexplained(changed, JAVA_VERSION)
