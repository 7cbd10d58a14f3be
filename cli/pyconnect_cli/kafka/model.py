"""Values of Kafka: partitions, records, groups, transactions and their positions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyconnect_cli.rest.offset_entries import SINK_OFFSET_KEY, OffsetEntry, Partition


class TopicPartition(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """The offset of the first retained record, and of the next one to be written."""

    earliest: int
    latest: int


Ranges = Mapping[TopicPartition, OffsetRange]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    """One record; None is a Kafka null. `timestamp_ms` is negative when it has none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class SinkPosition(NamedTuple):
    """A sink's position in one partition; None: no committed offset, or no such partition.

    `all_read`: only markers of transactions are left to read, no records.
    """

    offset: int | None
    end: int | None
    all_read: bool = False

    @property
    def lag(self) -> int | None:
        """The number of unread records."""
        if self.offset is None or self.end is None:
            return None
        return 0 if self.all_read else max(self.end - self.offset, 0)


def sink_topics(config: Mapping[str, str | None], offsets: Sequence[OffsetEntry]) -> set[str]:
    """Return the topics that a sink reads: the configured ones and those with its offsets.

    With `topics.regex` only topics with offsets are known.
    """
    configured = {topic.strip() for topic in (config.get("topics") or "").split(",")}
    return {topic for topic in configured if topic} | {
        topic_partition(entry.partition).topic for entry in offsets
    }


def topic_partition(partition: Partition) -> TopicPartition:
    """Return the Kafka partition of a sink's partition, which is never null."""
    assert partition is not None
    return TopicPartition(str(partition["kafka_topic"]), int(str(partition["kafka_partition"])))


def kafka_offset(entry: OffsetEntry) -> int | None:
    """Return the number of a sink's offset."""
    return None if entry.offset is None else int(str(entry.offset[SINK_OFFSET_KEY]))


def sink_positions(
    topics: Collection[str], offsets: Iterable[OffsetEntry], ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, SinkPosition]:
    """Return a sink's positions in all partitions of its topics and all with its offsets, sorted.

    `ends`: end offsets of existing partitions, maybe of other topics too.
    """
    stored = {topic_partition(entry.partition): kafka_offset(entry) for entry in offsets}
    existing = {partition for partition in ends if partition.topic in topics}
    return {
        partition: SinkPosition(stored.get(partition), ends.get(partition))
        for partition in sorted({*existing, *stored})
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record of an offsets topic; `value` None deletes the offset."""

    topic: str
    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int | None = None

    @property
    def place(self) -> KeyPlace:
        """Topic, partition and key: a later record with the same ones replaces this one."""
        return KeyPlace(self.topic, self.partition, self.key)


class KeyPlace(NamedTuple):
    """The place of the newest record of a key."""

    topic: str
    partition: int
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkGroup:
    """A consumer group with its committed offsets."""

    group: str
    state: str
    offsets: Mapping[TopicPartition, int]

    @property
    def live(self) -> bool:
        return self.state in {"STABLE", "PREPARING_REBALANCING", "COMPLETING_REBALANCING"}


def latest(records: Iterable[StoredRecord]) -> dict[KeyPlace, StoredRecord]:
    """Return the stored records after all of these, in their order, without deleted ones."""
    stored: dict[KeyPlace, StoredRecord] = {}
    for record in records:
        if record.value is None:
            stored.pop(record.place, None)
        else:
            stored[record.place] = record
    return stored


ABORT_SCAN_MS = 10_000
"""How often coordinators look for transactions that have timed out, by default."""

_OPEN_STATES = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of a transactional id; times in epoch ms, `started_ms` None: not open."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    started_ms: int | None
    partitions: tuple[TopicPartition, ...]

    @property
    def open(self) -> bool:
        return self.state in _OPEN_STATES

    def overdue(self, now_ms: int) -> bool:
        """Return whether its coordinator should have aborted it by now."""
        return (
            self.open
            and self.started_ms is not None
            and now_ms > self.started_ms + self.timeout_ms + ABORT_SCAN_MS
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenProducer:
    """A producer with an open transaction in one partition, as its leader reports it."""

    partition: TopicPartition
    producer_id: int
    epoch: int
    coordinator_epoch: int
    last_ms: int
    first_offset: int

    @property
    def name(self) -> str:
        """The name of the transaction, unique among the open ones: `topic:0 producer 7`."""
        return f"{self.partition.topic}:{self.partition.partition} producer {self.producer_id}"

    def to_json(self, now_ms: int) -> dict[str, object]:
        """Return the stable form for machines."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "coordinator_epoch": self.coordinator_epoch,
            "start_offset": self.first_offset,
            "last_timestamp_ms": self.last_ms,
            "idle_ms": max(now_ms - self.last_ms, 0),
        }
