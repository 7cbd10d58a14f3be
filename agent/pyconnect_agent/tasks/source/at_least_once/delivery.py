"""The parts of a source task that commits offsets after its records (Kafka: WorkerSourceTask).

`SourceCommitter` is Kafka's SourceTaskOffsetCommitter and WorkerSourceTask.commitOffsets. Threads:
the task's thread hands over snapshots of committable offsets with `offer` and makes the final
commit; the committer's thread commits every `offset.flush.interval.ms` after the last end, and
serves the producer's callbacks while the task is busy in a long `poll`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol

from pyconnect_agent.channel import StatsReported
from pyconnect_agent.core.clients.configs import connector_producer, producers_admin
from pyconnect_agent.core.errors import AgentError, KafkaError
from pyconnect_agent.core.offsets.source import OffsetWriter, offset_value
from pyconnect_agent.core.offsets.submitted import CommittableOffsets
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.records.active_topics import ActiveTopics
from pyconnect_agent.tasks.records.tolerance import Tolerance
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup, built
from pyconnect_agent.tasks.source.at_least_once.sender import AtLeastOnceSender
from pyconnect_agent.tasks.source.loop import SourceLoop
from pyconnect_agent.tasks.source.offsets.stores import OffsetStores
from pyconnect_agent.tasks.source.sender import Sender
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_api import DataException, SourceTask, TransactionContext

LOG = logging.getLogger(__name__)

SERVE_INTERVAL_S = 0.1
EMPTY = CommittableOffsets()


class SourceCommitter:
    """`serve_if_idle` is called often; it serves callbacks when the task's thread does not."""

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
        self._flush_timeout_ms = flush_timeout_ms
        self._serve_if_idle = serve_if_idle
        self._metrics = metrics
        self._offered = EMPTY
        self._offered_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._end = threading.Event()
        self._thread = long_lived.Thread("offset-committer", self._run)
        self.last_commit_ms: int | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the timed commits; waits for one under way at most as long as that may take."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join(self._flush_timeout_ms / 1000)

    def offer(self, committable: CommittableOffsets) -> None:
        """Take newer committable offsets; called by the task's thread."""
        if committable.is_empty():
            return
        with self._offered_lock:
            self._offered = self._offered.updated_with(committable)

    def commit(self) -> bool:
        """Commit the offered offsets; False when not all of them were written.

        Offsets that could not be written for a time wait for the next commit.
        """
        began_s = time.monotonic()
        deadline = began_s + self._flush_timeout_ms / 1000
        if not self._commit_lock.acquire(timeout=self._flush_timeout_ms / 1000):
            LOG.warning("offset flush skipped: the previous one still runs")
            self._ended(began_s, success=False)
            return False
        try:
            flushed = self._flush(deadline)
            self._ended(began_s, success=flushed)
            if flushed:
                try:
                    self._task.commit()
                except Exception:  # Kafka's contract: logged, and the task goes on
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
            offered, self._offered = self._offered, EMPTY
        is_whole = True
        for partition, offset in offered.offsets.values():
            try:
                offset_value(offset)
                self._writer.put([(partition, offset)])
            except DataException:
                # An offset without bytes costs no other its commit.
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


class Delivery(Protocol):
    """A delivery guarantee: opened, driven and closed around a source task's loop."""

    transaction_context: TransactionContext | None

    @property
    def sender(self) -> Sender: ...

    def open(self) -> bool:
        """Prepare before the task is started; False when the worker asks for a stop.

        Any exception makes the task FAILED.
        """
        ...

    def begin(self, loop: SourceLoop) -> None:
        """The loop runs from now on."""
        ...

    def end(self, *, failed: bool, complete: bool) -> None:
        """The loop has ended; commit the offsets that may be committed.

        `complete` is False when a part of the last batch was not sent.
        """
        ...

    def close(self, *, failed: bool) -> None:
        """Release everything."""
        ...

    def statistics(self) -> StatsReported: ...


class AtLeastOnceDelivery:
    """Implements `Delivery`."""

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
            stop_requested=lambda: control.stopping,
            offer=lambda: self._committer.offer(self.sender.submitted.committable_offsets()),
            commit=self._committer.commit,
            flush_timeout_s=worker.offset_flush_timeout_ms / 1000,
            not_delivered=partial(metrics.left_out, 1),
        )
        self._loop: SourceLoop | None = None

    def open(self) -> bool:
        return self._offsets.start(lambda: self._control.stopping)

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
            # A producer that cannot go on says so to the task's thread as well.
            with suppress(KafkaError):
                self._producer.serve()
