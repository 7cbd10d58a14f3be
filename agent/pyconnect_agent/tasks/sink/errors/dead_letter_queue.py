"""The topic that gets records which could not be processed (Kafka: DeadLetterQueueReporter).

Layer: tasks. The record goes there as it was consumed, optionally with headers that describe what
went wrong (KIP-298). A thread of its own serves the producer, so that a task may wait for the
future of a report; `report` may be called from any thread.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.kafka.admin import Admin, TopicSpec
from pyconnect_agent.kafka.task_consumer import ConsumedMessage
from pyconnect_agent.kafka.task_producer import CLIENT_ERRORS, DeliveredMessage, TaskProducer
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.records.tolerance import ErrorCounts, Failure
from pyconnect_agent.tasks.sink.errors.consumed_record import consumed_of, place_of
from pyconnect_agent.tasks.trace import class_name, format_trace
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)

PARTITIONS = 1
"""Of a dead letter topic that is created here."""

SERVE_SLICE_S = 0.1

_HEADER = "__connect.errors."

KafkaHeaders = list[tuple[str, bytes | None]]


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
    """Implements `tolerance.ErrorReporter`; the topic exists.

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
        """Wait for records that are being sent, then give up the rest."""
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
                # To librdkafka 0 means now: for Kafka's 0 and for a record without a timestamp.
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
                # Back-pressure, as Java's send; the serving thread makes room.
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
