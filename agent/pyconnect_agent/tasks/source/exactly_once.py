"""Exactly-once delivery: records and their offsets share transactions (KIP-618).

Kafka: ExactlyOnceWorkerSourceTask and its builder. A boundary decides when a transaction ends.
After any failure the task ends: its own position is past the lost records, only a new instance
reads them again.

The order of a start matters: the producer is initialised, which ends transactions of an older
instance; then the worker confirms that this task's configs are still the newest; only then offsets
are read.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from pyconnect_agent.channel.reports import StatsReported
from pyconnect_agent.core.clients.configs import exactly_once_producer
from pyconnect_agent.core.config.connector_config import SourceTaskSettings, TransactionBoundary
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError, ProducerFencedError
from pyconnect_agent.core.internal_topics import LogRecord
from pyconnect_agent.core.offsets.source import OffsetWriter, PartitionOffset, SourceEntries
from pyconnect_agent.core.transaction_boundary import (
    BoundaryPolicy,
    ConnectorBoundary,
    Decision,
    IntervalBoundary,
    PollBoundary,
    RequestedTransactions,
)
from pyconnect_agent.kafka.task_producer import (
    CLIENT_ERRORS,
    DeliveredMessage,
    OnDelivery,
    TransactionalProducer,
)
from pyconnect_agent.tasks.control import ActiveTopics, Control
from pyconnect_agent.tasks.source.loop import (
    QUEUE_FULL_WAIT_S,
    SourceLoop,
    explained,
    hearing_of,
    metadata_of,
)
from pyconnect_agent.tasks.source.offsets import OffsetStores
from pyconnect_agent.tasks.source.pipeline import Outgoing, OutgoingRun, by_partition
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_agent.tasks.worker_view import TaskSetup, built
from pyconnect_api import (
    ConnectException,
    DataException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
    TransactionContext,
)
from pyconnect_clients.connect_names import task_transactional_id

LOG = logging.getLogger(__name__)


class TransactionOffsets:
    """Keeps the newest offset of each source partition until a flush of them succeeded."""

    def __init__(self, connector: str) -> None:
        self.writer = OffsetWriter(connector)
        # The newest offset, not yet with the writer: most tasks stay with one partition.
        self._newest: PartitionOffset | None = None
        self._error: DataException | None = None

    def note(self, newest: PartitionOffset) -> None:
        if self._newest is not None and newest[0] is not self._newest[0]:
            try:
                self.writer.put([self._newest])
            except DataException as exc:
                self._error = exc
        self._newest = newest

    def note_many(self, records: Sequence[SourceRecord]) -> None:
        if records:
            for partition, offset, _ in by_partition(records):
                self.note((partition, offset))

    def forget_errors(self) -> None:
        """Forget errors of the offsets of a transaction that was aborted."""
        self._error = None

    def begin_flush(self) -> SourceEntries:
        """Return the entries to write; without entries no flush begins.

        Raises DataException when an offset has no bytes.
        """
        if self._newest is not None:
            self.writer.put([self._newest])
            self._newest = None
        entries = self.writer.begin_flush()
        if self._error is not None:
            raise self._error
        return entries


_NOT_DELIVERED = RecordMetadata("", -1, -1, -1)


class TransactionalSender:
    """Sends records in transactions, as a `loop.Sender`; only the task's thread calls it."""

    def __init__(
        self,
        *,
        task_id: str,
        connector: str,
        task: SourceTask,
        producer: TransactionalProducer,
        boundary: BoundaryPolicy,
        offsets: OffsetStores,
        topics: ActiveTopics,
        stop_requested: Callable[[], bool],
        metrics: SourceMetrics,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task_id = task_id
        self._task = task
        self._producer = producer
        self._produce = producer.produce
        self._boundary = boundary
        self._watches_records = boundary.watches_records
        self._stores = offsets
        self._offsets_topic = offsets.topic
        self._topics = topics
        self._stop_requested = stop_requested
        self._metrics = metrics
        self._clock = clock
        self._offsets = TransactionOffsets(connector)
        self._open = False
        self._began_s = 0.0
        self._count = 0
        self._timestamp = 0  # of the last record
        self._used_topics: set[str] = set()
        self._error: BaseException | None = None
        self._hearing = hearing_of(task)
        # For each run the names by which the task knows its records, and the results.
        self._remembered: list[tuple[Sequence[Any], list[RecordMetadata | None]]] = []
        self.hears_of_records = self._hearing is not None
        self.tracing: Tracing | None = None
        self.takes_runs = not boundary.watches_records
        self.last_commit_ms: int | None = None
        self.transaction_began_ms: int | None = None

    def begin_iteration(self) -> None:
        self._serve(0.0)
        self._topics.refresh()

    def check(self) -> None:
        """Do nothing: a failed send prevents the commit, which reports it."""

    def resumed(self) -> None:
        self._boundary.begin(self._now_ms())

    def paused(self, *, complete: bool) -> None:
        self._act(self._boundary.before_rest(complete=complete))

    def send_run(self, run: OutgoingRun) -> None:
        self._before_send(run.distinct_topics)
        while run.taken < len(run):
            rest = run.rest()
            callbacks = self._remember(rest.records)
            if self.tracing is not None:
                callbacks = self.tracing.watched(rest.topics, rest.headers, callbacks)
            taken = self._producer.produce_many(rest, callbacks)
            run.taken += taken
            self._count += taken
            self._timestamp = rest.timestamps[taken - 1] if taken else self._timestamp
            if taken == len(rest):
                self._used_topics |= rest.distinct_topics
                self._offsets.note_many(rest.records)
                return
            self._used_topics.update(rest.topics[:taken])
            self._offsets.note_many(rest.records[:taken])
            self.send(rest.records[taken], rest.at(taken))
            run.taken += 1

    def send(self, record: SourceRecord, outgoing: Outgoing) -> None:
        topic, value, key, kafka_partition, timestamp, headers = outgoing
        self._before_send((topic,))
        arguments: tuple[Any, ...] = (topic, value, key, kafka_partition)
        (done,) = self._remember((record,)) if self._hearing else (None,)
        if self.tracing is not None:
            (done,) = self.tracing.watched((topic,), (headers,), (done,))
        while True:
            try:
                if headers is None:
                    self._produce(*arguments, done, timestamp=timestamp)
                else:
                    self._produce(*arguments, done, timestamp=timestamp, headers=headers)
                break
            except BufferError:
                # Waiting is back-pressure: Java's send blocks here too, without a time limit.
                if self._stop_requested():
                    raise RetriableException("The producer's queue is full") from None
                self._serve(QUEUE_FULL_WAIT_S)
            except CLIENT_ERRORS as exc:
                error = explained(self._producer, exc, outgoing)
                if self._producer.is_asynchronous(exc):
                    # The commit raises the error, as in Java, also when errors are tolerated.
                    self._error = self._error or error
                    break
                if error.retriable:
                    raise RetriableException(str(error)) from exc
                raise self._failure("Unrecoverable exception trying to send", error) from error
        self._count += 1
        self._timestamp = timestamp
        if topic not in self._used_topics:
            self._used_topics.add(topic)
        # Noted here, as the offset of a record that the producer did not take must not be
        # committed.
        self._offsets.note((record.source_partition, record.source_offset))
        if self._watches_records:
            self._act(self._boundary.after_record(record))

    def dropped(self, record: SourceRecord) -> None:
        if self._hearing is not None:
            self._remembered.append((self._hearing.known_as((record,)), [None]))
        if self._watches_records:
            self._act(self._boundary.after_record(record))

    def batch_sent(self) -> None:
        self._act(self._boundary.after_batch(self._now_ms()))

    def finish(self, *, failed: bool, complete: bool) -> None:
        if not failed:
            self._act(self._boundary.before_rest(complete=complete))

    def in_flight(self) -> int:
        return self._producer.in_flight()

    def _before_send(self, topics: Collection[str]) -> None:
        if self._offsets_topic in topics:
            raise ConnectException(
                "Source tasks may not produce to their own offsets topics when exactly-once support"
                " is enabled"
            )
        if not self._open:
            self._begin()

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.serve(timeout_s)
        except AgentError as exc:
            text = "Unrecoverable exception from producer send callback"
            raise self._failure(text, exc) from exc

    def _act(self, decision: Decision) -> None:
        match decision:
            case Decision.CONTINUE:
                return
            case Decision.ABORT:
                self._abort()
        self._commit()

    def _begin(self) -> None:
        try:
            self._producer.begin()
        except AgentError as exc:
            raise self._failure("Unrecoverable exception trying to send", exc) from exc
        self._open = True
        self._began_s = self._clock()
        self.transaction_began_ms = int(time.time() * 1000)

    def _abort(self) -> None:
        """Drop the records of the transaction; the next commit writes their offsets."""
        if not self._open:
            LOG.warning(
                "Ignoring request by task to abort transaction as the current transaction is empty",
                extra={"task": self._task_id},
            )
            return
        self._open = False
        self._count = 0
        self._error = None
        self._offsets.forget_errors()
        self._used_topics.clear()
        self.transaction_began_ms = None
        try:
            self._producer.abort()
        except AgentError as exc:
            raise self._failure("Failed to abort the transaction of a task", exc) from exc
        LOG.info("transaction aborted as the task asked", extra={"task": self._task_id})

    def _commit(self) -> None:
        """Commit records and offsets together, then notify the task."""
        started_s = self._clock()
        try:
            entries = self._offsets.begin_flush()
            if not self._open and not entries:
                self._commit_ended(started_s, success=True)
                self._commit_task()
                return
            records = self._stores.prepare(entries)
            if not self._open:
                self._begin()
            self._write_offsets(records)
            if self._error is not None:
                raise self._error
            self._producer.commit((*self._used_topics, self._offsets_topic))
        except (AgentError, DataException) as exc:
            # The transaction stays open: closing the producer aborts it.
            self._offsets.writer.cancel_flush()
            self._commit_ended(started_s, success=False)
            text = f"Failed to flush offsets and/or records for task {self._task_id}"
            raise self._failure(text, exc) from exc
        self._open = False
        self.transaction_began_ms = None
        self._offsets.writer.end_flush()
        for topic in self._used_topics:
            self._topics.used(topic)
        self._used_topics.clear()
        LOG.debug(
            "transaction committed", extra={"records": self._count, "partitions": len(entries)}
        )
        self._commit_ended(started_s, success=True)
        self._metrics.transaction_committed(self._count)
        self._metrics.committed_until(self._timestamp if self._count else 0)
        self._count = 0
        self._stores.committed(entries)
        if self._hearing is not None:
            remembered, self._remembered = self._remembered, []
            for names, results in remembered:
                for name, metadata in zip(names, results, strict=True):
                    # The other records were not taken, or an abort dropped them before their
                    # delivery.
                    if metadata is not _NOT_DELIVERED:
                        self._hearing.tell(name, metadata)
        self._commit_task()

    def _commit_ended(self, started_s: float, *, success: bool) -> None:
        self._metrics.task.committed((self._clock() - started_s) * 1000, success=success)

    def _write_offsets(self, records: Sequence[LogRecord]) -> None:
        for key, value in records:
            while True:
                try:
                    self._produce(self._offsets_topic, value, key)
                    break
                except BufferError:
                    self._producer.serve(QUEUE_FULL_WAIT_S)
                except CLIENT_ERRORS as exc:
                    size = len(key) + len(value or b"")
                    raise self._producer.explain(exc, self._offsets_topic, size) from exc

    def _failure(self, text: str, cause: BaseException) -> ConnectException:
        """Return the error of a transaction that expired, or of one that another producer ended."""
        age_ms = (self._clock() - self._began_s) * 1000
        expired = self._open and age_ms >= self._producer.transaction_timeout_ms
        if isinstance(cause, ProducerFencedError) and expired:
            text = (
                f"The task {self._task_id} was unable to finish writing records to Kafka before its"
                " producer transaction expired. It may be necessary to reconfigure this connector"
                " in order for it to run healthily with exactly-once support. Options for this"
                " include: tune the connector's producer configuration for higher throughput,"
                " increase the transaction timeout for the connector's producers, decrease the"
                " offset commit interval (if using interval-based transaction boundaries), or use"
                " the 'poll' transaction boundary (if the connector is not already configured to"
                " use it)."
            )
        return ConnectException(text)

    def _remember(self, records: Sequence[SourceRecord]) -> Iterable[OnDelivery | None]:
        """Return a callback for the result of each record that is about to be sent."""
        if self._hearing is None:
            return repeat(None)
        results: list[RecordMetadata | None] = [_NOT_DELIVERED] * len(records)
        self._remembered.append((self._hearing.known_as(records), results))
        return map(partial, repeat(_delivered), repeat(results), range(len(records)))

    def _commit_task(self) -> None:
        self.last_commit_ms = int(time.time() * 1000)
        try:
            self._task.commit()
        except Exception:  # Kafka's contract: the error is logged, and the task goes on
            LOG.exception("SourceTask.commit failed")

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _delivered(
    results: list[RecordMetadata | None], place: int, failure: Any, message: DeliveredMessage
) -> None:
    """Note the metadata of a delivered record; a failure makes librdkafka refuse the commit."""
    if failure is None:
        results[place] = metadata_of(message)


class ExactlyOnceDelivery:
    """Exactly-once delivery as a `loop.Delivery`."""

    def __init__(
        self,
        task: SourceTask,
        setup: TaskSetup,
        control: Control,
        *,
        metrics: SourceMetrics,
        topics: ActiveTopics,
        offsets: OffsetStores,
    ) -> None:
        worker = setup.worker.config
        assert isinstance(worker, DistributedConfig)
        settings = SourceTaskSettings.parse(setup.connector_config)
        self._control = control
        self._is_stopping = control.stop_requested.is_set
        self._offsets = offsets
        overrides: Mapping[str, str | None] = setup.connector_config
        config = built(
            exactly_once_producer(
                worker,
                overrides,
                f"connector-producer-{setup.task_id}",
                task_transactional_id(worker.group_id, setup.task_id.connector, setup.task_id.task),
            )
        )
        self._producer = TransactionalProducer(config.properties, config.max_block_ms)
        boundary, self.transaction_context = boundary_of(
            settings, worker, self._producer.transaction_timeout_ms
        )
        self.sender = TransactionalSender(
            task_id=str(setup.task_id),
            connector=setup.task_id.connector,
            task=task,
            producer=self._producer,
            boundary=boundary,
            offsets=offsets,
            topics=topics,
            metrics=metrics,
            stop_requested=self._is_stopping,
        )

    def open(self) -> bool:
        return (
            self._producer.init(self._is_stopping)
            and self._control.confirm_start()
            and self._offsets.start(self._is_stopping)
        )

    def begin(self, loop: SourceLoop) -> None:
        """Do nothing: no thread is needed."""

    def end(self, *, failed: bool, complete: bool) -> None:
        self.sender.finish(failed=failed, complete=complete)

    def close(self, *, failed: bool) -> None:  # noqa: ARG002  an open transaction is aborted
        self._producer.close(0.0)
        self._offsets.close()

    def statistics(self) -> StatsReported:
        return StatsReported(
            last_commit_ms=self.sender.last_commit_ms,
            transaction_began_ms=self.sender.transaction_began_ms,
            queue_size=self._producer.in_flight(),
        )


def boundary_of(
    settings: SourceTaskSettings, worker: WorkerConfig, transaction_timeout_ms: int
) -> tuple[BoundaryPolicy, TransactionContext | None]:
    """Return the boundary of the task's transactions, and the context of a task that sets them."""
    match settings.transaction_boundary:
        case TransactionBoundary.POLL:
            return PollBoundary(), None
        case TransactionBoundary.CONNECTOR:
            requested = RequestedTransactions()
            return ConnectorBoundary(requested), requested
        case TransactionBoundary.INTERVAL:
            interval_ms = settings.transaction_interval_ms
            if interval_ms is None:
                interval_ms = worker.offset_flush_interval_ms
            if interval_ms >= transaction_timeout_ms:
                LOG.warning(
                    "transactions may expire: the interval between commits is not shorter than the"
                    " producer's transaction.timeout.ms",
                    extra={
                        "interval_ms": interval_ms,
                        "transaction_timeout_ms": transaction_timeout_ms,
                    },
                )
            return IntervalBoundary(interval_ms), None
