"""Tasks: they move the records.

Corresponds to Kafka Connect's ``Task``, ``SourceTask`` (KIP-618), ``SinkTask`` (KIP-610), their
contexts and ``OffsetStorageReader``; ``SinkTaskContext.is_closing`` is KIP-275, which Kafka does
not have.

Threads: each task has a process of its own, and the worker calls it only from that process's main
thread. For an at-least-once source task, another thread may call ``SourceTask.commit`` and
``SourceTask.commit_record``.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias, overload

from pyconnect_api.metrics import PluginMetrics
from pyconnect_api.typed_config import parse_config

if TYPE_CHECKING:
    from pyconnect_api.record import SinkRecord, SourceRecord


SourcePartition: TypeAlias = Mapping[str, object]
"""Names one input of a source connector; string keys, values None, bool, int, float or str."""

SourceOffset: TypeAlias = Mapping[str, object]
"""A position within a source partition; same restrictions as `SourcePartition`."""


class OffsetStorageReader(ABC):
    """Looks up the offsets that were last committed for source partitions.

    Reads go to the store, never to offsets that are not flushed yet. Integers come back as
    ``int``, also those of 8 to 32 bits.
    """

    @abstractmethod
    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """Return the last committed offset of ``partition``, or None when there is none.

        Raises ConnectException when the worker has cancelled the task or connector.
        """

    @abstractmethod
    def offsets(
        self, partitions: Sequence[SourcePartition]
    ) -> Sequence[tuple[SourcePartition, SourceOffset | None]]:
        """Return ``(partition, offset or None)`` for every partition, in the given order.

        Entries whose stored bytes cannot be decoded are logged and left out. Raises
        ConnectException when the worker has cancelled the task or connector.
        """


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        """Return Kafka's text form ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class RecordMetadata:
    """The place of a record in Kafka.

    ``timestamp`` is milliseconds since 1970, -1 when unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int = -1


UNDEFINED_VERSION = "undefined"


class Versioned:
    """A part of a plugin that has a version."""

    def version(self) -> str:
        """Return the version shown by the REST API.

        By default ``__version__`` of the module's top-level package, else the version of its
        distribution, ``undefined`` when there is neither.
        """
        package = type(self).__module__.partition(".")[0]
        own = getattr(sys.modules.get(package), "__version__", None)
        return own if isinstance(own, str) and own else _distribution_version(package)


@cache
def _distribution_version(package: str) -> str:
    names = metadata.packages_distributions().get(package)
    return metadata.version(names[0]) if names else UNDEFINED_VERSION


class Task(Versioned, ABC):
    """The common part of source and sink tasks; derive from one of those two."""

    config_class: ClassVar[type | None] = None
    """The dataclass of the task's settings (see `setting`), if it has one."""

    config: object
    """The values of `config_class` after `start`; annotate it with that class."""

    def start(self, props: Mapping[str, str]) -> None:
        """Acquire the task's resources; an exception makes the task FAILED.

        ``props`` is one of the configurations that ``task_configs`` returned, with references to
        config providers resolved. The default sets `config`; an override calls it first.
        """
        if self.config_class is not None:
            self.config = parse_config(self.config_class, props)

    def stop(self) -> None:
        """Release the task's resources; by default nothing.

        Called once at the end, also when `start` raised, so it must not rely on a complete `start`.
        """


class TransactionContext(ABC):
    """Lets a source task decide where transactions end (``transaction.boundary=connector``)."""

    @overload
    def commit_transaction(self) -> None: ...
    @overload
    def commit_transaction(self, record: SourceRecord) -> None: ...
    @abstractmethod
    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit after the batch being polled, or after ``record`` of that batch.

        ``record`` must be in the batch that ``poll`` returns next. A commit and an abort at the
        same place fail the task.
        """

    @overload
    def abort_transaction(self) -> None: ...
    @overload
    def abort_transaction(self, record: SourceRecord) -> None: ...
    @abstractmethod
    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort after the batch being polled, or after ``record`` of that batch.

        The records since the last boundary are discarded. Their source offsets are committed, so
        the records are not read again.
        """


class StopSignal(Protocol):
    """The part of ``threading.Event`` that a task needs."""

    def is_set(self) -> bool:
        """Return whether the worker has asked the task to end."""
        ...

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the signal for ``timeout`` seconds, without limit if None; return `is_set`."""
        ...


class TaskContext:
    """The worker's services for any task."""

    @cached_property
    def metrics(self) -> PluginMetrics:
        """Counters and gauges of this task, exposed together with the worker's metrics."""
        return PluginMetrics()


class SourceTaskContext(TaskContext, ABC):
    """The worker's services for a source task."""

    stop_requested: StopSignal
    """Set once the worker asks the task to end; wait on it instead of sleeping in ``poll``.

    The worker cannot interrupt a blocking ``poll``: if it lasts beyond
    ``task.shutdown.graceful.timeout.ms``, the task's process is killed.
    """

    @abstractmethod
    def configs(self) -> Mapping[str, str]:
        """Return the latest task configuration, with variables resolved again."""

    @property
    @abstractmethod
    def offset_storage_reader(self) -> OffsetStorageReader:
        """The reader of this connector's committed source offsets."""

    @property
    @abstractmethod
    def transaction_context(self) -> TransactionContext | None:
        """The means to end transactions, None unless ``transaction.boundary=connector``."""


class SourceTask(Task):
    """Reads a part of another system into source records.

    Order of calls: `initialize`, `start`, `poll` until the worker ends the task,
    `stop`. A paused task is not polled.
    """

    context: SourceTaskContext

    def initialize(self, context: SourceTaskContext) -> None:
        """Keep the context; called once, before `start`."""
        self.context = context

    @abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """Return new records, or None or an empty sequence when there are none.

        Wait briefly (a second or less) when there is nothing to read, because the worker calls
        again at once. RetriableException counts as None; any other exception fails the task.
        """

    def commit(self) -> None:
        """Get notice that the offsets of all records acknowledged so far were committed.

        Errors are logged and ignored.
        """

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Get notice that a record is done, in its form before transformations.

        ``metadata`` is None when a transformation dropped the record or it was skipped under
        ``errors.tolerance=all``. Errors are logged and ignored.
        """


class ErrantRecordReporter(ABC):
    """Takes records that a sink task cannot deliver (KIP-610)."""

    @abstractmethod
    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Report ``record`` and return a future that is done once the report is durable.

        Waiting for the future is optional: the worker waits before it commits the record's offset.
        With ``errors.tolerance=none`` this method raises ConnectException after reporting.
        """


class SinkTaskContext(TaskContext, ABC):
    """The worker's services for a sink task."""

    is_closing: bool = False
    """True only during a ``pre_commit`` (and the ``flush`` it calls) that is made because the given
    partitions are about to be closed: in a rebalance or at the end of the task (KIP-275).

    A sink that buffers should then write its records of these partitions, because it will not get
    them again. False in periodic commits, in ``put``, ``open``, ``close``, ``start`` and ``stop``.
    """

    @property
    def isClosing(self) -> bool:  # noqa: N802  the name KIP-275 gives it
        """Same as `is_closing`, under the name of the proposal."""
        return self.is_closing

    @abstractmethod
    def configs(self) -> Mapping[str, str]:
        """Return the latest task configuration, with variables resolved again."""

    @overload
    def offset(self, target: TopicPartition, offset: int, /) -> None: ...
    @overload
    def offset(self, target: Mapping[TopicPartition, int | None], /) -> None: ...
    @abstractmethod
    def offset(
        self,
        target: TopicPartition | Mapping[TopicPartition, int | None],
        offset: int | None = None,
        /,
    ) -> None:
        """Set the offset to continue from at the next poll, or right after ``open``.

        The offset is that of the next record to be read, from 0. For sinks that store their offsets
        themselves.
        """

    @abstractmethod
    def timeout(self, timeout_ms: int) -> None:
        """Limit the wait before the next ``put`` once, in milliseconds.

        Call it before a RetriableException: without it the batch may be offered again only at the
        next offset commit. Call it also when a batch must not wait for further records.
        """

    @abstractmethod
    def assignment(self) -> frozenset[TopicPartition]:
        """Return the partitions assigned to this task.

        Raises IllegalWorkerStateException before the task is initialized.
        """

    @abstractmethod
    def pause(self, *partitions: TopicPartition) -> None:
        """Stop the delivery of these partitions until `resume`.

        Raises IllegalWorkerStateException for a partition that is not assigned.
        """

    @abstractmethod
    def resume(self, *partitions: TopicPartition) -> None:
        """Deliver these partitions again; errors as for `pause`."""

    @abstractmethod
    def request_commit(self) -> None:
        """Ask for an offset commit soon; the worker may ignore it."""

    @abstractmethod
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Return the reporter of undeliverable records, None when none is configured."""


class SinkTask(Task):
    """Writes records of its assigned partitions to another system.

    Order of calls: `initialize`, `start`, `open`, then `put` and
    `pre_commit`; at a rebalance `pre_commit` and `close` of the revoked
    partitions and `open` of the new ones; at the end `pre_commit`, `close`,
    `stop`. No record of a partition comes between its ``close`` and its next ``open``;
    within a partition records come in offset order.
    """

    TOPICS_CONFIG = "topics"
    TOPICS_REGEX_CONFIG = "topics.regex"

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Keep the context; called once, before `start`."""
        self.context = context

    @abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take the next records, often none, at most ``max.poll.records`` (500); may buffer them.

        Mostly they are a `SinkRecords`, whose values are available without making records.

        RetriableException: the same batch is offered again later. Any other exception fails the
        task.
        """

    def flush(self, current_offsets: Mapping[TopicPartition, int]) -> None:
        """Make all records that `put` accepted so far durable; an exception stops the commit.

        ``current_offsets`` maps each partition to the offset that would be committed: one after
        its last accepted record.
        """

    def pre_commit(
        self, current_offsets: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """Return the offsets that are safe to commit; by default all, after `flush`.

        An offset is one after the last record that is safe. A partition that is left out keeps its
        committed offset. An error does not fail the task: nothing is committed, and the records
        since the last commit are delivered again.
        Return an empty mapping when the sink keeps its offsets itself. Use the records'
        ``original_topic``, ``original_kafka_partition`` and ``original_kafka_offset``, because
        transformations may have changed the others.
        """
        self.flush(current_offsets)
        return current_offsets

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Prepare for records of newly assigned partitions."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Release the resources of partitions that are taken away.

        Discard their buffered records without writing them: another task may own the partitions.
        """
