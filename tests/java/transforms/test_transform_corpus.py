"""Our transformations do what Apache's do, compared with the real ones running in Java."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.agent.builtin.transforms import transform_corpus
from tests.agent.builtin.transforms.transform_deviations import RULES, described, reasons
from tests.java.java_programs import printed
from tests.support.seeds import chosen

pytestmark = [pytest.mark.java, pytest.mark.long, pytest.mark.timeout(600)]

PROGRAM = Path(__file__).parent / "TransformCorpus.java"
CASES = 1000
# The default seed reaches every rule: both tests share the same cases.
SEEDS = chosen((4,), long=(1, 2, 3, 5))


@dataclass(frozen=True, slots=True)
class Judged:
    """What the cases of all seeds show: differences without a rule, rules without a case."""

    cases: int
    differences: list[str]
    unused: set[str]
    java_version: int


@pytest.fixture(scope="module")
def judged(kafka_runtime: KafkaRuntime) -> Judged:
    count, differences, used, version = 0, [], set[str](), 0
    for seed in SEEDS:
        lines = printed(kafka_runtime, PROGRAM, seed, CASES)
        version = transform_corpus.java_version(lines)
        for case in transform_corpus.cases(lines):
            count += 1
            found = reasons(case, version)
            if found is not None and not found:
                differences.append(described(case))
            used |= found or set()
    unused = {rule.__name__ for rule in RULES} - used
    return Judged(count, differences, unused, version)


def test_transformations_differ_from_apaches_by_known_rules_only(judged: Judged) -> None:
    """Thousands of random records give the same record, or are refused in the same words."""
    assert judged.cases > len(SEEDS) * 20 * CASES
    assert not judged.differences, "\n".join(judged.differences[:5])


def test_every_deviation_still_exists(judged: Judged) -> None:
    """A rule that no case needs any more hides future mistakes."""
    assert judged.unused == ({"_more_float_digits"} if judged.java_version >= 19 else set())
