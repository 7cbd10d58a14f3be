"""The part of a capture that does not need Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_reconcile.capture import _replayed, copies_rows
from pyconnect_reconcile.data_sides import TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics.snapshot import TopicSnapshot, TopicsSnapshot

CLUSTERS = {"main": {"bootstrap": "b:9092"}}
TOPIC = {"kind": "topic", "topics": ["t"], "value": "bytes"}


@pytest.mark.parametrize(
    ("other", "copies"),
    [
        ({"kind": "table", "url": "jdbc:sqlite:/a.db", "table": "t"}, True),
        ({"kind": "files", "paths": ["/a.txt"], "format": "text"}, False),
        (TOPIC, False),
    ],
)
def test_a_table_is_copied_first(other: dict[str, object], copies: bool) -> None:
    """Topics are only looked at, and files are checked: both fail at once."""
    spec = {"job": "topic-sink", "clusters": CLUSTERS, "left": TOPIC, "right": other}
    assert copies_rows(read_spec(spec)) is copies


def test_saved_ranges_are_those_of_the_same_cluster(tmp_path: Path) -> None:
    """A restored cluster may have the ids of the topics, and other records."""
    topic = TopicSnapshot(topic="t", topic_id="i", cleanup_policy="delete", partitions=())
    now = TopicsSnapshot(cluster_id="c", taken_ms=1, topics=(topic,))
    saved = tmp_path / "ranges.json"
    saved.write_text(json.dumps(now.to_json()))
    assert _replayed(str(saved), now) == now
    with pytest.raises(ReconcileError, match="from Kafka cluster c, but this cluster is d"):
        _replayed(str(saved), replace(now, cluster_id="d"))


def test_jobs_without_sides_copy_nothing() -> None:
    """Their topics are looked at."""
    assert not copies_rows(read_spec({"job": "ranges", "clusters": CLUSTERS, "topics": ["t"]}))


@pytest.mark.parametrize(
    "other",
    [
        {"properties": "/of-another-user.properties"},
        {"options": {"currentSchema": "b"}},
        {"offsets": {"table": "o", "connector": "c"}},
    ],
)
def test_tables_of_one_name_have_places_of_their_own(other: dict[str, object]) -> None:
    """A user's or a session's search path may lead one name to two tables."""
    side = {"kind": "table", "url": "jdbc:postgresql://h/d", "table": "t"}
    tiers = [
        {"name": name, "side": each, "event_time": "column:at"}
        for name, each in (("one", side), ("two", {**side, **other}), ("same", side))
    ]
    spec = read_spec({"job": "completeness", "clusters": CLUSTERS, "tiers": tiers})
    one, two, same = (tier.side for tier in spec.tiers)
    assert isinstance(one, TableSide)
    assert isinstance(two, TableSide)
    assert isinstance(same, TableSide)
    assert one.place == same.place != two.place
