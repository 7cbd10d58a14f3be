"""Commits an at-least-once source task's offsets, on time and at the end.

Layer: tasks. Kafka: SourceTaskOffsetCommitter and WorkerSourceTask.commitOffsets.

Threads: the task's thread hands over snapshots of committable offsets with `offer` and makes the
final commit; a thread of this object commits every `offset.flush.interval.ms` after the last end,
and serves the producer's callbacks while the task is busy in a long `poll`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.offsets.source import OffsetWriter, offset_value
from pyconnect_agent.core.offsets.submitted import CommittableOffsets
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.source.metrics import SourceMetrics
from pyconnect_api import DataException, SourceTask

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
        writable = self._put(offered)
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
        return writable

    def _put(self, offered: CommittableOffsets) -> bool:
        """Take over the offsets; False when one has no bytes, which costs no other its commit."""
        writable = True
        for partition, offset in offered.offsets.values():
            try:
                offset_value(offset)
                self._writer.put([(partition, offset)])
            except DataException:
                LOG.exception("source offset cannot be written", extra={"partition": partition})
                writable = False
        return writable

    def _run(self) -> None:
        next_commit = time.monotonic() + self._flush_interval_s
        while not self._end.wait(min(SERVE_INTERVAL_S, max(0.0, next_commit - time.monotonic()))):
            self._serve_if_idle()
            if time.monotonic() >= next_commit:
                self.commit()
                next_commit = time.monotonic() + self._flush_interval_s
