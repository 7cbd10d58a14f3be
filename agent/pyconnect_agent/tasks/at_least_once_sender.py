"""How a source task's converted records go out at-least-once.

Layer: tasks. Kafka: WorkerSourceTask. Deliveries are tracked, so that the offsets of what was
acknowledged can be committed; `source_committer.py` does that. Called on the task's thread only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.submitted import SubmittedRecord, SubmittedRecords
from pyconnect_agent.kafka.task_producer import CLIENT_ERRORS, DeliveredMessage, TaskProducer
from pyconnect_agent.tasks.active_topics import ActiveTopics
from pyconnect_agent.tasks.source_pipeline import Outgoing
from pyconnect_agent.tasks.source_sender import (
    QUEUE_FULL_WAIT_S,
    commit_record_of,
    metadata_of,
    size_of,
    tell,
)
from pyconnect_agent.tasks.tolerance import Failure, Stage, Tolerance
from pyconnect_api import (
    ConnectException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)

LOG = logging.getLogger(__name__)


class AtLeastOnceSender:
    """Tracks acknowledgements, so that offsets of the acknowledged prefix can be committed."""

    def __init__(
        self,
        *,
        task: SourceTask,
        producer: TaskProducer,
        tolerance: Tolerance,
        topics: ActiveTopics,
        stop_requested: Callable[[], bool],
        offer: Callable[[], None],
        commit: Callable[[], None],
        flush_timeout_s: float,
        not_delivered: Callable[[], None],
    ) -> None:
        """`topics` hears of every topic that a record was delivered to.

        `offer` hands what is committable to the committer, `commit` makes it commit now.
        `not_delivered` hears of each record that the brokers did not take.
        """
        self.submitted = SubmittedRecords()
        self._producer = producer
        self._produce = producer.produce
        self._submit = self.submitted.submit
        self._tolerance = tolerance
        self._topics = topics
        self._topic_used = topics.used
        self._stop_requested = stop_requested
        self._offer = offer
        self._commit = commit
        self._flush_timeout_s = flush_timeout_s
        self._not_delivered = not_delivered
        self._error: KafkaError | None = None
        # Without it a delivery is only a flag set.
        self._commit_record = commit_record_of(task)

    def begin_iteration(self) -> None:
        self._serve(0.0)
        self._topics.refresh()
        self._offer()

    def check(self) -> None:
        if self._error is not None:
            raise ConnectException(
                "Unrecoverable exception from producer send callback"
            ) from self._error

    def resumed(self) -> None:
        """Acknowledgements do not depend on it."""

    def paused(self, *, complete: bool) -> None:
        """The timed commits go on."""

    def send(self, record: SourceRecord, outgoing: Outgoing) -> None:
        if self._error is not None:
            self.check()
        topic, value, key, kafka_partition, timestamp, headers = outgoing
        submitted = self._submit(record.source_partition, record.source_offset)
        done = partial(self._delivered, submitted, record, topic)
        while True:
            try:
                if headers is None:
                    self._produce(topic, value, key, kafka_partition, done, timestamp=timestamp)
                else:
                    self._produce(
                        topic,
                        value,
                        key,
                        kafka_partition,
                        done,
                        timestamp=timestamp,
                        headers=headers,
                    )
                return
            except BufferError:
                # Back-pressure: Java's send blocks here as long as it takes.
                if self._stop_requested():
                    submitted.drop()
                    raise RetriableException("The producer's queue is full") from None
                self._serve(QUEUE_FULL_WAIT_S)
            except CLIENT_ERRORS as exc:
                self._refused(record, outgoing, submitted, exc)
                return

    def dropped(self, record: SourceRecord) -> None:
        self._tell(record, None)

    def batch_sent(self) -> None:
        self._serve(0.0)

    def finish(self, *, failed: bool, complete: bool) -> None:  # noqa: ARG002  acknowledged offsets count anyway
        try:
            self._producer.drain(self._flush_timeout_s, until=self._settled)
        except KafkaError as exc:
            LOG.warning("could not wait for deliveries", extra={"reason": str(exc)})
        self._offer()
        self._commit()

    def in_flight(self) -> int:
        return self._producer.in_flight()

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.serve(timeout_s)
        except KafkaError as exc:
            raise ConnectException("Unrecoverable exception from producer send callback") from exc

    def _settled(self) -> bool:
        return self.in_flight() == 0

    def _refused(
        self,
        record: SourceRecord,
        outgoing: Outgoing,
        submitted: SubmittedRecord,
        failure: BaseException,
    ) -> None:
        error = self._producer.explain(failure, outgoing[0], size_of(outgoing))
        error.__cause__ = failure
        if self._producer.is_asynchronous(failure):
            self._failed(record, submitted, error)
            return
        submitted.drop()
        if error.retriable:
            raise RetriableException(str(error)) from failure
        raise ConnectException("Unrecoverable exception trying to send") from error

    def _delivered(
        self,
        submitted: SubmittedRecord,
        record: SourceRecord,
        topic: str,
        failure: Any,
        message: DeliveredMessage,
    ) -> None:
        if failure is not None:
            size = len(message)  # type: ignore[arg-type]  # bytes of the value
            self._failed(record, submitted, self._producer.explain(failure, topic, size))
            return
        if self._commit_record is not None:
            self._tell(record, metadata_of(message))
        submitted.acked = True
        self._topic_used(topic)

    def _failed(self, record: SourceRecord, submitted: SubmittedRecord, error: KafkaError) -> None:
        self._not_delivered()
        if not self._tolerance.tolerate_all:
            if self._error is None:
                self._error = error
            return
        self._tolerance.failed(
            Failure(
                stage=Stage.KAFKA_PRODUCE,
                class_name=f"{__name__}.{type(self).__qualname__}",
                error=error,
                record=record,
            )
        )
        self._tell(record, None)
        submitted.ack()

    def _tell(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        if self._commit_record is not None:
            tell(self._commit_record, record, metadata)
