"""The records of a sink task between its consumer and its task.

Layer: tasks. They are a batch that is to be put, and puts that are under way. What a failed put
means for the task, and when the consumer is paused, is decided by the loop. Main thread only,
except for `SinkDelivery.pending`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from pyconnect_agent.core.offsets.sink import SinkOffsets
from pyconnect_agent.kafka.task_consumer import ConsumedMessage, TaskConsumer
from pyconnect_agent.tasks.sink.errors.errant_reports import ErrantRecords
from pyconnect_agent.tasks.sink.metrics import SinkMetrics
from pyconnect_agent.tasks.sink.puts import BeginPut, FrameSize, Put, PutEnd
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import SinkRecord, TopicPartition


class SinkDelivery:
    """`offsets` count what the task has taken; `frame` is the size of the next batch."""

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
        """Records that the task has not taken yet; read by other threads too."""
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
        """Have the records consumed again that come after those of the batch."""
        for partition in partitions:
            if self._consumer.is_assigned(partition):
                at = self._offsets.consumed.get(partition, self._offsets.current[partition])
                self._consumer.seek(partition, at)

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the records of partitions that are no longer assigned."""
        self._batch = [record for record in self._batch if _origin(record) not in partitions]
        self._ends = {p: end for p, end in self._ends.items() if p not in partitions}

    def begin(self) -> None:
        """Begin a put of the batch. Raises what the task or its process raises."""
        batch, self._batch = self._batch, ()
        ends, self._ends = self._ends, {}
        self.puts.append(Put(batch=batch, ends=ends, finish=self._begin_put(batch)))

    def finish_oldest(self) -> bool:
        """Wait for the end of the oldest put; return whether those after it go on.

        Raises the put's error, after the batch has the records that are to be put again.
        """
        put = self.puts.popleft()
        end = put.finish()
        if self._reports is not None:
            # Before the offsets count: the last commit must not pass the record.
            self._reports.raise_failure()
        self._accept(put, end)
        if self._tracing is not None:
            self._tracing.accepted(self._offsets.current)
        if end.error is not None:
            raise end.error
        return not end.stopped

    def _accept(self, put: Put, end: PutEnd) -> None:
        """Count what the task has taken, and have the rest put or consumed again."""
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
