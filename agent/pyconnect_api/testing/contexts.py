"""Contexts that record a plugin's requests.

They raise the same errors as a worker's contexts, at the same times.
"""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from pyconnect_api.connector import SinkConnectorContext, SourceConnectorContext
from pyconnect_api.errors import ConnectException, IllegalWorkerStateException
from pyconnect_api.record import SinkRecord, SourceRecord
from pyconnect_api.task import (
    ErrantRecordReporter,
    OffsetStorageReader,
    SinkTaskContext,
    SourceOffset,
    SourcePartition,
    SourceTaskContext,
    TopicPartition,
    TransactionContext,
)


def offset_key(partition: SourcePartition) -> str:
    """Return the identity of a source partition, with keys in any order."""
    return json.dumps(partition, sort_keys=True)


class MemoryOffsets(OffsetStorageReader):
    """Committed source offsets, in the form in which they come back from Kafka: through JSON."""

    def __init__(self, initial: Sequence[tuple[SourcePartition, SourceOffset | None]] = ()) -> None:
        self._offsets: dict[str, str] = {}
        for partition, offset in initial:
            self.store(partition, offset)

    def store(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Commit an offset; None removes it. AssertionError for types that JSON does not have."""
        try:
            key, text = offset_key(partition), json.dumps(offset, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise AssertionError(
                f"Source partitions and offsets hold None, bool, int, float and str only: {error}"
            ) from error
        if offset is None:
            self._offsets.pop(key, None)
        else:
            self._offsets[key] = text

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        text = self._offsets.get(offset_key(partition))
        return None if text is None else dict(json.loads(text))

    def offsets(
        self, partitions: Sequence[SourcePartition]
    ) -> Sequence[tuple[SourcePartition, SourceOffset | None]]:
        return [(partition, self.offset(partition)) for partition in partitions]

    def all(self) -> list[tuple[SourcePartition, SourceOffset]]:
        """Return every committed offset with its partition."""
        return [(json.loads(key), json.loads(text)) for key, text in self._offsets.items()]


class ManualStop:
    """A stop signal that a test sets; waiting for it returns at once."""

    def __init__(self) -> None:
        self._is_set = False
        self.waits_s: list[float | None] = []

    def set(self) -> None:
        """Ask the task to end."""
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Note the wait; AssertionError for a wait without timeout, which would never end."""
        self.waits_s.append(timeout)
        if timeout is None and not self._is_set:
            raise AssertionError("The task waits for its end: nothing else wakes it up")
        return self._is_set


class FakeTransactionContext(TransactionContext):
    """Notes the task's requests to end transactions; the harness clears it after each batch."""

    def __init__(self) -> None:
        self.commit_records: list[SourceRecord] = []
        self.abort_records: list[SourceRecord] = []
        self.clear()

    def clear(self) -> None:
        """Forget the noted requests."""
        self.commit_batch = self.abort_batch = False
        self.commit_records.clear()
        self.abort_records.clear()

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        if record is None:
            self.commit_batch = True
        else:
            self.commit_records.append(record)
        self._check(record)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        if record is None:
            self.abort_batch = True
        else:
            self.abort_records.append(record)
        self._check(record)

    def _check(self, record: SourceRecord | None) -> None:
        both = self.commit_batch and self.abort_batch
        if record is not None:
            both = any(record is r for r in self.commit_records) and any(
                record is r for r in self.abort_records
            )
        if both:
            raise IllegalWorkerStateException(
                "A transaction cannot be committed and aborted at the same place"
            )


class FakeSourceTaskContext(SourceTaskContext):
    """The context of a source task under test."""

    def __init__(
        self,
        props: Mapping[str, str],
        offsets: MemoryOffsets,
        transactions: FakeTransactionContext | None,
        stop_requested: ManualStop,
    ) -> None:
        self.props = dict(props)
        self.stop_requested: ManualStop = stop_requested
        self._offsets = offsets
        self._transactions = transactions

    def configs(self) -> Mapping[str, str]:
        return self.props

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._offsets

    @property
    def transaction_context(self) -> FakeTransactionContext | None:
        return self._transactions


class RecordingReporter(ErrantRecordReporter):
    """Keeps reported records with their errors; with `tolerate` False `report` then raises."""

    def __init__(self, *, tolerate: bool = True) -> None:
        self.reports: list[tuple[SinkRecord, Exception]] = []
        self._tolerate = tolerate

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        self.reports.append((record, error))
        if not self._tolerate:
            raise ConnectException("Error tolerance is 'none'") from error
        done: Future[None] = Future()
        done.set_result(None)
        return done


class FakeSinkTaskContext(SinkTaskContext):
    """The context of a sink task under test."""

    def __init__(self, props: Mapping[str, str], reporter: RecordingReporter | None) -> None:
        self.props = dict(props)
        self.assigned: set[TopicPartition] = set()
        self.paused: set[TopicPartition] = set()
        self.timeouts_ms: list[int] = []
        self.commits_requested = 0
        self.rewinds: dict[TopicPartition, int | None] = {}
        self.initialized = False
        self._reporter = reporter

    def configs(self) -> Mapping[str, str]:
        return self.props

    def offset(
        self,
        target: TopicPartition | Mapping[TopicPartition, int | None],
        offset: int | None = None,
        /,
    ) -> None:
        wanted = {target: offset} if isinstance(target, TopicPartition) else target
        self.rewinds.update(wanted)

    def timeout(self, timeout_ms: int) -> None:
        self.timeouts_ms.append(timeout_ms)

    def assignment(self) -> frozenset[TopicPartition]:
        self._require_initialized()
        return frozenset(self.assigned)

    def pause(self, *partitions: TopicPartition) -> None:
        self._require_assigned(partitions)
        self.paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self._require_assigned(partitions)
        self.paused.difference_update(partitions)

    def request_commit(self) -> None:
        self.commits_requested += 1

    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        return self._reporter

    def _require_initialized(self) -> None:
        if not self.initialized:
            raise IllegalWorkerStateException(
                "SinkTaskContext may not be used until the task is initialized"
            )

    def _require_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._require_initialized()
        missing = [str(item) for item in partitions if item not in self.assigned]
        if missing:
            raise IllegalWorkerStateException(
                f"SinkTasks may not pause or resume partitions that are not assigned: {missing}"
            )


class FakeConnectorContext(SourceConnectorContext, SinkConnectorContext):
    """The context of a connector under test, source or sink."""

    def __init__(self, offsets: MemoryOffsets) -> None:
        self.reconfigurations_requested = 0
        self.errors: list[Exception] = []
        self._offsets = offsets

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations_requested += 1

    def raise_error(self, error: Exception) -> None:
        self.errors.append(error)

    @property
    def offset_storage_reader(self) -> OffsetStorageReader:
        return self._offsets
