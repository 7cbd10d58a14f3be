"""Requests to the brokers, without brokers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException

from pyconnect_clients.brokers.requests import EARLIEST
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics import cluster_view
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicSnapshot, TopicsSnapshot


class Electing:
    """An AdminClient whose brokers have no leader for a number of requests."""

    def __init__(self, refusals: int, code: int) -> None:
        self._refusals, self._code = refusals, code

    def __call__(self, _settings: Mapping[str, object]) -> Electing:
        return self

    def list_offsets(self, wanted: Mapping[Any, object], **_options: object) -> dict[Any, Any]:
        self._refusals -= 1
        futures = {}
        for where in wanted:
            future: Future[object] = Future()
            if self._refusals >= 0:
                future.set_exception(KafkaException(KafkaError(self._code)))
            else:
                future.set_result(SimpleNamespace(offset=7))
            futures[where] = future
        return futures


def answered(result: object) -> Future[object]:
    future: Future[object] = Future()
    future.set_result(result)
    return future


class Growing:
    """An AdminClient whose topic gets three records between two requests for its offsets."""

    def __init__(self, uncommitted: int) -> None:
        self._end, self._uncommitted = 100, uncommitted

    def __call__(self, _settings: Mapping[str, object]) -> Growing:
        return self

    def describe_topics(self, _names: object, **_options: object) -> dict[str, Any]:
        topic = SimpleNamespace(topic_id="x", partitions=[SimpleNamespace(id=0)])
        return {"t": answered(topic)}

    def list_offsets(self, wanted: Mapping[Any, Any], **options: Any) -> dict[Any, Any]:
        [(where, at)] = wanted.items()
        if at is EARLIEST:
            return {where: answered(SimpleNamespace(offset=0))}
        self._end += 3
        committed = options.get("isolation_level") is IsolationLevel.READ_COMMITTED
        end = 100 - self._uncommitted if committed and self._uncommitted else self._end
        return {where: answered(SimpleNamespace(offset=end))}

    def describe_configs(self, resources: list[Any], **_options: object) -> dict[Any, Any]:
        return {
            each: answered({"cleanup.policy": SimpleNamespace(value="delete")})
            for each in resources
        }

    def list_topics(self, **_options: object) -> SimpleNamespace:
        return SimpleNamespace(cluster_id="c")


@pytest.mark.parametrize(("uncommitted", "tail"), [(0, 0), (10, 13)])
def test_what_is_written_meanwhile_is_no_open_transaction(
    monkeypatch: pytest.MonkeyPatch, uncommitted: int, tail: int
) -> None:
    """Records that are written between the requests for both ends are no open transaction."""
    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Growing(uncommitted))
    monkeypatch.setattr(ClusterView, "_open_producers", lambda *_: {})
    taken = ClusterView(Cluster(bootstrap="b:9092")).snapshot(["t"])
    [part] = taken.partitions
    assert (part.open_tail, part.end) == (tail, 103 - tail)


def snapshot() -> TopicsSnapshot:
    part = PartitionRange(
        topic="t", partition=0, start=0, end=9, earliest=0, last_stable=9, high_watermark=9
    )
    topic = TopicSnapshot(topic="t", topic_id="x", cleanup_policy="delete", partitions=(part,))
    return TopicsSnapshot(cluster_id="c", taken_ms=0, topics=(topic,))


@pytest.mark.parametrize(
    "code", [KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE]
)
def test_an_election_is_waited_for(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A request is sent again while a new topic has no leader."""
    monkeypatch.setattr(cluster_view, "POLL_S", 0.0)
    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Electing(2, code))
    view = ClusterView(Cluster(bootstrap="b:9092"))
    assert view.offsets_at(snapshot(), 1) == {"t": {0: 7}}


def test_other_refusals_and_long_elections_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other errors, and a long election, end the run with brokers and error in the message."""
    monkeypatch.setattr(cluster_view, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(cluster_view, "POLL_S", 0.0)
    for code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.NOT_LEADER_FOR_PARTITION):
        monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Electing(10**9, code))
        with pytest.raises(ReconcileError, match="Kafka at b:9092: list offsets"):
            ClusterView(Cluster(bootstrap="b:9092")).offsets_at(snapshot(), 1)
