"""A source task under test.

See the package for how it is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from pyconnect_api.coroutines import run_coroutines
from pyconnect_api.errors import RetriableException
from pyconnect_api.record import SourceRecord
from pyconnect_api.storage import SourceOffset, SourcePartition
from pyconnect_api.task import RecordMetadata, SourceTask
from pyconnect_api.testing.contexts import (
    FakeSourceTaskContext,
    FakeTransactionContext,
    ManualStop,
    MemoryOffsets,
)
from pyconnect_api.validation import validate_value


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
        `transaction.boundary=connector`. `stop_signal` makes each task's signal.
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
        """Poll once; empty when the task has nothing or asks to be polled again.

        AssertionError for records that no worker could produce.
        """
        try:
            records = list(self.task.poll() or ())
        except RetriableException:
            return []
        self._check_places()
        for record in records:
            _check(record)
        self._polled = [(record, _place_of(record)) for record in records]
        self._unacknowledged += records
        self._end_transactions(records)
        return records

    def run(self, count: int, *, max_polls: int = 1000) -> list[SourceRecord]:
        """Poll until there are `count` records or more; acknowledge and return them.

        AssertionError when `max_polls` polls bring fewer.
        """
        records: list[SourceRecord] = []
        for _ in range(max_polls):
            records += self.poll()
            if len(records) >= count:
                self.acknowledge()
                return records
        raise AssertionError(f"{max_polls} polls brought {len(records)} records, not {count}")

    def acknowledge(self, count: int | None = None) -> None:
        """Let Kafka have the next `count` polled records, all by default."""
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
        """End the task as a worker does that has nothing left to commit."""
        self.stop_requested.set()
        self.task.stop()

    def restart(self) -> SourceTask:
        """Stop, forget what was not committed, start another task."""
        self.stop()
        self._polled.clear()
        self._unacknowledged.clear()
        self._acknowledged.clear()
        self._open.clear()
        return self.start()

    @property
    def stop_requested(self) -> ManualStop:
        """The task's stop signal, with the waits it made."""
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


def _check(record: object) -> None:
    """Refuse what a worker could not produce."""
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
