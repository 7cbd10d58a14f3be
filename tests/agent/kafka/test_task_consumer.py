"""Positions after an assignment, with a client in memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError
from confluent_kafka import TopicPartition as ClientPartition

from pyconnect_agent.core.errors import AuthorizationError
from pyconnect_agent.kafka import task_consumer
from pyconnect_agent.kafka.task_consumer import TaskConsumer, parse_group_metadata
from pyconnect_api import TopicPartition

GROUP = b"CGMDv2:\x05\x00\x00\x00g\xc3\xbcr\x00member\x00\x00instance\x00"
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Client:
    """A client without committed offsets; `answers` are those of `offsets_for_times`, in order.

    An answer holds for each partition an offset, or the code of an error.
    """

    def __init__(self, answers: Sequence[Mapping[int, int | KafkaError]]) -> None:
        self.answers = list(answers)
        self.asked: list[list[int]] = []
        self.times: list[list[int]] = []
        self.assigned: list[tuple[int, int]] = []
        self._on_assign: Callable[..., None] | None = None

    def subscribe(self, topics: Sequence[str], *, on_assign: Callable[..., None], **_: Any) -> None:
        self._on_assign = on_assign

    def consumer_group_metadata(self) -> bytes:
        return GROUP

    def committed(self, partitions: list[Any], timeout: float) -> list[Any]:
        return [ClientPartition(p.topic, p.partition) for p in partitions]

    def offsets_for_times(self, partitions: list[Any], timeout: float) -> list[Any]:
        self.asked.append([p.partition for p in partitions])
        self.times.append([p.offset for p in partitions])
        answer = self.answers.pop(0)
        return [_Found(p.topic, p.partition, answer[p.partition]) for p in partitions]

    def assign(self, partitions: list[Any]) -> None:
        self.assigned = [(p.partition, p.offset) for p in partitions]

    def consume(self, number: int, timeout: float) -> list[Any]:
        """Act out the assignment."""
        on_assign, self._on_assign = self._on_assign, None
        if on_assign is not None:
            on_assign(self, [ClientPartition("t", 0), ClientPartition("t", 1)])
        return []


class _Found:
    """A partition as the client returns it: without an error the offset counts."""

    def __init__(self, topic: str, partition: int, answer: int | KafkaError) -> None:
        self.topic, self.partition = topic, partition
        self.error = answer if isinstance(answer, KafkaError) else None
        self.offset = OFFSET_END if isinstance(answer, KafkaError) else answer


class Listener:
    def __init__(self) -> None:
        self.positions: list[Mapping[TopicPartition, int]] = []

    def on_assigned(self, positions: Mapping[TopicPartition, int]) -> None:
        self.positions.append(positions)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None: ...
    def on_lost(self, partitions: Sequence[TopicPartition]) -> None: ...


def assigned(client: Client, monkeypatch: pytest.MonkeyPatch, reset: str = "latest") -> Listener:
    """Subscribe, by default at the end of the topic, and poll once."""
    monkeypatch.setattr(task_consumer, "create_consumer", lambda config: client)
    monkeypatch.setattr(task_consumer, "LOOK_UP_RETRY_S", 0.0)
    listener = Listener()
    consumer = TaskConsumer({"auto.offset.reset": reset}, listener)
    consumer.subscribe(["t"])
    consumer.poll(1, 0)
    return listener


def test_an_unknown_position_is_asked_for_again_unless_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guessed position would skip uncommitted records, so a task consumes nothing without one."""
    away = KafkaError(KafkaError.LEADER_NOT_AVAILABLE)
    client = Client([{0: 7, 1: away}, {1: 9}])
    listener = assigned(client, monkeypatch)
    assert client.asked == [[0, 1], [1]]
    assert listener.positions == [{P0: 7, P1: 9}]
    assert client.assigned == [(0, 7), (1, 9)]
    denied = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)
    client = Client([{0: 7, 1: denied}])
    with pytest.raises(AuthorizationError, match="position of t-1"):
        assigned(client, monkeypatch)
    assert client.assigned == []


def test_a_reset_by_duration_begins_at_a_later_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reset by duration begins at the end if all records are older (KIP-1106)."""
    monkeypatch.setattr("time.time", lambda: 10_000.0)
    client = Client([{0: 7, 1: OFFSET_END}, {1: 9}])
    listener = assigned(client, monkeypatch, reset="by_duration:3600000")
    assert client.times == [[6_400_000, 6_400_000], [OFFSET_END]]
    assert listener.positions == [{P0: 7, P1: 9}]
    assert client.assigned == [(0, 7), (1, 9)]


def test_the_membership_is_read_from_the_clients_bytes() -> None:
    """Bytes with an instance's id, without one, and before the first rebalance are read."""
    found = parse_group_metadata(GROUP)
    assert found == {"group": "gür", "generation": 5, "member": "member", "instance": "instance"}
    new = parse_group_metadata(b"CGMDv2:\xff\xff\xff\xffg\x00\x00\x01")
    assert new == {"group": "g", "generation": -1, "member": "", "instance": None}
