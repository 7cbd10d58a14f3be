"""The metrics of a source task.

Layer: tasks. Kafka: AbstractWorkerSourceTask.SourceTaskMetricsGroup. Records that were written are
not counted one by one: they are those polled, less those left out, less those under way.
"""

from __future__ import annotations

import threading
import time

from pyconnect_agent.core.metrics.catalog import SOURCE_TASK
from pyconnect_agent.core.metrics.values import GroupValues, Sampled
from pyconnect_agent.tasks.task_metrics import TaskMetrics, now_ms


class SourceMetrics:
    """`task` are the metrics that every task has."""

    def __init__(self, task: TaskMetrics) -> None:
        self.task = task
        sampling = task.sampling
        self._polled = Sampled(sampling)
        self._poll_ms = Sampled(sampling)
        self._written = Sampled(sampling)
        self._active = Sampled(sampling)
        self._transaction_size = Sampled(sampling)
        self._lag_ms = Sampled(sampling)
        self._left_out = 0
        self._active_now = 0
        # The loop and the thread that answers the worker process read the records under way.
        self._lock = threading.Lock()

    def polled(self, size: int) -> None:
        """Records of a poll have come."""
        with self._lock:
            self._polled.record(size, now_ms())

    def poll_took(self, duration_ms: float) -> None:
        self._poll_ms.record(duration_ms, now_ms())

    def left_out(self, count: int) -> None:
        """Records were filtered, skipped, or not taken by the brokers."""
        with self._lock:
            self._left_out += count

    def under_way(self, count: int) -> None:
        """So many records are polled and not finished yet."""
        with self._lock:
            now = now_ms()
            finished = self._polled.total - self._left_out - count
            if finished > self._written.total:
                self._written.record(finished - self._written.total, now)
            self._active_now = count
            self._active.record(count, now)

    def transaction_committed(self, size: int) -> None:
        self._transaction_size.record(size, now_ms())

    def committed_until(self, timestamp_ms: int) -> None:
        """Offsets are committed; the timestamp is that of the last record, 0 without one."""
        if timestamp_ms > 0:
            self._lag_ms.record(time.time() * 1000 - timestamp_ms, now_ms())

    def values(self) -> GroupValues:
        now = now_ms()
        return {
            **self.task.values(),
            SOURCE_TASK: {
                "source-record-poll-rate": self._polled.rate(now),
                "source-record-poll-total": self._polled.total,
                "source-record-write-rate": self._written.rate(now),
                "source-record-write-total": self._written.total,
                "poll-batch-max-time-ms": self._poll_ms.maximum(now),
                "poll-batch-avg-time-ms": self._poll_ms.average(now),
                "source-record-active-count": self._active_now,
                "source-record-active-count-max": self._active.maximum(now),
                "source-record-active-count-avg": self._active.average(now),
                "source-record-commit-lag-max-ms": self._lag_ms.maximum(now),
                "source-record-commit-lag-avg-ms": self._lag_ms.average(now),
                "transaction-size-min": self._transaction_size.minimum(now),
                "transaction-size-max": self._transaction_size.maximum(now),
                "transaction-size-avg": self._transaction_size.average(now),
            },
        }
