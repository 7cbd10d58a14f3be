"""Requests to the brokers, without brokers."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import KafkaError, KafkaException

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics import cluster_view
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicSnapshot, TopicsSnapshot


class Electing:
    """An AdminClient whose brokers have no leader for so many requests."""

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
    """A new topic has no leader for a moment: the request is sent again."""
    monkeypatch.setattr(cluster_view, "POLL_S", 0.0)
    monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Electing(2, code))
    view = ClusterView(Cluster(bootstrap="b:9092"))
    assert view.offsets_at(snapshot(), 1) == {"t": {0: 7}}


def test_other_refusals_and_long_elections_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the brokers and the error."""
    monkeypatch.setattr(cluster_view, "TIMEOUT_S", 0.0)
    monkeypatch.setattr(cluster_view, "POLL_S", 0.0)
    for code in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.NOT_LEADER_FOR_PARTITION):
        monkeypatch.setattr(confluent_kafka.admin, "AdminClient", Electing(10**9, code))
        with pytest.raises(ReconcileError, match="Kafka at b:9092: list offsets"):
            ClusterView(Cluster(bootstrap="b:9092")).offsets_at(snapshot(), 1)
