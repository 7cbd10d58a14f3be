"""One record that is repeated very often hides no other: each finding leads to its records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict, grouped
from tests.support.recorded_audits import LEFT, RIGHT, Given, RecordedAudit, topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HOT, TWICE = 30_000, 100
PLACES = 10


@pytest.fixture
def audit(spark: SparkSession, tmp_path: Path) -> RecordedAudit:
    return RecordedAudit(spark, tmp_path)


def records() -> list[Given]:
    """One identity 30,000 times, and a hundred others twice, between its copies."""
    hot = [Given(b"hot", b"hot") for _ in range(HOT)]
    others = [Given(b"v%d" % n, b"k%d" % n) for n in range(TWICE) for _ in range(2)]
    return [*hot[: HOT // 2], *others, *hot[HOT // 2 :]]


def test_each_repeated_identity_has_a_key_and_places(audit: RecordedAudit) -> None:
    """The first ten places of the hot record, and both of each other one."""
    answer = audit.run("duplicates", {LEFT: records()}, topics=[LEFT])
    found = answer.of("duplicate")
    assert (answer.verdict, len(found)) == (Verdict.DIFFER, TWICE + 1)
    assert {each.key for each in found} == {"hot", *(f"k{n}" for n in range(TWICE))}
    assert {each.key: each.count for each in found if each.count > 2} == {"hot": HOT}
    places = {each.key: [copy.offset for copy in each.copies] for each in found}
    assert places.pop("hot") == list(range(PLACES))
    begin = HOT // 2
    assert places == {f"k{n}": [begin + 2 * n, begin + 2 * n + 1] for n in range(TWICE)}
    assert len(grouped(found)) == len(found)


def test_each_missing_row_has_places_beside_a_hot_one(audit: RecordedAudit) -> None:
    """In a compare, whose second side lacks all of them."""
    topics = {LEFT: records(), RIGHT: [Given(b"else", b"else")]}
    answer = audit.run(
        "topic-topic", topics, left=topic(LEFT, "bytes"), right=topic(RIGHT, "bytes")
    )
    found = answer.of("missing")
    assert sorted(each.count for each in found) == [2] * TWICE + [HOT]
    assert all(len(each.copies) == min(each.count, PLACES) for each in found)
    assert all(copy.key for each in found for copy in each.copies)
