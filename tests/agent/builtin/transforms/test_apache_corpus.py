"""Our transformations and predicates compared with Apache's, by a recorded corpus.

The record is what tests/java/transforms/TransformCorpus.java prints for seed 11 and 10 cases;
tests/java/transforms runs that program with many more.
"""

import re
from dataclasses import replace
from pathlib import Path

from pyconnect_api import ConnectRecord
from tests.agent.builtin.transforms import transform_corpus
from tests.agent.builtin.transforms.transform_corpus import Failed
from tests.agent.builtin.transforms.transform_deviations import unexplained

LINES = (Path(__file__).parent / "apache-corpus.jsonl").read_text(encoding="ascii").splitlines()
JAVA_VERSION = transform_corpus.java_version(LINES)
# What a year of two digits means depends on the day on which it is read.
CASES = [
    case
    for case in transform_corpus.cases(LINES)
    if case.name != "TimestampConverter"
    or not re.search(r"(?<!y)yy?(?!y)|(?<!Y)YY?(?!Y)", case.options.get("format", ""))
]


def test_transformations_differ_from_apaches_by_known_rules_only() -> None:
    """Each case of the record, which covers all classes, has Apache's outcome or a known reason."""
    differences = [text for case in CASES if (text := unexplained(case, JAVA_VERSION))]
    assert not differences, "\n".join(differences[:5])
    covered = {case.name for case in CASES if not isinstance(case.outcome, Failed)}
    known = {name.rpartition(".")[2].partition("$")[0] for name in transform_corpus.CLASSES}
    assert covered == known


def test_the_comparison_notices_a_changed_record() -> None:
    """The comparison reports a case whose outcome is not ours."""
    case = next(case for case in CASES if isinstance(case.outcome, ConnectRecord))
    assert isinstance(case.outcome, ConnectRecord)
    outcome = case.outcome
    changed = outcome.new_record(
        f"{outcome.topic}-x",
        outcome.kafka_partition,
        outcome.key_schema,
        outcome.key,
        outcome.value_schema,
        outcome.value,
        outcome.timestamp,
    )
    assert unexplained(replace(case, outcome=changed), JAVA_VERSION)


def test_the_comparison_notices_another_refusal() -> None:
    """The comparison reports a case that Apache refuses with another text."""
    case = next(case for case in CASES if isinstance(case.outcome, Failed))
    java_class = "org.apache.kafka.connect.errors.DataException"
    other = Failed(java_class=java_class, message="something else", stage="apply")
    assert unexplained(replace(case, outcome=other), JAVA_VERSION)
