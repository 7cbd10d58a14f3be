"""ranges: the earlier report with which a run is compared."""

import json
from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.job_runs import previous_snapshot
from pyconnect_reconcile.spec import Spec, read_spec
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot


def taken(cluster_id: str, taken_ms: int) -> TopicsSnapshot:
    return TopicsSnapshot(cluster_id=cluster_id, taken_ms=taken_ms, topics=())


def report(directory: Path, target: str, snapshot: TopicsSnapshot) -> str:
    path = directory / f"{target}-{snapshot.cluster_id}-{snapshot.taken_ms}.json"
    path.write_text(json.dumps({"target": target, "snapshot": snapshot.to_json()}))
    return str(path)


def spec(**members: object) -> Spec:
    clusters = {"main": {"bootstrap": "b:9092"}}
    asked = {"job": "ranges", "target": "a-b", "topics": ["a-b"], "clusters": clusters}
    return read_spec({"version": 1} | asked | members)


def test_the_last_report_is_one_of_the_same_cluster_and_target(tmp_path: Path) -> None:
    """Reports of another cluster or target are skipped, because their topics have other ids."""
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    earlier = [
        str(damaged),
        report(tmp_path, "a-b", taken("other", 4)),
        report(tmp_path, "a_b", taken("here", 3)),
        report(tmp_path, "a-b", taken("here", 2)),
        report(tmp_path, "a-b", taken("here", 1)),
    ]
    assert previous_snapshot(spec(earlier=earlier), taken("here", 9)) == taken("here", 2)
    assert previous_snapshot(spec(earlier=earlier), taken("third", 9)) is None


def test_a_report_of_another_cluster_is_refused_when_it_is_named(tmp_path: Path) -> None:
    """A named report of another cluster is refused, because its topic ids mean nothing here."""
    previous = report(tmp_path, "a-b", taken("other", 1))
    with pytest.raises(
        ReconcileError, match="is from Kafka cluster other, but this cluster is here"
    ):
        previous_snapshot(spec(previous=previous), taken("here", 9))
