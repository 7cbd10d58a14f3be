"""Our transformations do what Apache's do, compared with the real ones running in Java."""

from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_agent.core.apache_release import RELEASES
from pyconnect_sandbox.jars import fetched
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.agent.builtin.transforms import transform_corpus, transform_deviations
from tests.java.corpora import CASES, Judged, judge
from tests.support.seeds import chosen

pytestmark = [pytest.mark.java, pytest.mark.long(only=True), pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parent / "TransformCorpus.java"
# The default seed reaches every rule: both tests share the same cases.
SEEDS = chosen((4,), long=(1, 2, 3, 5))


@pytest.fixture(scope="module", params=chosen(RELEASES[:1], long=RELEASES[1:]))
def judged(
    request: pytest.FixtureRequest,
    kafka_runtime: KafkaRuntime,
    tmp_path_factory: pytest.TempPathFactory,
) -> Judged:
    return judge(
        replace(kafka_runtime, libs=fetched(request.param)),
        PROGRAM,
        SEEDS,
        tmp_path_factory.mktemp("program"),
        corpus=transform_corpus,
        deviations=transform_deviations,
    )


def test_transformations_differ_from_apaches_by_known_rules_only(judged: Judged) -> None:
    """Thousands of random records give the same record, or are refused in the same words."""
    assert judged.cases > len(SEEDS) * 20 * CASES
    assert not judged.differences, "\n".join(judged.differences[:5])


def test_every_deviation_still_exists(judged: Judged) -> None:
    """A rule that no case needs any more hides future mistakes."""
    # Java 19 and newer write floats with the fewest digits, and not each seed has one with more.
    assert judged.unused <= {"_more_float_digits"}
