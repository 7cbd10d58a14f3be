"""Sends a source task's converted records at-least-once.

Kafka: WorkerSourceTask. Deliveries are tracked, so that the offsets of acknowledged records can be
committed; `delivery.py` does that. Called on the task's thread only.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any

from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.offsets.submitted import (
    SubmittedRecord,
    SubmittedRecords,
    SubmittedRun,
)
from pyconnect_agent.kafka.task_producer import (
    CLIENT_ERRORS,
    DeliveredMessage,
    OnDelivery,
    TaskProducer,
)
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.records.tolerance import Failure, RecordStage, Tolerance
from pyconnect_agent.tasks.source.columns import Outgoing, OutgoingRun, by_partition
from pyconnect_agent.tasks.source.sender import (
    QUEUE_FULL_WAIT_S,
    hearing_of,
    metadata_of,
    size_of,
)
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import (
    ConnectException,
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
)

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _PartOfRun:
    """The records of a run that are of one source partition, by their places in it."""

    places: Sequence[int]
    submitted: SubmittedRun

    def cut(self, records: Sequence[SourceRecord], taken: int) -> None:
        """Keep the entries of the first `taken` records of the run."""
        size = bisect_left(self.places, taken)
        offset = records[self.places[size - 1]].source_offset if size else None
        self.submitted.cut(offset, size)


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
        commit: Callable[[], object],
        flush_timeout_s: float,
        not_delivered: Callable[[], None],
    ) -> None:
        """`topics` is called with every topic that a record was delivered to.

        `offer` hands committable offsets to the committer, `commit` makes it commit now.
        `not_delivered` is called with each record that the brokers refused.
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
        # Topics whose first record of this process has been delivered, and that have leaders.
        self._opened: set[str] = set()
        # Without it a delivery is only a flag set.
        self._hearing = hearing_of(task)
        self.hears_of_records = self._hearing is not None
        self.tracing: Tracing | None = None
        self.takes_runs = True

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
        submitted = self._submit(record.source_partition, record.source_offset, timestamp)
        done: OnDelivery | None = partial(self._delivered, submitted, record, topic)
        if self.tracing is not None:
            (done,) = self.tracing.watched((topic,), (headers,), (done,))
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
                if topic not in self._opened:
                    self._open(topic)
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

    def _open(self, topic: str) -> None:
        def give_up() -> bool:
            return self._error is not None or self._stop_requested()

        try:
            self._producer.open_topic(topic, give_up=give_up)
        except KafkaError as exc:
            raise ConnectException("Unrecoverable exception from producer send callback") from exc
        self._opened.add(topic)

    def send_run(self, run: OutgoingRun) -> None:
        while run.taken < len(run) and not run.distinct_topics <= self._opened:
            self.send(run.records[run.taken], run.at(run.taken))
            run.taken += 1
        while run.taken < len(run):
            # A record that was refused may have failed the task since.
            self.check()
            rest = run.rest()
            submitted, callbacks = self._submitted(rest)
            if self.tracing is not None:
                callbacks = self.tracing.watched(rest.topics, rest.headers, callbacks)
            taken = self._producer.produce_many(rest, callbacks)
            run.taken += taken
            if taken == len(rest):
                return
            for part in submitted:
                part.cut(rest.records, taken)
            self.send(rest.records[taken], rest.at(taken))
            run.taken += 1

    def dropped(self, record: SourceRecord) -> None:
        self._tell((record,), 0, None)

    def batch_sent(self) -> None:
        self._serve(0.0)

    def finish(self, *, failed: bool, complete: bool) -> None:  # noqa: ARG002  acknowledged offsets count anyway
        try:
            self._producer.drain(self._flush_timeout_s, until=lambda: self.in_flight() == 0)
        except KafkaError as exc:
            LOG.warning("could not wait for deliveries", extra={"reason": str(exc)})
        self._offer()
        self._commit()

    def in_flight(self) -> int:
        return self._producer.in_flight()

    def _submitted(
        self, run: OutgoingRun
    ) -> tuple[Sequence[_PartOfRun], Iterable[OnDelivery | None]]:
        """Submit the records by their source partitions; return these, and a callback for each."""
        records = run.records
        delivered = partial(self._delivered_in_run, set(run.distinct_topics), records)
        # The record of a failure is reported where failures are tolerated.
        told = self._tolerance.tolerate_all or self._hearing is not None
        parts: list[_PartOfRun] = []
        callbacks: list[OnDelivery | None] = [None] * len(run)
        for partition, offset, mine in by_partition(records):
            timestamp = run.timestamps[mine[-1]]
            submitted = self.submitted.submit_run(partition, offset, len(mine), timestamp)
            parts.append(_PartOfRun(mine, submitted))
            done = partial(delivered, submitted.acknowledge)
            dones = map(partial, repeat(done), mine) if told else repeat(partial(done, None))
            if len(mine) == len(run):
                return parts, dones
            for place, callback in zip(mine, dones, strict=False):
                callbacks[place] = callback
        return parts, callbacks

    def _delivered_in_run(  # noqa: PLR0917  the client calls a partial by position
        self,
        silent: set[str],
        records: Sequence[SourceRecord],
        acknowledge: Callable[[None], None],
        place: int | None,
        failure: Any,
        message: DeliveredMessage,
    ) -> None:
        """`silent`: topics of the run that no record was delivered to yet."""
        if failure is None:
            if silent and (topic := message.topic() or "") in silent:
                silent.discard(topic)
                self._topic_used(topic)
            if self._hearing is not None and place is not None:
                self._tell(records, place, metadata_of(message))
            acknowledge(None)
            return
        size = len(message)  # type: ignore[arg-type]  # bytes of the value
        error = self._producer.explain(failure, message.topic() or "", size)
        record = None if place is None else records[place]
        self._failed(record, partial(acknowledge, None), error)

    def _serve(self, timeout_s: float) -> None:
        try:
            self._producer.serve(timeout_s)
        except KafkaError as exc:
            raise ConnectException("Unrecoverable exception from producer send callback") from exc

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
            self._failed(record, submitted.ack, error)
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
            self._failed(record, submitted.ack, self._producer.explain(failure, topic, size))
            return
        if self._hearing is not None:
            self._tell((record,), 0, metadata_of(message))
        submitted.acked = True
        self._topic_used(topic)

    def _failed(
        self, record: SourceRecord | None, acknowledge: Callable[[], object], error: KafkaError
    ) -> None:
        self._not_delivered()
        if not self._tolerance.tolerate_all:
            if self._error is None:
                self._error = error
            return
        self._tolerance.failed(
            Failure(
                stage=RecordStage.KAFKA_PRODUCE,
                class_name=f"{__name__}.{type(self).__qualname__}",
                error=error,
                record=record,
            )
        )
        if record is not None:
            self._tell((record,), 0, None)
        acknowledge()

    def _tell(
        self, records: Sequence[SourceRecord], place: int, metadata: RecordMetadata | None
    ) -> None:
        if self._hearing is not None:
            self._hearing.tell(self._hearing.known_as(records)[place], metadata)
