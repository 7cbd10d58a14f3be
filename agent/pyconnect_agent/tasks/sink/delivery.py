"""The records of a sink task between its consumer and its task, and the commits of their offsets.

The records are a batch that waits for a put, and puts that are under way. The loop decides what a
failed put means for the task, and when the consumer is paused. A task in this process takes a batch
at once. A task in a Java process gets the records of several puts in one frame, and the next frame
while it works on one, as each message between the processes costs both of them time.

Commits are Kafka's WorkerSinkTask.commitOffsets (KIP-275). Everything runs on the task's thread,
results of asynchronous commits included, except for `SinkDelivery.pending`.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.offsets.sink import SinkOffsets, validate
from pyconnect_agent.kafka.task_consumer import ConsumedMessage, TaskConsumer
from pyconnect_agent.tasks.plugins import plain_offsets
from pyconnect_agent.tasks.sink.context import WorkerSinkTaskContext
from pyconnect_agent.tasks.sink.dead_letters import ErrantRecords
from pyconnect_agent.tasks.task_metrics import SinkMetrics
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import SinkRecord, SinkRecords, SinkTask, TopicPartition

LOG = logging.getLogger(__name__)

MOST_PUTS = 10
"""The most puts of a frame."""

QUICK_MS = 20.0
"""A frame whose puts take longer makes the next frame one put."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PutEnd:
    """The end of a batch that a task was given.

    The task has the first `taken` records. The next `due` records are those of a put that failed
    with `error`; the task has to get them again. The rest was in no put. `puts`: sizes and
    milliseconds of the puts that succeeded. With `stopped`, batches begun before this end was known
    are not taken.
    """

    taken: int
    puts: Sequence[tuple[int, float]]
    stopped: bool
    due: int = 0
    error: Exception | None = None


BeginPut: TypeAlias = Callable[[Sequence[SinkRecord]], Callable[[], PutEnd]]
"""Starts to put a batch, and returns a function that waits for the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A batch that is under way; `ends` are the offsets after its records."""

    batch: Sequence[SinkRecord]
    ends: Mapping[TopicPartition, int]
    finish: Callable[[], PutEnd]


def put_at_once(task: SinkTask) -> BeginPut:
    """Return a function that puts a batch during its call."""

    def begin(batch: Sequence[SinkRecord]) -> Callable[[], PutEnd]:
        # A list is copied, as the task may keep and change it.
        records = batch if isinstance(batch, SinkRecords) else list(batch)
        began_s = time.monotonic()
        try:
            task.put(records)
        except Exception as exc:  # noqa: BLE001  plugin code; the loop decides
            end = PutEnd(taken=0, puts=(), stopped=True, due=len(batch), error=exc)
        else:
            puts = ((len(batch), (time.monotonic() - began_s) * 1000),)
            end = PutEnd(taken=len(batch), puts=puts, stopped=False)
        return lambda: end

    return begin


class FrameSize:
    """The number of records to consume at once: those of one put, or of several quick puts."""

    def __init__(self, put_records: int, *, grows: bool) -> None:
        self._put_records = put_records
        self._grows = grows
        self.records = put_records

    @property
    def under_way(self) -> int:
        """Return how many batches may be under way: one, unless puts are quick."""
        return 2 if self.records > self._put_records else 1

    def ended(self, size: int, end: PutEnd) -> None:
        """Adapt the size to the end of a batch of `size` records."""
        duration_ms = sum(duration_ms for _, duration_ms in end.puts)
        if end.stopped or duration_ms > QUICK_MS:
            self.records = self._put_records
        elif self._grows and size >= self.records:
            self.records = min(2 * self.records, MOST_PUTS * self._put_records)


class SinkDelivery:
    """The batch and the puts of a task.

    `offsets` counts the records that the task has taken; `frame` is the size of the next batch.
    """

    def __init__(
        self,
        *,
        begin_put: BeginPut,
        frame: FrameSize,
        offsets: SinkOffsets,
        consumer: TaskConsumer,
        reports: ErrantRecords | None,
        metrics: SinkMetrics,
        tracing: Tracing | None = None,
    ) -> None:
        self.frame = frame
        self.puts: deque[Put] = deque()
        self._begin_put = begin_put
        self._offsets = offsets
        self._consumer = consumer
        self._reports = reports
        self._metrics = metrics
        self._tracing = tracing
        self._batch: Sequence[SinkRecord] = ()
        self._ends: dict[TopicPartition, int] = {}

    @property
    def pending(self) -> int:
        """Number of records that the task has not taken yet; other threads read it too."""
        return len(self._batch) + sum(len(put.batch) for put in tuple(self.puts))

    @property
    def has_batch(self) -> bool:
        """Whether records wait for a put."""
        return bool(self._batch)

    def add(
        self,
        messages: Sequence[ConsumedMessage],
        records: Sequence[SinkRecord],
        ends: Mapping[TopicPartition, int],
        foreign: int,
    ) -> None:
        """Add consumed records to the batch; `ends`: the offsets after them."""
        self._offsets.consumed.update(ends)
        self._ends.update(ends)
        self._batch = [*self._batch, *records] if self._batch else records
        self._metrics.read(len(messages) - foreign)
        self._metrics.look_at(self._offsets)

    def give_back(self, partitions: Collection[TopicPartition]) -> None:
        """Seek back, so that the consumer reads the records after those of the batch again."""
        for partition in partitions:
            if self._consumer.is_assigned(partition):
                at = self._offsets.consumed.get(partition, self._offsets.current[partition])
                self._consumer.seek(partition, at)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the records of partitions that are no longer assigned."""
        self._batch = [record for record in self._batch if _origin(record) not in partitions]
        self._ends = {p: end for p, end in self._ends.items() if p not in partitions}

    def begin(self) -> None:
        """Begin a put of the batch. Raises the exceptions of the task or its process."""
        batch, self._batch = self._batch, ()
        ends, self._ends = self._ends, {}
        self.puts.append(Put(batch=batch, ends=ends, finish=self._begin_put(batch)))

    def finish_oldest(self) -> bool:
        """Wait for the end of the oldest put; return whether the puts after it go on.

        Raises the put's error, after the records to be put again are back in the batch.
        """
        put = self.puts.popleft()
        end = put.finish()
        if self._reports is not None:
            # Raised before the offsets count: the last commit must not pass the record.
            self._reports.raise_failure()
        self._accept(put, end)
        if self._tracing is not None:
            self._tracing.accepted(self._offsets.current)
        if end.error is not None:
            raise end.error
        return not end.stopped

    def _accept(self, put: Put, end: PutEnd) -> None:
        """Count the records that the task has taken, and have the rest put or consumed again."""
        self.frame.ended(len(put.batch), end)
        for size, duration_ms in end.puts:
            self._metrics.put(size, duration_ms)
        if not end.stopped:
            self._offsets.accept(put.ends)
            return
        refused: set[TopicPartition] = set()
        for later in self.puts:
            later.finish()
            refused.update(later.ends)
        self.puts.clear()
        behind = end.taken + end.due
        if end.due == len(put.batch):
            self._batch, self._ends = put.batch, dict(put.ends)
        elif end.taken == len(put.batch):
            self._offsets.accept(put.ends)
        else:
            self._offsets.accept(_ends(put.batch[: end.taken]))
            self._batch = put.batch[end.taken : behind]
            self._ends = _ends(self._batch)
            refused.update(_ends(put.batch[behind:]))
        self._offsets.consumed = dict(self._ends)
        self.give_back(refused)


def _origin(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.original_topic, record.original_kafka_partition)


def _ends(records: Iterable[SinkRecord]) -> dict[TopicPartition, int]:
    """Return the offsets after the last record of each partition."""
    return {_origin(record): record.original_kafka_offset + 1 for record in records}


class SinkCommits:
    """The commits of a sink task, at most one under way; `now_ms` is any monotonic clock."""

    def __init__(
        self,
        *,
        task: SinkTask,
        consumer: TaskConsumer,
        offsets: SinkOffsets,
        context: WorkerSinkTaskContext,
        reports: ErrantRecords | None,
        metrics: SinkMetrics,
        flush_timeout_ms: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._task = task
        self._consumer = consumer
        self._offsets = offsets
        self._context = context
        self._reports = reports
        self._metrics = metrics
        self._flush_timeout_ms = flush_timeout_ms
        self._now_ms = now_ms
        self._sequence = 0
        self._started_ms = 0
        self._closing = False
        self.committing = False
        self.last_commit_ms: int | None = None

    def give_up_late(self) -> None:
        """Stop waiting for a commit that has timed out; a later result of it still counts."""
        if self.committing and self._now_ms() >= self._started_ms + self._flush_timeout_ms:
            LOG.warning("commit of offsets timed out")
            self._failed(self._now_ms() - self._started_ms)
            self.committing = False

    def commit(self, partitions: Collection[TopicPartition], *, closing: bool) -> None:
        """Commit the offsets of these partitions that the task allows; `closing` also closes them.

        Raises ConnectException for a failed error report, and exceptions of `task.close`.
        """
        if self._reports is not None:
            self._reports.await_reports(partitions)
        offered = self._offsets.offered(partitions)
        if not offered:
            return
        self.committing = True
        self._closing = closing
        self._sequence += 1
        self._metrics.sequence = self._sequence
        self._started_ms = self._now_ms()
        base = self._offsets.base(offered)
        provided = self._pre_commit(offered, base, partitions, closing)
        if provided is None:
            return
        sequence = self._sequence
        if not provided:
            LOG.debug("offset commit skipped: the task returned no offsets")
            self._completed(None, sequence, None)
            return
        result = validate(
            base=base, offered=offered, provided=provided, assignment=self._consumer.assignment()
        )
        for partition, offset, reason in result.refused:
            LOG.warning(
                "invalid offset of the task ignored",
                extra={"partition": str(partition), "offset": offset, "reason": reason},
            )
        offsets = result.offsets
        if offsets == base:
            LOG.debug("offset commit skipped: no change since the last one")
            self._completed(None, sequence, None)
        elif closing:
            try:
                self._consumer.commit_sync(offsets)
            except KafkaError as exc:
                self._completed(exc, sequence, offsets)
            else:
                self._completed(None, sequence, offsets)
        else:
            self._consumer.commit_async(
                offsets, lambda error: self._completed(error, sequence, offsets)
            )

    def _pre_commit(
        self,
        offered: dict[TopicPartition, int],
        base: dict[TopicPartition, int],
        partitions: Collection[TopicPartition],
        closing: bool,
    ) -> Mapping[TopicPartition, int] | None:
        """Call the task's `pre_commit`; return None when it raised, which is handled here."""
        provided: Mapping[TopicPartition, int] | None = None
        error: Exception | None = None
        self._context.is_closing = closing
        try:
            provided = self._task.pre_commit(dict(offered))
        except Exception as exc:  # noqa: BLE001  plugin code: a failed commit must not end the task
            error = exc
        finally:
            self._context.is_closing = False
        if closing:
            self._task.close(partitions)
        if error is None:
            return plain_offsets(provided, type(self._task).__qualname__)
        if closing:
            LOG.warning("offset commit failed during close", exc_info=error)
        else:
            LOG.error("offset commit failed, rewinding to last committed offsets", exc_info=error)
            for partition, offset in base.items():
                self._consumer.seek(partition, offset)
            self._offsets.rewind(base)
        self._completed(error, self._sequence, None)
        return None

    def _completed(
        self, error: Exception | None, sequence: int, offsets: Mapping[TopicPartition, int] | None
    ) -> None:
        if sequence != self._sequence:
            self._metrics.commit_skipped()
            return
        self.committing = False
        duration_ms = self._now_ms() - self._started_ms
        if error is not None:
            LOG.error("commit of offsets failed", extra={"reason": str(error)})
            self._failed(duration_ms)
            return
        if offsets is not None:
            self.last_commit_ms = int(time.time() * 1000)
            # Partitions that were lost meanwhile stay forgotten.
            current = self._offsets.current
            self._offsets.committed.update(
                {p: offset for p, offset in offsets.items() if p in current}
            )
        self._metrics.committed(duration_ms, success=True, closing=self._closing)
        self._metrics.look_at(self._offsets, at_once=True)

    def _failed(self, duration_ms: int) -> None:
        self._metrics.committed(duration_ms, success=False, closing=self._closing)
