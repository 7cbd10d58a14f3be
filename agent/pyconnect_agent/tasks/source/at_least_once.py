"""At-least-once delivery: offsets are committed after their records are acknowledged.

Kafka: WorkerSourceTask, SourceTaskOffsetCommitter. Deliveries are tracked, so that the offsets of
acknowledged records can be committed.

The task's thread sends, hands over snapshots of committable offsets with `offer` and makes the
final commit. The committer's thread commits `offset.flush.interval.ms` after the end of the last
commit, and serves the producer's callbacks while the task is busy in a long `poll`.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import repeat
from typing import Any

from pyconnect_agent.channel.reports import StatsReported
from pyconnect_agent.core.clients.configs import connector_producer, producers_admin
from pyconnect_agent.core.errors import AgentError, KafkaError
from pyconnect_agent.core.offsets.source import OffsetWriter, offset_value
from pyconnect_agent.core.offsets.submitted import (
    CommittableOffsets,
    SubmittedRecord,
    SubmittedRecords,
    SubmittedRun,
)
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import (
    CLIENT_ERRORS,
    DeliveredMessage,
    OnDelivery,
    TaskProducer,
)
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import ActiveTopics, Control
from pyconnect_agent.tasks.records import Failure, RecordStage, Tolerance
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

LOG = logging.getLogger(__name__)


class AtLeastOnceSender:
    """Sends records, and tracks the acknowledged prefix, whose offsets can be committed."""

    def __init__(
        self,
        *,
        task: SourceTask,
        producer: TaskProducer,
        tolerance: Tolerance,
        topics: ActiveTopics,
        stop_requested: Callable[[], bool],
        committer: SourceCommitter,
        metrics: SourceMetrics,
    ) -> None:
        self.submitted = SubmittedRecords()
        self._producer = producer
        self._produce = producer.produce
        self._submit = self.submitted.submit
        self._tolerance = tolerance
        self._topics = topics
        self._topic_used = topics.used
        self._stop_requested = stop_requested
        self._committer = committer
        self._metrics = metrics
        self._error: KafkaError | None = None
        # Topics that have leaders and have got a record of this process.
        self._opened: set[str] = set()
        # Without it a delivery only sets a flag.
        self._hearing = hearing_of(task)
        self.hears_of_records = self._hearing is not None
        self.tracing: Tracing | None = None
        self.takes_runs = True

    def begin_iteration(self) -> None:
        self._serve(0.0)
        self._topics.refresh()
        self._committer.offer(self.submitted.committable_offsets())

    def check(self) -> None:
        if self._error is not None:
            raise ConnectException(
                "Unrecoverable exception from producer send callback"
            ) from self._error

    def resumed(self) -> None:
        """Do nothing: acknowledgements do not depend on polling."""

    def paused(self, *, complete: bool) -> None:
        """Do nothing: the timed commits go on."""

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
                # Waiting is back-pressure: Java's send blocks here too, without a time limit.
                if self._stop_requested():
                    submitted.drop()
                    raise RetriableException("The producer's queue is full") from None
                self._serve(QUEUE_FULL_WAIT_S)
            except CLIENT_ERRORS as exc:
                error = explained(self._producer, exc, outgoing)
                if self._producer.is_asynchronous(exc):
                    self._failed(record, submitted.ack, error)
                    return
                submitted.drop()
                if error.retriable:
                    raise RetriableException(str(error)) from exc
                raise ConnectException("Unrecoverable exception trying to send") from error

    def _open(self, topic: str) -> None:
        try:
            self._producer.open_topic(
                topic, give_up=lambda: self._error is not None or self._stop_requested()
            )
        except KafkaError as exc:
            raise ConnectException("Unrecoverable exception from producer send callback") from exc
        self._opened.add(topic)

    def send_run(self, run: OutgoingRun) -> None:
        while run.taken < len(run) and not run.distinct_topics <= self._opened:
            self.send(run.records[run.taken], run.at(run.taken))
            run.taken += 1
        while run.taken < len(run):
            # A record that was refused may have failed the task since the last check.
            self.check()
            rest = run.rest()
            submitted, callbacks = self._submitted(rest)
            if self.tracing is not None:
                callbacks = self.tracing.watched(rest.topics, rest.headers, callbacks)
            taken = self._producer.produce_many(rest, callbacks)
            run.taken += taken
            if taken == len(rest):
                return
            for places, part in submitted:
                size = bisect_left(places, taken)
                part.cut(rest.records[places[size - 1]].source_offset if size else None, size)
            self.send(rest.records[taken], rest.at(taken))
            run.taken += 1

    def dropped(self, record: SourceRecord) -> None:
        self._tell((record,), 0, None)

    def batch_sent(self) -> None:
        self._serve(0.0)

    def finish(self, *, failed: bool, complete: bool) -> None:  # noqa: ARG002  acknowledged offsets count anyway
        try:
            self._producer.drain(
                self._committer.flush_timeout_ms / 1000, until=lambda: self.in_flight() == 0
            )
        except KafkaError as exc:
            LOG.warning("could not wait for deliveries", extra={"reason": str(exc)})
        self._committer.offer(self.submitted.committable_offsets())
        self._committer.commit()

    def in_flight(self) -> int:
        return self._producer.in_flight()

    def _submitted(
        self, run: OutgoingRun
    ) -> tuple[Sequence[tuple[Sequence[int], SubmittedRun]], Iterable[OnDelivery | None]]:
        """Submit the records by source partition; return the submitted parts and the callbacks.

        A part: the places of a partition's records in the run, and these as submitted.
        """
        records = run.records
        delivered = partial(self._delivered_in_run, set(run.distinct_topics), records)
        # Only reports and tasks with their own `commit_record` need a failure's record.
        told = self._tolerance.tolerate_all or self._hearing is not None
        parts: list[tuple[Sequence[int], SubmittedRun]] = []
        callbacks: list[OnDelivery | None] = [None] * len(run)
        for partition, offset, mine in by_partition(records):
            timestamp = run.timestamps[mine[-1]]
            submitted = self.submitted.submit_run(partition, offset, len(mine), timestamp)
            parts.append((mine, submitted))
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
        """Note a record's result; `silent` are topics of the run without a delivered record."""
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
        self._metrics.left_out(1)
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


SERVE_INTERVAL_S = 0.1


class SourceCommitter:
    """The timed commits; `serve_if_idle` serves callbacks when the task's thread does not."""

    def __init__(
        self,
        *,
        connector: str,
        task: SourceTask,
        write: Callable[[dict[bytes, bytes | None], int], None],
        flush_interval_ms: int,
        flush_timeout_ms: int,
        serve_if_idle: Callable[[], None],
        metrics: SourceMetrics,
    ) -> None:
        self._task = task
        self._write = write
        self._writer = OffsetWriter(connector)
        self._flush_interval_s = flush_interval_ms / 1000
        self.flush_timeout_ms = flush_timeout_ms
        self._serve_if_idle = serve_if_idle
        self._metrics = metrics
        self._offered = CommittableOffsets()
        self._offered_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._end = threading.Event()
        self._thread = long_lived.Thread("offset-committer", self._run)
        self.last_commit_ms: int | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the timed commits; wait for one under way, at most for its own time limit."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(self.flush_timeout_ms / 1000)

    def offer(self, committable: CommittableOffsets) -> None:
        """Take newer committable offsets; called by the task's thread."""
        if committable.is_empty():
            return
        with self._offered_lock:
            self._offered = self._offered.updated_with(committable)

    def commit(self) -> bool:
        """Commit the offered offsets; return False when not all of them were written.

        The next commit tries again offsets that could not be written for a time.
        """
        began_s = time.monotonic()
        deadline = began_s + self.flush_timeout_ms / 1000
        if not self._commit_lock.acquire(timeout=self.flush_timeout_ms / 1000):
            LOG.warning("offset flush skipped: the previous one still runs")
            self._ended(began_s, success=False)
            return False
        try:
            flushed = self._flush(deadline)
            self._ended(began_s, success=flushed)
            if flushed:
                try:
                    self._task.commit()
                except Exception:  # Kafka's contract: the error is logged, and the task goes on
                    LOG.exception("SourceTask.commit failed")
            return flushed
        finally:
            self._commit_lock.release()

    def _ended(self, began_s: float, *, success: bool) -> None:
        self._metrics.task.committed((time.monotonic() - began_s) * 1000, success=success)
        if success:
            self.last_commit_ms = int(time.time() * 1000)

    def _flush(self, deadline: float) -> bool:
        with self._offered_lock:
            offered, self._offered = self._offered, CommittableOffsets()
        is_whole = True
        for partition, offset in offered.offsets.values():
            try:
                offset_value(offset)
                self._writer.put([(partition, offset)])
            except DataException:
                # An offset without bytes must not keep others from their commit.
                LOG.exception("source offset cannot be written", extra={"partition": partition})
                is_whole = False
        entries = self._writer.begin_flush()
        if entries:
            remaining_ms = max(0, int((deadline - time.monotonic()) * 1000))
            try:
                self._write(entries, remaining_ms)
            except (AgentError, OSError):
                self._writer.cancel_flush()
                LOG.exception("source offsets were not committed; the next commit tries again")
                return False
            self._writer.end_flush()
            self._metrics.committed_until(offered.timestamp)
            LOG.info(
                "source offsets committed",
                extra={
                    "partitions": len(entries),
                    "records": offered.committable_count,
                    "pending": offered.uncommittable_count,
                },
            )
        return is_whole

    def _run(self) -> None:
        next_commit = time.monotonic() + self._flush_interval_s
        while not self._end.wait(min(SERVE_INTERVAL_S, max(0.0, next_commit - time.monotonic()))):
            self._serve_if_idle()
            if time.monotonic() >= next_commit:
                self.commit()
                next_commit = time.monotonic() + self._flush_interval_s


CLOSE_TIMEOUT_S = 30.0
"""Kafka's constant for closing a source task's producer."""


class AtLeastOnceDelivery:
    """At-least-once delivery as a `loop.Delivery`."""

    transaction_context: TransactionContext | None = None

    def __init__(
        self,
        task: SourceTask,
        setup: TaskSetup,
        control: Control,
        *,
        tolerance: Tolerance,
        metrics: SourceMetrics,
        topics: ActiveTopics,
        offsets: OffsetStores,
    ) -> None:
        worker, overrides = setup.worker.config, setup.connector_config
        producer_id = f"connector-producer-{setup.task_id}"
        admin_id = f"connector-leaders-{setup.task_id}"
        self._control = control
        self._offsets = offsets
        self._producer = TaskProducer(
            built(connector_producer(worker, overrides, producer_id)).properties,
            lambda: Admin(built(producers_admin(worker, overrides, admin_id)).properties),
        )
        self._committer = SourceCommitter(
            connector=setup.task_id.connector,
            task=task,
            write=offsets.write,
            flush_interval_ms=worker.offset_flush_interval_ms,
            flush_timeout_ms=worker.offset_flush_timeout_ms,
            serve_if_idle=self._serve_if_idle,
            metrics=metrics,
        )
        self.sender = AtLeastOnceSender(
            task=task,
            producer=self._producer,
            tolerance=tolerance,
            topics=topics,
            stop_requested=control.stop_requested.is_set,
            committer=self._committer,
            metrics=metrics,
        )
        self._loop: SourceLoop | None = None

    def open(self) -> bool:
        return self._offsets.start(self._control.stop_requested.is_set)

    def begin(self, loop: SourceLoop) -> None:
        self._loop = loop
        self._committer.start()

    def end(self, *, failed: bool, complete: bool) -> None:
        self._committer.stop()
        self.sender.finish(failed=failed, complete=complete)

    def close(self, *, failed: bool) -> None:
        self._producer.close(0.0 if failed else CLOSE_TIMEOUT_S)
        self._offsets.close()

    def statistics(self) -> StatsReported:
        return StatsReported(
            last_commit_ms=self._committer.last_commit_ms, queue_size=self._producer.in_flight()
        )

    def _serve_if_idle(self) -> None:
        """Serve the producer's callbacks while the task's thread waits in `poll`."""
        assert self._loop is not None
        since = self._loop.polling_since_s
        if since is not None and time.monotonic() - since > SERVE_INTERVAL_S:
            # The producer reports a fatal error to the task's thread as well.
            with suppress(KafkaError):
                self._producer.serve()
