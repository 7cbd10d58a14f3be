"""Our transformations do what Apache's do, compared with the real ones running in Java."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support import transform_corpus
from tests.support.java_programs import printed
from tests.support.transform_deviations import RULES, unexplained

pytestmark = pytest.mark.java

PROGRAM = Path(__file__).parent / "TransformCorpus.java"
CASES = 1000


def corpus(runtime: KafkaRuntime, seed: int) -> list[str]:
    """Run the program that prints what Apache's transformations do."""
    return printed(runtime, PROGRAM, seed, CASES)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_transformations_differ_from_apaches_by_known_rules_only(
    kafka_runtime: KafkaRuntime, seed: int
) -> None:
    """Thousands of random records give the same record, or are refused in the same words."""
    lines = corpus(kafka_runtime, seed)
    version = transform_corpus.java_version(lines)
    cases = list(transform_corpus.cases(lines))
    assert len(cases) > 20 * CASES
    differences = [text for case in cases if (text := unexplained(case, version))]
    assert not differences, "\n".join(differences[:5])


def test_every_deviation_still_exists(kafka_runtime: KafkaRuntime) -> None:
    """A rule that no case needs any more hides future mistakes."""
    lines = corpus(kafka_runtime, 4) + corpus(kafka_runtime, 5)[1:]
    version = transform_corpus.java_version(lines)
    unused = set(RULES)
    for case in transform_corpus.cases(lines):
        ours = case.ours()
        if transform_corpus.outcome_text(ours) != transform_corpus.outcome_text(case.outcome):
            unused -= {rule for rule in unused if rule(case, ours, version)}
    unused_names = {rule.__name__ for rule in unused}
    expected = {"_more_float_digits"} if version >= 19 else set()
    assert unused_names == expected
