"""Records that a sink task could not process: their dead letters and their reports.

Kafka: DeadLetterQueueReporter, InternalSinkRecord, WorkerErrantRecordReporter (KIP-610),
`Worker.sinkTaskReporters`.

A dead letter is the record as it was consumed, optionally with headers that describe the failure
(KIP-298). A thread of its own serves the producer, so that a task may wait for the future of a
report; any thread may call `report`.

Only tasks with a dead letter queue or an error log keep the messages of their records: the original
bytes stay in memory with them.
"""

import logging
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Self

from pyconnect_agent.core.clients.configs import connector_admin, connector_producer
from pyconnect_agent.core.config.connector_config import SinkTaskSettings
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import Admin, TopicSpec
from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.kafka.task_producer import (
    CLIENT_ERRORS,
    DeliveredMessage,
    KafkaHeaders,
    TaskProducer,
)
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.plugins import Converters
from pyconnect_agent.tasks.records import ErrorCounts, Failure, RecordStage, Tolerance, tolerance_of
from pyconnect_agent.tasks.trace import class_name, format_trace
from pyconnect_agent.tasks.worker_view import API_TIMEOUT_MS, TaskSetup, built
from pyconnect_api import (
    ConnectException,
    Converter,
    ErrantRecordReporter,
    HeaderConverter,
    SinkRecord,
    SinkTask,
    TimestampType,
    TopicPartition,
)

_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: 1, TimestampType.LOG_APPEND_TIME: 2}


class ConsumedRecord(SinkRecord):
    """A record that keeps its message, through transformations too."""

    __slots__ = ("consumed",)

    consumed: ConsumedMessage

    def new_record(self, *parts: Any, **named: Any) -> Self:
        """Return a new record as `SinkRecord` does, with the same message."""
        record = super().new_record(*parts, **named)
        record.consumed = self.consumed
        return record


@dataclass(frozen=True, slots=True)
class SerializedRecord:
    """A record that a task made itself, with the accessors of a consumed message."""

    record: SinkRecord
    key_bytes: bytes | None
    value_bytes: bytes | None
    kafka_headers: KafkaHeaders

    def topic(self) -> str:
        topic = self.record.topic
        assert topic is not None
        return topic

    def partition(self) -> int:
        partition = self.record.kafka_partition
        return -1 if partition is None else partition

    def offset(self) -> int:
        return self.record.kafka_offset

    def key(self) -> bytes | None:
        return self.key_bytes

    def value(self) -> bytes | None:
        return self.value_bytes

    def timestamp(self) -> tuple[int, int]:
        timestamp = self.record.timestamp
        kind = _TIMESTAMP_TYPES.get(self.record.timestamp_type, 0)
        return (0, -1) if timestamp is None else (kind, timestamp)

    def headers(self) -> KafkaHeaders | None:
        return self.kafka_headers or None

    def error(self) -> Any:
        return None


def serialized(
    record: SinkRecord,
    key_converter: Converter,
    value_converter: Converter,
    header_converter: HeaderConverter,
) -> SerializedRecord:
    """Return the record as it would be in Kafka. Raises the exceptions of the converters."""
    topic = record.topic or ""
    headers = [
        (
            header.key,
            header_converter.from_connect_header(topic, header.key, header.schema, header.value),
        )
        for header in (record.headers if record.has_headers else ())
    ]
    return SerializedRecord(
        record,
        key_converter.from_connect_data(topic, headers, record.key_schema, record.key),
        value_converter.from_connect_data(topic, headers, record.value_schema, record.value),
        headers,
    )


def consumed_of(record: object) -> ConsumedMessage:
    """Return the message of a failure's record, which is a sink record or the message itself."""
    if isinstance(record, ConsumedRecord):
        return record.consumed
    message: ConsumedMessage = record  # type: ignore[assignment]  # sinks report nothing else
    return message


def origin_of(record: object) -> tuple[TopicPartition, int]:
    """Return the partition that a failure's record was consumed from, and its offset there."""
    if isinstance(record, SinkRecord):
        partition = TopicPartition(record.original_topic, record.original_kafka_partition)
        return partition, record.original_kafka_offset
    message = consumed_of(record)
    return TopicPartition(message.topic(), message.partition()), message.offset()


def place_of(record: object) -> str:
    """Return topic, partition and offset of a failure's record, without its content."""
    (topic, partition), offset = origin_of(record)
    return f"topic '{topic}', partition {partition}, offset {offset}"


def describe_consumed(record: object) -> str:
    """Return the text that `errors.log.include.messages` adds to a log line; Kafka's text."""
    message = consumed_of(record)
    timestamp_type, timestamp = message.timestamp()
    text = (
        f", where consumed record is {{topic='{message.topic()}', "
        f"partition={message.partition()}, offset={message.offset()}"
    )
    if timestamp_type:
        kind = "CreateTime" if timestamp_type == 1 else "LogAppendTime"
        text += f", timestamp={timestamp}, timestampType={kind}"
    return text + "}"


LOG = logging.getLogger(__name__)

PARTITIONS = 1
"""The number of partitions of a dead letter topic that is created here."""

SERVE_SLICE_S = 0.1

_HEADER = "__connect.errors."


def prepare_topic(admin: Admin, topic: str, *, replication_factor: int, timeout_ms: int) -> None:
    """Create the topic unless it exists. Raises ConnectException when that fails."""
    spec = TopicSpec(name=topic, partitions=PARTITIONS, replication_factor=replication_factor)
    try:
        created = admin.create_missing_topic(spec, timeout_ms)
    except KafkaError as exc:
        raise ConnectException(
            f"Could not initialize dead letter queue with topic={topic}"
        ) from exc
    if created:
        LOG.info("dead letter topic created", extra={"topic": topic})


class DeadLetterQueue:
    """The dead letter topic as a `tolerance.ErrorReporter`; the topic exists.

    `mask` hides values of config providers in texts.
    """

    def __init__(
        self,
        *,
        topic: str,
        producer: TaskProducer,
        task_id: ConnectorTaskId,
        context_headers: bool,
        counts: ErrorCounts,
        mask: Callable[[str], str] = str,
    ) -> None:
        self._topic = topic
        self._producer = producer
        self._task_id = task_id
        self._context_headers = context_headers
        self._counts = counts
        self._mask = mask
        self._closing = threading.Event()
        self._server = long_lived.Thread("dead-letter-queue", self._serve)
        self._server.start()

    def report(self, failure: Failure) -> Future[None]:
        """Send the record; the future fails with KafkaError when it cannot be delivered."""
        self._counts.dead_letter_requests += 1
        done: Future[None] = Future()
        # A sent record cannot be taken back, so `cancel` has no effect.
        done.set_running_or_notify_cancel()
        message = consumed_of(failure.record)
        headers = list(message.headers() or ())
        if self._context_headers:
            error = failure.error
            text = str(error)
            context = {
                "topic": message.topic(),
                "partition": str(message.partition()),
                "offset": str(message.offset()),
                "connector.name": self._task_id.connector,
                "task.id": str(self._task_id.task),
                "stage": failure.stage.value,
                "class.name": failure.class_name,
                "exception.class.name": class_name(error),
                "exception.message": self._mask(text) if text else None,
                "exception.stacktrace": self._mask(format_trace(error)),
            }
            headers += [
                (_HEADER + name, None if value is None else value.encode("utf-8", "replace"))
                for name, value in context.items()
            ]
        try:
            self._send(message, headers, done, place_of(failure.record))
        except CLIENT_ERRORS as exc:
            self._lost(self._explain(exc, message), done, place_of(failure.record))
        return done

    def close(self, timeout_s: float) -> None:
        """Wait for records that are being sent, then drop the rest."""
        self._closing.set()
        self._server.join()
        self._producer.close(timeout_s)

    def _serve(self) -> None:
        while not self._closing.is_set():
            try:
                self._producer.serve(SERVE_SLICE_S)
            except KafkaError as exc:
                LOG.error("the dead letter queue's producer failed", extra={"reason": str(exc)})
                self._closing.wait(SERVE_SLICE_S)

    def _send(
        self, message: ConsumedMessage, headers: KafkaHeaders, done: Future[None], place: str
    ) -> None:
        def delivered(error: Any, _message: DeliveredMessage) -> None:
            if error is None:
                done.set_result(None)
            else:
                self._lost(self._explain(error, message), done, place)

        timestamp = message.timestamp()[1]
        produce, value, key = self._producer.produce, message.value(), message.key()
        while True:
            try:
                # librdkafka reads 0 as now, for Kafka's 0 and for a record without a timestamp.
                produce(
                    self._topic,
                    value,
                    key,
                    on_delivery=delivered,
                    timestamp=max(timestamp, 0),
                    headers=headers,
                )
                return
            except BufferError:
                # Waiting for room is back-pressure, as in Java's send; the serving thread makes
                # room.
                if self._closing.wait(SERVE_SLICE_S):
                    raise

    def _explain(self, failure: Any, message: ConsumedMessage) -> KafkaError:
        size = len(message.value() or b"") + len(message.key() or b"")
        return self._producer.explain(failure, self._topic, size)

    def _lost(self, error: KafkaError, done: Future[None], place: str) -> None:
        self._counts.dead_letter_failures += 1
        LOG.error(
            "Could not produce message to dead letter queue. topic=%s",
            self._topic,
            extra={"record": place, "reason": str(error)},
        )
        done.set_exception(error)


_SINK_TASK = f"{SinkTask.__module__}.{SinkTask.__qualname__}"
_JAVA_SINK_TASK = "org.apache.kafka.connect.sink.SinkTask"


class ErrantRecords(ErrantRecordReporter):
    """The task's reporter, which the loop asks for failures too.

    The converters serialize records that the task made itself; None stands for a Java task, which
    serializes them in its process. Commits also wait for dead letters of the worker's own failures:
    a kill after the commit would lose them.
    """

    def __init__(self, tolerance: Tolerance, converters: Converters | None) -> None:
        self._tolerance = tolerance
        tolerance.on_skipped = self._skipped
        self._converters = converters
        self._task_class = _JAVA_SINK_TASK if converters is None else _SINK_TASK
        self._lock = threading.Lock()
        self._unfinished: dict[TopicPartition, set[Future[None]]] = {}
        self._lost: dict[TopicPartition, BaseException] = {}
        self._first: Failure | None = None

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Report a record; see the API.

        Raises exceptions of converters for a record that the task made.
        """
        reported: object = record
        if not isinstance(record, ConsumedRecord):
            converters = self._converters
            assert converters is not None
            reported = serialized(record, converters.key, converters.value, converters.header)
        failure = Failure(
            stage=RecordStage.TASK_PUT, class_name=self._task_class, error=error, record=reported
        )
        with self._lock:
            if self._first is None:
                # Kept before anything is raised: a task that catches the exception must fail too.
                self._first = failure
        pending = self._tolerance.failed(failure)
        if pending is None:
            pending = Future()
            pending.set_result(None)
        else:
            self._keep(origin_of(record)[0], pending)
        return pending

    def raise_failure(self) -> None:
        """Raise ConnectException when errors are not tolerated and a failure was reported."""
        failure = self._first
        if failure is not None and not self._tolerance.tolerate_all:
            raise self._tolerance.exceeded(failure) from failure.error

    def await_reports(self, partitions: Collection[TopicPartition]) -> None:
        """Wait until the reports of these partitions are durable, without a time limit.

        Raises ConnectException for a report that failed.
        """
        for partition, future in self._take(partitions):
            error = future.exception()
            if error is not None:
                # The failure ends the task, and its last commit must not pass the record either.
                self._lost[partition] = error
        for partition in partitions:
            if partition in self._lost:
                raise ConnectException(
                    "Encountered an error while awaiting an errant record future's completion."
                ) from self._lost[partition]

    def abandon(self, partitions: Collection[TopicPartition]) -> None:
        """Forget unfinished reports of lost partitions."""
        self._take(partitions)
        for partition in partitions:
            self._lost.pop(partition, None)

    def _skipped(self, record: object, pending: Future[None]) -> None:
        """Keep the report of a record that the worker left out.

        As in Kafka a report that does not reach the queue is only logged and counted.
        """
        ended: Future[None] = Future()
        self._keep(origin_of(record)[0], ended)
        pending.add_done_callback(lambda _: ended.set_result(None))

    def _keep(self, partition: TopicPartition, pending: Future[None]) -> None:
        def ended(done: Future[None]) -> None:
            # A report that has failed stays for the next commit, which raises its error.
            if done.exception() is None:
                with self._lock:
                    self._unfinished.get(partition, set()).discard(done)

        with self._lock:
            self._unfinished.setdefault(partition, set()).add(pending)
        pending.add_done_callback(ended)

    def _take(
        self, partitions: Collection[TopicPartition]
    ) -> list[tuple[TopicPartition, Future[None]]]:
        with self._lock:
            return [
                (partition, future)
                for partition in partitions
                for future in self._unfinished.pop(partition, set())
            ]


class SinkErrors:
    """The error handling of a sink task; `reports` is None when errors go nowhere.

    Making it creates the dead letter topic. Raises ConfigException, and ConnectException when the
    topic cannot be created.
    """

    def __init__(
        self, setup: TaskSetup, converters: Converters | None, *, stop_requested: threading.Event
    ) -> None:
        settings = SinkTaskSettings.parse(setup.connector_config)
        self.counts = ErrorCounts()
        self._queue: DeadLetterQueue | None = None
        if settings.dlq_topic is not None:
            worker, config, task_id = setup.worker.config, setup.connector_config, setup.task_id
            producer_id = f"connector-dlq-producer-{task_id}"
            producer = built(connector_producer(worker, config, producer_id))
            admin = built(connector_admin(worker, config, f"connector-dlq-adminclient-{task_id}"))
            prepare_topic(
                Admin(admin.properties),
                settings.dlq_topic,
                replication_factor=settings.dlq_replication_factor,
                timeout_ms=admin.default_api_timeout_ms or API_TIMEOUT_MS,
            )
            self._queue = DeadLetterQueue(
                topic=settings.dlq_topic,
                producer=TaskProducer(producer.properties),
                task_id=task_id,
                context_headers=settings.dlq_context_headers,
                counts=self.counts,
                mask=setup.worker.mask,
            )
        self.tolerance = tolerance_of(
            setup.connector_config,
            task_id=str(setup.task_id),
            describe_record=describe_consumed,
            stop_requested=stop_requested,
            place_of=place_of,
            further_reporters=() if self._queue is None else (self._queue,),
            counts=self.counts,
        )
        self.reports: ErrantRecords | None = None
        if settings.has_errant_record_reporter:
            self.reports = ErrantRecords(self.tolerance, converters)

    def close(self) -> None:
        """Wait for the records that are being sent to the dead letter queue."""
        if self._queue is not None:
            self._queue.close(CLOSE_TIMEOUT_S)


CLOSE_TIMEOUT_S = 30.0
"""How long records may take to reach the dead letter queue once the task has ended."""
