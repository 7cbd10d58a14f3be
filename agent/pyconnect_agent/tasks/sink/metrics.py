"""The metrics of a sink task.

Layer: tasks. Kafka: WorkerSinkTask.SinkTaskMetricsGroup.
"""

from __future__ import annotations

from pyconnect_agent.core.metrics.catalog import SINK_TASK
from pyconnect_agent.core.metrics.values import GroupValues, Sampled
from pyconnect_agent.core.offsets.sink import SinkOffsets
from pyconnect_agent.tasks.task_metrics import TaskMetrics, now_ms

LOOK_INTERVAL_MS = 1_000
"""How often it is looked how many records are not committed: that costs time per partition."""


class SinkMetrics:
    """`task` are the metrics that every task has."""

    def __init__(self, task: TaskMetrics) -> None:
        self.task = task
        sampling = task.sampling
        self._read = Sampled(sampling)
        self._sent = Sampled(sampling)
        self._put_ms = Sampled(sampling)
        self._completions = Sampled(sampling)
        self._skips = Sampled(sampling)
        self._closing_ms = Sampled(sampling)
        self._active = Sampled(sampling)
        self._active_now = 0
        self._looked_ms = 0.0
        self._closing_commits = 0
        self.partition_count = 0
        self.sequence = 0
        """Of the last commit that has begun."""

    def read(self, size: int) -> None:
        self._read.record(size, now_ms())

    def put(self, size: int, duration_ms: float) -> None:
        """The task has taken a batch."""
        now = now_ms()
        self._sent.record(size, now)
        self._put_ms.record(duration_ms, now)
        self.task.batch(size)

    def look_at(self, offsets: SinkOffsets, *, at_once: bool = False) -> None:
        """See how far commits are behind."""
        now = now_ms()
        if at_once or now - self._looked_ms >= LOOK_INTERVAL_MS:
            self._looked_ms = now
            self._active_now = offsets.uncommitted()
            self._active.record(self._active_now, now)

    def committed(self, duration_ms: float, *, success: bool, closing: bool) -> None:
        """The result of the current commit has come."""
        self.task.committed(duration_ms, success=success)
        now = now_ms()
        if success:
            self._completions.record(1, now)
        if closing:
            self._closing_commits += 1
            self._closing_ms.record(duration_ms, now)

    def commit_skipped(self) -> None:
        """The result of a commit came when a newer one had begun."""
        self._skips.record(1, now_ms())

    def values(self) -> GroupValues:
        now = now_ms()
        return {
            **self.task.values(),
            SINK_TASK: {
                "sink-record-read-rate": self._read.rate(now),
                "sink-record-read-total": self._read.total,
                "sink-record-send-rate": self._sent.rate(now),
                "sink-record-send-total": self._sent.total,
                "sink-record-active-count": self._active_now,
                "sink-record-active-count-max": self._active.maximum(now),
                "sink-record-active-count-avg": self._active.average(now),
                "partition-count": self.partition_count,
                "offset-commit-seq-no": self.sequence,
                "offset-commit-completion-rate": self._completions.rate(now),
                "offset-commit-completion-total": self._completions.total,
                "offset-commit-skip-rate": self._skips.rate(now),
                "offset-commit-skip-total": self._skips.total,
                "put-batch-max-time-ms": self._put_ms.maximum(now),
                "put-batch-avg-time-ms": self._put_ms.average(now),
                "sink-closing-commit-total": self._closing_commits,
                "sink-closing-commit-time-ms": self._closing_ms.average(now),
            },
        }
