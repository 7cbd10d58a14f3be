"""Which source offsets may be committed: those of the acknowledged prefix of each partition.

Kafka: SubmittedRecords. At-least-once only. Records of one source partition may go to several topic
partitions, whose acknowledgements arrive in any order; an offset is committable once its record and
every earlier one of the same source partition is acknowledged or dropped.

Threading: everything belongs to the task's thread, except `SubmittedRecord.ack` and
`SubmittedRun.acknowledge`, which any thread may call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

Partition = Mapping[str, object]
Offset = Mapping[str, object]


def canonical_partition(partition: Partition | None) -> Hashable:
    """Return a value that is equal for equal partitions, in any order of their members.

    As in Java, 1, 1.0 and True are different values.
    """
    if partition is None:
        return None
    try:
        canonical = frozenset([(name, value.__class__, value) for name, value in partition.items()])
        hash(canonical)
    except TypeError:
        return _canonical(partition)
    return canonical


def _canonical(value: object) -> Hashable:
    match value:
        case Mapping():
            return Mapping, frozenset((name, _canonical(item)) for name, item in value.items())
        case list() | tuple():
            return list, tuple(_canonical(item) for item in value)
        case bytearray():
            return bytes, bytes(value)
        case _:
            return value.__class__, value if isinstance(value, Hashable) else repr(value)


class _Queue:
    """Records of one source partition in the order of their submission."""

    __slots__ = ("only_text", "original", "partition", "records")

    def __init__(self, partition: Partition | None) -> None:
        self.records: deque[SubmittedRecord | SubmittedRun] = deque()
        self.original = partition
        # A copy, since a connector may change its dict later.
        self.partition = None if partition is None else dict(partition)
        self.only_text = partition is None or all(
            value.__class__ is str for value in partition.values()
        )

    def forget(self, record: SubmittedRecord | SubmittedRun) -> bool:
        """Remove a record, mostly the last one; return whether it was here."""
        records = self.records
        if records and records[-1] is record:
            records.pop()
            return True
        if record not in records:
            return False
        records.remove(record)
        return True

    def take_acknowledged(self) -> tuple[int, Offset | None, int]:
        """Remove the acknowledged prefix; return its length, last offset and last timestamp."""
        records, count, offset, timestamp = self.records, 0, None, 0
        while records and records[0].acked:
            first = records.popleft()
            offset, timestamp = first.offset, first.timestamp
            count += first.size
        return count, offset, timestamp


class SubmittedRecord:
    """A record passed to the producer. The connector must not change `offset`."""

    __slots__ = ("_queue", "acked", "offset", "timestamp")

    size = 1

    def __init__(self, queue: _Queue, offset: Offset | None, timestamp: int) -> None:
        self._queue = queue
        self.offset = offset
        self.timestamp = timestamp
        self.acked = False

    def ack(self) -> None:
        """Allow the commit of the offset. Idempotent; any thread."""
        self.acked = True

    def drop(self) -> bool:
        """Forget a record that the producer refused; return whether it was still known."""
        return self._queue.forget(self)


class SubmittedRun:
    """Records of one source partition that are committed together.

    `offset` and `timestamp` (ms, 0 without one) are those of the last record.
    """

    __slots__ = ("_acknowledged", "_queue", "acknowledge", "offset", "size", "timestamp")

    def __init__(self, queue: _Queue, offset: Offset | None, size: int, timestamp: int) -> None:
        self._queue = queue
        self.offset = offset
        self.timestamp = timestamp
        self.size = size
        self._acknowledged: list[None] = []
        self.acknowledge: Callable[[None], None] = self._acknowledged.append
        """Called with None once for each record, by any thread; no call gets lost."""

    @property
    def acked(self) -> bool:
        return len(self._acknowledged) >= self.size

    def cut(self, offset: Offset | None, size: int) -> None:
        """Keep only the first records, because the producer refused the next one."""
        self.offset, self.size = offset, size
        if not size:
            self._queue.forget(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittableOffsets:
    """Offsets that can be committed, and the number of records pending behind them.

    `offsets`: canonical partition -> (partition, offset). `timestamp`: the latest of all records
    in ms, 0 without one.
    """

    offsets: Mapping[Hashable, tuple[Partition | None, Offset | None]] = field(default_factory=dict)
    committable_count: int = 0
    uncommittable_count: int = 0
    timestamp: int = 0

    def is_empty(self) -> bool:
        return not (self.committable_count or self.uncommittable_count or self.offsets)

    def updated_with(self, newer: CommittableOffsets) -> CommittableOffsets:
        """Combine with a later result, whose offsets and pending count win; other counts add."""
        return CommittableOffsets(
            offsets={**self.offsets, **newer.offsets},
            committable_count=self.committable_count + newer.committable_count,
            uncommittable_count=newer.uncommittable_count,
            timestamp=max(self.timestamp, newer.timestamp),
        )


class SubmittedRecords:
    """One queue for each source partition with records that are neither committed nor dropped."""

    def __init__(self) -> None:
        self._queues: dict[Hashable, _Queue] = {}
        # Most sources send runs of records of one partition, often with the same dict: to compare
        # with the last one costs a tenth of making a key.
        self._last: _Queue | None = None

    def submit(
        self, partition: Partition | None, offset: Offset | None, timestamp: int = 0
    ) -> SubmittedRecord:
        """Append a record that is about to be sent; the caller acks or drops the result."""
        queue = self._queue_of(partition)
        record = SubmittedRecord(queue, offset, timestamp)
        queue.records.append(record)
        return record

    def submit_run(
        self, partition: Partition | None, offset: Offset | None, size: int, timestamp: int = 0
    ) -> SubmittedRun:
        """Append records that are about to be sent; `offset` is that of the last of them."""
        queue = self._queue_of(partition)
        run = SubmittedRun(queue, offset, size, timestamp)
        queue.records.append(run)
        return run

    def _queue_of(self, partition: Partition | None) -> _Queue:
        queue = self._last
        if (
            queue is None
            or partition != queue.partition
            # Equality is not enough, because 1 == True.
            or not (queue.only_text or partition is queue.original)
        ):
            queue = self._last = self._queue(partition)
        return queue

    def committable_offsets(self) -> CommittableOffsets:
        """Remove and return every acknowledged prefix."""
        offsets: dict[Hashable, tuple[Partition | None, Offset | None]] = {}
        committable = uncommittable = latest = 0
        for canonical, queue in self._queues.items():
            count, offset, timestamp = queue.take_acknowledged()
            latest = max(latest, timestamp)
            if count:
                offsets[canonical] = (queue.partition, offset)
                committable += count
            uncommittable += sum([record.size for record in queue.records])
        for canonical in [each for each, queue in self._queues.items() if not queue.records]:
            del self._queues[canonical]
        if self._last is not None and not self._last.records:
            self._last = None
        return CommittableOffsets(
            offsets=offsets,
            committable_count=committable,
            uncommittable_count=uncommittable,
            timestamp=latest,
        )

    def _queue(self, partition: Partition | None) -> _Queue:
        canonical = canonical_partition(partition)
        queue = self._queues.get(canonical)
        if queue is None:
            queue = self._queues[canonical] = _Queue(partition)
        return queue
