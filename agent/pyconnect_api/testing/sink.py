"""A sink task under test, with topics to read from.

See the package for how it is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from pyconnect_api.coroutines import run_coroutines
from pyconnect_api.errors import RetriableException
from pyconnect_api.header import Header
from pyconnect_api.record import SinkRecord, TimestampType
from pyconnect_api.schema import Schema
from pyconnect_api.task import SinkTask, TopicPartition
from pyconnect_api.testing.contexts import FakeSinkTaskContext, RecordingReporter

DEFAULT_PARTITION = TopicPartition("topic", 0)


class SinkHarness:
    """Delivers records from topics in memory, commits offsets, assigns and revokes partitions.

    Positions follow Kafka's rules: a partition is read from its committed offset when it is
    assigned, from where the task asked for it, and on from there.
    """

    def __init__(
        self,
        task_class: type[SinkTask],
        props: Mapping[str, str],
        *,
        partitions: Iterable[TopicPartition] = (DEFAULT_PARTITION,),
        reporter: RecordingReporter | None = None,
    ) -> None:
        """Take the task's config and what is assigned to it at the start.

        `reporter` None: there is no reporter of undeliverable records.
        """
        self._task_class = task_class
        self._initial = frozenset(partitions)
        self._reporter = reporter
        self.props = dict(props)
        self.task: SinkTask
        self.context: FakeSinkTaskContext
        self.committed: dict[TopicPartition, int] = {}
        """Offsets as a consumer group would have them: of the next record to be read."""
        self._log: defaultdict[TopicPartition, list[SinkRecord]] = defaultdict(list)
        self._positions: dict[TopicPartition, int] = {}
        self._batch: list[SinkRecord] | None = None

    # The topics

    def send(
        self,
        value: object,
        *,
        value_schema: Schema | None = None,
        key: object = None,
        key_schema: Schema | None = None,
        partition: TopicPartition = DEFAULT_PARTITION,
        timestamp: int | None = None,
        headers: Iterable[Header] | None = None,
    ) -> SinkRecord:
        """Append a record to a partition and return it; `deliver` gives it to the task."""
        log = self._log[partition]
        record = SinkRecord(
            partition.topic,
            partition.partition,
            key_schema,
            key,
            value_schema,
            value,
            len(log),
            timestamp,
            TimestampType.NO_TIMESTAMP_TYPE if timestamp is None else TimestampType.CREATE_TIME,
            headers,
        )
        log.append(record)
        return record

    # The life of a task

    def start(self) -> SinkTask:
        """Make, initialize and start a task, and open its partitions; return it."""
        self.context = FakeSinkTaskContext(self.props, self._reporter)
        self.task = self._task_class()
        run_coroutines(self.task)
        self.context.initialized = True
        self.task.initialize(self.context)
        self.task.start(self.props)
        self._positions.clear()
        self._batch = None
        if self._initial:
            self.assign(*self._initial)
        return self.task

    def deliver(self, max_records: int = 500) -> list[SinkRecord]:
        """Call `put` once with what there is to read; return the batch.

        When the task asks to have a batch again, the same one is given at the next call, and the
        result is empty.
        """
        self._rewind()
        batch = self._batch if self._batch is not None else self._next_batch(max_records)
        try:
            self.task.put(list(batch))
        except RetriableException:
            self._batch = batch
            return []
        self._batch = None
        self._rewind()
        return batch

    def commit(self) -> dict[TopicPartition, int]:
        """Commit as a worker does from time to time; return what the task let be committed."""
        return self._commit(self.context.assigned, closing=False)

    def assign(self, *partitions: TopicPartition) -> None:
        """Add partitions to the task, as a rebalance does."""
        for partition in partitions:
            self._positions[partition] = self.committed.get(partition, 0)
        self.context.assigned.update(partitions)
        self.task.open(list(partitions))
        self._rewind()

    def revoke(self, *partitions: TopicPartition) -> None:
        """Take partitions away, all by default: commit with `is_closing`, then close."""
        leaving = set(partitions or self.context.assigned)
        self._commit(leaving, closing=True)
        self._close(leaving)

    def lose(self, *partitions: TopicPartition) -> None:
        """Take partitions away, all by default, that another member may have by now: no commit."""
        self._close(set(partitions or self.context.assigned))

    def stop(self) -> None:
        """End the task: commit with `is_closing`, close, stop."""
        if self.context.assigned:
            self.revoke()
        self.task.stop()

    def restart(self) -> SinkTask:
        """Stop, and start another task from the committed offsets."""
        self.stop()
        return self.start()

    def crash(self) -> SinkTask:
        """Drop the task without another call, and start another from the committed offsets."""
        return self.start()

    # How it is done

    def _next_batch(self, max_records: int) -> list[SinkRecord]:
        batch: list[SinkRecord] = []
        for partition in sorted(self.context.assigned - self.context.paused):
            start = self._positions[partition]
            found = self._log[partition][start : start + max_records - len(batch)]
            batch += found
            self._positions[partition] = start + len(found)
        return batch

    def _rewind(self) -> None:
        for partition, offset in self.context.rewinds.items():
            assert partition in self.context.assigned, (
                f"An offset was set of {partition}, which is not assigned"
            )
            if offset is not None:
                self._positions[partition] = offset
                self._batch = None
        self.context.rewinds.clear()

    def _commit(
        self, partitions: Collection[TopicPartition], *, closing: bool
    ) -> dict[TopicPartition, int]:
        offered = {item: self._offerable(item) for item in partitions}
        self.context.is_closing = closing
        try:
            accepted = dict(self.task.pre_commit(dict(offered)))
        finally:
            self.context.is_closing = False
        for partition, offset in accepted.items():
            assert partition in offered, f"pre_commit returned {partition}, which was not offered"
            assert 0 <= offset <= offered[partition], (
                f"pre_commit returned {offset} for {partition}, beyond {offered[partition]}"
            )
        self.committed.update(accepted)
        return accepted

    def _offerable(self, partition: TopicPartition) -> int:
        """Return one after the last record that `put` took."""
        held = [
            record.kafka_offset
            for record in self._batch or ()
            if (record.topic, record.kafka_partition) == partition
        ]
        return min(held, default=self._positions[partition])

    def _close(self, partitions: set[TopicPartition]) -> None:
        self.task.close(sorted(partitions))
        self.context.assigned -= partitions
        self.context.paused -= partitions
        for partition in partitions:
            del self._positions[partition]
        self._batch = None
