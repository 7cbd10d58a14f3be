"""A sink task under test with topics to read from, a source task, and a connector.

See the package for examples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pyconnect_api.connector import Connector, SourceConnector
from pyconnect_api.coroutines import run_coroutines
from pyconnect_api.errors import RetriableException
from pyconnect_api.header import Header
from pyconnect_api.record import SinkRecord, SourceRecord, TimestampType
from pyconnect_api.schema import Schema
from pyconnect_api.task import (
    RecordMetadata,
    SinkTask,
    SourceOffset,
    SourcePartition,
    SourceTask,
    TopicPartition,
)
from pyconnect_api.testing.contexts import (
    FakeConnectorContext,
    FakeSinkTaskContext,
    FakeSourceTaskContext,
    FakeTransactionContext,
    ManualStop,
    MemoryOffsets,
    RecordingReporter,
)
from pyconnect_api.validation import validate_value

DEFAULT_PARTITION = TopicPartition("topic", 0)


class SinkHarness:
    """Delivers records from topics in memory, commits offsets, assigns and revokes partitions.

    Positions follow Kafka's rules: reading starts at the committed offset when a partition is
    assigned, or at the offset that the task sets, and continues from there.
    """

    def __init__(
        self,
        task_class: type[SinkTask],
        props: Mapping[str, str],
        *,
        partitions: Iterable[TopicPartition] = (DEFAULT_PARTITION,),
        reporter: RecordingReporter | None = None,
    ) -> None:
        """Take the task's config and its first assignment.

        `reporter` None: there is no reporter of undeliverable records.
        """
        self._task_class = task_class
        self._initial = frozenset(partitions)
        self._reporter = reporter
        self.props = dict(props)
        self.task: SinkTask
        self.context: FakeSinkTaskContext
        self.committed: dict[TopicPartition, int] = {}
        """Offsets in the form of a consumer group: that of the next record to be read."""
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
        """Call `put` once with the records to read; return the batch.

        When the task asks to get a batch again, the same batch is given at the next call, and the
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
        """Commit as a worker does periodically; return the offsets that were committed."""
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
        """Take partitions away, all by default, without commit: another member may own them."""
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

    # Internals

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


class SourceHarness:
    """Polls a task, acknowledges its records in order, commits their offsets."""

    def __init__(
        self,
        task_class: type[SourceTask],
        props: Mapping[str, str],
        *,
        offsets: Sequence[tuple[SourcePartition, SourceOffset | None]] = (),
        define_boundaries: bool = False,
        stop_signal: Callable[[], ManualStop] = ManualStop,
    ) -> None:
        """Take the task's config; `offsets` are those committed before.

        `define_boundaries`: the task decides where transactions end, as with
        `transaction.boundary=connector`. `stop_signal` makes the signal of each task.
        """
        self._stop_signal = stop_signal
        self._task_class = task_class
        self._define_boundaries = define_boundaries
        self.props = dict(props)
        self.offsets = MemoryOffsets(offsets)
        self.task: SourceTask
        self.context: FakeSourceTaskContext
        self.transactions: list[list[SourceRecord]] = []
        """With `define_boundaries`: the records of each committed transaction."""
        self._open: list[SourceRecord] = []
        self._unacknowledged: list[SourceRecord] = []
        self._acknowledged: list[SourceRecord] = []
        self._produced: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._polled: list[tuple[SourceRecord, _Place]] = []

    def start(self) -> SourceTask:
        """Make, initialize and start a task; return it."""
        transactions = FakeTransactionContext() if self._define_boundaries else None
        self.context = FakeSourceTaskContext(
            self.props, self.offsets, transactions, self._stop_signal()
        )
        self.task = self._task_class()
        run_coroutines(self.task)
        self.task.initialize(self.context)
        self.task.start(self.props)
        return self.task

    def poll(self) -> list[SourceRecord]:
        """Poll once; return no records when the task has none or raises RetriableException.

        AssertionError for records that no worker could produce.
        """
        try:
            records = list(self.task.poll() or ())
        except RetriableException:
            return []
        self._check_places()
        for record in records:
            _check_record(record)
        self._polled = [(record, _place_of(record)) for record in records]
        self._unacknowledged += records
        self._end_transactions(records)
        return records

    def run(self, count: int, *, max_polls: int = 1000) -> list[SourceRecord]:
        """Poll until there are `count` records or more; acknowledge and return them.

        AssertionError when `max_polls` polls return fewer.
        """
        records: list[SourceRecord] = []
        for _ in range(max_polls):
            records += self.poll()
            if len(records) >= count:
                self.acknowledge()
                return records
        raise AssertionError(f"{max_polls} polls brought {len(records)} records, not {count}")

    def acknowledge(self, count: int | None = None) -> None:
        """Acknowledge the next `count` polled records, all by default, as if Kafka had them."""
        taken = len(self._unacknowledged) if count is None else count
        for record in self._unacknowledged[:taken]:
            self._acknowledged.append(record)
            topic, partition = str(record.topic), record.kafka_partition or 0
            offset = self._produced[topic, partition]
            self._produced[topic, partition] += 1
            metadata = RecordMetadata(topic, partition, offset, record.timestamp or -1)
            self.task.commit_record(record, metadata)
        del self._unacknowledged[:taken]

    def commit(self) -> None:
        """Commit the offsets of all acknowledged records, and call the task's hook."""
        self._check_places()
        for record in self._acknowledged:
            if record.source_partition is not None:
                self.offsets.store(record.source_partition, record.source_offset)
        self._acknowledged.clear()
        self.task.commit()

    def stop(self) -> None:
        """End the task as a worker does when no offsets are left to commit."""
        self.stop_requested.set()
        self.task.stop()

    def restart(self) -> SourceTask:
        """Stop the task, forget what is not committed, and start another task."""
        self.stop()
        self._polled.clear()
        self._unacknowledged.clear()
        self._acknowledged.clear()
        self._open.clear()
        return self.start()

    @property
    def stop_requested(self) -> ManualStop:
        """The task's stop signal, with the recorded waits."""
        return self.context.stop_requested

    def _check_places(self) -> None:
        for record, place in self._polled:
            assert _place_of(record) == place, (
                "A record's source partition or offset was changed after poll had returned it; it"
                f" was {place}: make a new dict for each record"
            )

    def _end_transactions(self, records: Sequence[SourceRecord]) -> None:
        transactions = self.context.transaction_context
        if transactions is None:
            return
        named = [*transactions.commit_records, *transactions.abort_records]
        strangers = [r for r in named if not any(r is record for record in records)]
        if strangers:
            raise AssertionError(
                f"A transaction was to end at a record that poll did not return: {strangers[0]}"
            )
        for record in records:
            self._open.append(record)
            if any(record is r for r in transactions.commit_records):
                self._close_transaction(keep=True)
            elif any(record is r for r in transactions.abort_records):
                self._close_transaction(keep=False)
        if transactions.commit_batch or transactions.abort_batch:
            self._close_transaction(keep=transactions.commit_batch)
        transactions.clear()

    def _close_transaction(self, *, keep: bool) -> None:
        if keep and self._open:
            self.transactions.append(list(self._open))
        self._open.clear()


_Place = tuple[dict[str, object] | None, dict[str, object] | None]


def _place_of(record: SourceRecord) -> _Place:
    """Return copies of source partition and offset."""
    partition, offset = record.source_partition, record.source_offset
    return None if partition is None else dict(partition), None if offset is None else dict(offset)


def _check_record(record: object) -> None:
    """Raise for a record that no worker could produce."""
    assert isinstance(record, SourceRecord), f"poll returned a {type(record).__qualname__}"
    assert record.topic, f"A record has no topic: {record}"
    for schema, value in (
        (record.key_schema, record.key),
        (record.value_schema, record.value),
        *((header.schema, header.value) for header in record.headers),
    ):
        if schema is not None:
            validate_value(schema, value)
    if record.source_partition is not None:
        MemoryOffsets([(record.source_partition, record.source_offset)])


class ConnectorHarness:
    """Validates a config, starts a connector with it, makes its tasks."""

    def __init__(
        self,
        connector_class: type[Connector],
        props: Mapping[str, str],
        *,
        offsets: Sequence[tuple[SourcePartition, SourceOffset | None]] = (),
    ) -> None:
        self.props = dict(props)
        self.offsets = MemoryOffsets(offsets)
        self.connector = connector_class()
        self.context = FakeConnectorContext(self.offsets)
        self.connector.initialize(self.context)

    def errors(self) -> dict[str, list[str]]:
        """Return the error messages of validation by setting; empty when the config is valid."""
        config = self.connector.validate(self.props)
        return {
            value.name: list(value.error_messages)
            for value in config.config_values
            if value.error_messages
        }

    def start(self) -> Connector:
        """Start the connector; AssertionError when its config is not valid."""
        wrong = self.errors()
        assert not wrong, f"The config is not valid: {wrong}"
        self.connector.start(self.props)
        return self.connector

    def task_configs(self, max_tasks: int = 1) -> list[dict[str, str]]:
        """Return the configs of the tasks; AssertionError for too many, and for values not str."""
        configs = [dict(config) for config in self.connector.task_configs(max_tasks)]
        assert len(configs) <= max_tasks, f"{len(configs)} task configs for tasks.max={max_tasks}"
        for config in configs:
            for name, value in config.items():
                assert isinstance(name, str), f"The name {name!r} in a task config is no text"
                assert isinstance(value, str), f"The value of {name} in a task config is no text"
        return configs

    def source(self, number: int = 0, max_tasks: int = 1) -> SourceHarness:
        """Return a source connector's task that is not started, with the harness's offsets."""
        assert isinstance(self.connector, SourceConnector)
        task_class = self.connector.task_class()
        assert issubclass(task_class, SourceTask)
        config = self.task_configs(max_tasks)[number]
        return SourceHarness(task_class, config, offsets=self.offsets.all())

    def sink(
        self,
        number: int = 0,
        max_tasks: int = 1,
        *,
        partitions: Sequence[TopicPartition] = (DEFAULT_PARTITION,),
        reporter: RecordingReporter | None = None,
    ) -> SinkHarness:
        """Return a sink connector's task that is not started; `reporter` None: it has none."""
        task_class = self.connector.task_class()
        assert issubclass(task_class, SinkTask)
        config = self.task_configs(max_tasks)[number]
        return SinkHarness(task_class, config, partitions=partitions, reporter=reporter)

    def stop(self) -> None:
        """Stop the connector."""
        self.connector.stop()
