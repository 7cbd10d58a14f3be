"""Our converters do what Apache's do, compared with the real ones running in Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support import converter_corpus
from tests.support.converter_deviations import RULES, unexplained
from tests.support.java_programs import printed

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "ConverterCorpus.java"
CASES = 1000


def corpus(runtime: KafkaRuntime, seed: int) -> list[str]:
    """Run the program that prints what Apache's converters do."""
    return printed(runtime, PROGRAM, seed, CASES)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_converters_differ_from_apaches_by_known_rules_only(
    kafka_runtime: KafkaRuntime, seed: int
) -> None:
    """Thousands of random and hand-made inputs give the same bytes, value or refusal."""
    lines = corpus(kafka_runtime, seed)
    version = converter_corpus.java_version(lines)
    cases = list(converter_corpus.cases(lines))
    assert len(cases) > 10 * CASES
    differences = [text for case in cases if (text := unexplained(case, version))]
    assert not differences, "\n".join(differences[:10])


def test_every_deviation_still_exists(kafka_runtime: KafkaRuntime) -> None:
    """A rule that no case needs any more hides future mistakes."""
    lines = corpus(kafka_runtime, 4)
    version = converter_corpus.java_version(lines)
    unused = set(RULES)
    for case in converter_corpus.cases(lines):
        ours = case.ours()
        if converter_corpus.text_of(ours) != converter_corpus.text_of(case.outcome):
            unused -= {rule for rule in unused if rule(case, ours, version)}
    unused_names = {rule.__name__ for rule in unused}
    expected = {"_more_float_digits"} if version >= 19 else set()
    assert unused_names == expected
