"""Our converters do what Apache's do, compared with the real ones running in Java."""

from pathlib import Path

import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.agent.builtin.converters import converter_corpus, converter_deviations
from tests.java.corpora import CASES, Judged, judge
from tests.support.seeds import chosen

pytestmark = [pytest.mark.java, pytest.mark.long(only=True), pytest.mark.timeout(900)]

PROGRAM = Path(__file__).parent / "ConverterCorpus.java"
# The default seeds reach every rule: both tests share the same cases.
SEEDS = chosen((1,), long=(2, 3))


@pytest.fixture(scope="module")
def judged(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    return judge(
        kafka_runtime,
        PROGRAM,
        SEEDS,
        tmp_path_factory.mktemp("program"),
        corpus=converter_corpus,
        deviations=converter_deviations,
    )


def test_converters_differ_from_apaches_by_known_rules_only(judged: Judged) -> None:
    """Thousands of random and hand-made inputs give the same bytes, value or refusal."""
    assert judged.cases > len(SEEDS) * 10 * CASES
    assert not judged.differences, "\n".join(judged.differences[:5])


def test_every_deviation_still_exists(judged: Judged) -> None:
    """A rule that no case needs any more hides future mistakes."""
    assert judged.unused == ({"_more_float_digits"} if judged.java_version >= 19 else set())
