"""When an exactly-once source task commits or aborts its transaction (KIP-618).

Kafka: ExactlyOnceWorkerSourceTask.TransactionBoundaryManager and WorkerTransactionContext. A
boundary returns a decision and the sender carries it out. `now_ms` is any clock that does not go
back.

Threads: boundaries belong to the task's thread. Any thread of the task may call
`RequestedTransactions`: each call is one step of a dict or an attribute.
"""

from enum import Enum, auto
from typing import Protocol

from pyconnect_api import ConnectException, SourceRecord, TransactionContext


class Decision(Enum):
    """The next step for the open transaction.

    ABORT drops the transaction's records, then commits their offsets in a separate transaction.
    """

    CONTINUE = auto()
    COMMIT = auto()
    ABORT = auto()


class BatchMark(Enum):
    """The argument that means the whole batch; None in its place is an error of the task."""

    WHOLE = auto()


class BoundaryPolicy(Protocol):
    """A boundary. `watches_records` False: calls of `after_record` always return CONTINUE."""

    watches_records: bool

    def begin(self, now_ms: int) -> None:
        """Note that the task begins or resumes polling."""
        ...

    def after_record(self, record: SourceRecord) -> Decision:
        """Decide after `record`, as the task made it, was passed to the producer or dropped."""
        ...

    def after_batch(self, now_ms: int) -> Decision:
        """Decide after all records of one poll (maybe none) were passed on or dropped."""
        ...

    def before_rest(self, *, complete: bool) -> Decision:
        """Decide when the task is paused or ends in order.

        `complete` False: a part of the last batch was neither passed to the producer nor dropped.
        """
        ...


class PollBoundary:
    """One transaction per poll."""

    watches_records = False

    def begin(self, now_ms: int) -> None:
        """Do nothing: this boundary measures no time or size."""

    def after_record(self, record: SourceRecord) -> Decision:  # noqa: ARG002  not watched
        return Decision.CONTINUE

    def after_batch(self, now_ms: int) -> Decision:  # noqa: ARG002  whenever it ends
        return Decision.COMMIT

    def before_rest(self, *, complete: bool) -> Decision:  # noqa: ARG002  KIP-618: also a part
        return Decision.COMMIT


class IntervalBoundary(PollBoundary):
    """A transaction ends with the first poll that ends `interval_ms` after the last commit."""

    def __init__(self, interval_ms: int) -> None:
        self._interval_ms = interval_ms
        self._since_ms = 0

    def begin(self, now_ms: int) -> None:
        self._since_ms = now_ms

    def after_batch(self, now_ms: int) -> Decision:
        if now_ms - self._since_ms < self._interval_ms:
            return Decision.CONTINUE
        self._since_ms = now_ms
        return Decision.COMMIT


class RequestedTransactions(TransactionContext):
    """The requests of a task with `transaction.boundary=connector`.

    Records are distinguished by identity: equal ones may come twice in a batch.
    """

    def __init__(self) -> None:
        self._commit_batch = False
        self._abort_batch = False
        # The record is kept too, so that no other one gets its id.
        self._commit_records: dict[int, SourceRecord] = {}
        self._abort_records: dict[int, SourceRecord] = {}

    def commit_transaction(self, record: SourceRecord | BatchMark | None = BatchMark.WHOLE) -> None:
        if record is BatchMark.WHOLE:
            self._commit_batch = True
        else:
            self._commit_records[id(record)] = _given(record)

    def abort_transaction(self, record: SourceRecord | BatchMark | None = BatchMark.WHOLE) -> None:
        if record is BatchMark.WHOLE:
            self._abort_batch = True
        else:
            self._abort_records[id(record)] = _given(record)

    def take_batch(self) -> Decision:
        """Return and forget the request for the batch. Raises ConnectException for both at once."""
        commit, self._commit_batch = self._commit_batch, False
        abort, self._abort_batch = self._abort_batch, False
        if commit and abort:
            raise ConnectException("Connector requested both commit and abort of same transaction")
        return _decision(commit=commit, abort=abort)

    def take_record(self, record: SourceRecord) -> Decision:
        """Return and forget the request for a record. Raises ConnectException for both at once."""
        commit = self._commit_records.pop(id(record), None) is not None
        abort = self._abort_records.pop(id(record), None) is not None
        if commit and abort:
            place = f"{record.topic}/{record.kafka_partition}"
            raise ConnectException(
                "Connector requested both commit and abort of same record against topic/partition"
                f" {place}"
            )
        return _decision(commit=commit, abort=abort)


class ConnectorBoundary:
    """The task requests the ends of transactions; one that is open at the end is not committed."""

    watches_records = True

    def __init__(self, requested: RequestedTransactions) -> None:
        self._requested = requested

    def begin(self, now_ms: int) -> None:
        """Do nothing: this boundary measures no time or size."""

    def after_record(self, record: SourceRecord) -> Decision:
        return self._requested.take_record(record)

    def after_batch(self, now_ms: int) -> Decision:  # noqa: ARG002  the connector says when
        return self._requested.take_batch()

    def before_rest(self, *, complete: bool) -> Decision:
        # The connector's request is about the whole batch. It waits for the rest of the batch,
        # which follows after a pause; at the end of the task the producer aborts the transaction.
        return self._requested.take_batch() if complete else Decision.CONTINUE


def _given(record: SourceRecord | None) -> SourceRecord:
    if record is None:
        raise ConnectException(
            "Source record used to define transaction boundaries may not be null"
        )
    return record


def _decision(*, commit: bool, abort: bool) -> Decision:
    if abort:
        return Decision.ABORT
    return Decision.COMMIT if commit else Decision.CONTINUE
