"""The metrics of tasks: those of all, of sources and of sinks.

Kafka: WorkerTask.TaskMetricsGroup, ErrorHandlingMetrics, WorkerSinkTask.SinkTaskMetricsGroup and
AbstractWorkerSourceTask.SourceTaskMetricsGroup. The task's threads record everything per batch or
per commit, never per record; the thread that answers the worker process reads it.

A source's written records are not counted one by one: they are those polled, less those left out,
less those under way.
"""

import threading
import time
from collections.abc import Callable, Iterable

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import (
    PLUGIN,
    SINK_TASK,
    SOURCE_TASK,
    TASK,
    TASK_ERROR,
    GroupValues,
    Metric,
    Outcomes,
    Sampled,
    Sampling,
    StateTimes,
)
from pyconnect_agent.core.offsets.sink import SinkOffsets
from pyconnect_agent.tasks.records import ErrorCounts
from pyconnect_api import PluginMetrics


def now_ms() -> float:
    """Return the time in ms on the clock of all measurements of this process."""
    return time.monotonic() * 1000


class TaskMetrics:
    """The metrics that every task has; `errors` is set once the task has its tolerance."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.errors = ErrorCounts()
        self.plugins: tuple[Metric, ...] = ()
        """The metrics of classes and versions; the list grows while the task is made."""
        self.stages: Callable[[], Iterable[Metric]] = tuple
        """Returns the numbers of the task's transformations."""
        self.own = PluginMetrics()
        """The metrics that the task itself adds; set once it has its context."""
        self._states = StateTimes()
        self._commits = Outcomes(sampling)
        self._commit_ms = Sampled(sampling)
        self._batch_size = Sampled(sampling)

    def state_changed(self, state: State) -> None:
        self._states.changed(state, now_ms())

    def committed(self, duration_ms: float, *, success: bool) -> None:
        """Record the end of an attempt to commit offsets."""
        now = now_ms()
        self._commits.record(success=success, now_ms=now)
        if success:
            self._commit_ms.record(duration_ms, now)

    def batch(self, size: int) -> None:
        self._batch_size.record(size, now_ms())

    def plugin_values(self) -> tuple[Metric, ...]:
        """Return classes, versions, and the numbers of the transformations and of the task."""
        own = self.own.values()
        return (
            *self.plugins,
            *self.stages(),
            *(Metric(group=PLUGIN, name=name, value=value, tags=tags) for name, tags, value in own),
        )

    def values(self) -> GroupValues:
        now, errors = now_ms(), self.errors
        return {
            TASK: {
                "running-ratio": self._states.share(State.RUNNING, now),
                "pause-ratio": self._states.share(State.PAUSED, now),
                "offset-commit-max-time-ms": self._commit_ms.maximum(now),
                "offset-commit-avg-time-ms": self._commit_ms.average(now),
                "offset-commit-success-percentage": self._commits.success_share(now),
                "offset-commit-failure-percentage": self._commits.failure_share(now),
                "batch-size-max": self._batch_size.maximum(now),
                "batch-size-avg": self._batch_size.average(now),
            },
            TASK_ERROR: {
                "total-record-failures": errors.record_failures,
                "total-record-errors": errors.record_errors,
                "total-records-skipped": errors.records_skipped,
                "total-retries": errors.retries,
                "total-errors-logged": errors.errors_logged,
                "deadletterqueue-produce-requests": errors.dead_letter_requests,
                "deadletterqueue-produce-failures": errors.dead_letter_failures,
                "last-error-timestamp": errors.last_error_ms,
            },
        }


LOOK_INTERVAL_MS = 1_000
"""How often records that are not committed are counted: counting costs time per partition."""


class SinkMetrics:
    """The metrics of a sink task; `task` are those that every task has."""

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
        """The number of the last commit that has begun."""

    def read(self, size: int) -> None:
        self._read.record(size, now_ms())

    def put(self, size: int, duration_ms: float) -> None:
        """Record a batch that the task has taken."""
        now = now_ms()
        self._sent.record(size, now)
        self._put_ms.record(duration_ms, now)
        self.task.batch(size)

    def look_at(self, offsets: SinkOffsets, *, at_once: bool = False) -> None:
        """Record how many records are not committed."""
        now = now_ms()
        if at_once or now - self._looked_ms >= LOOK_INTERVAL_MS:
            self._looked_ms = now
            self._active_now = offsets.uncommitted()
            self._active.record(self._active_now, now)

    def committed(self, duration_ms: float, *, success: bool, closing: bool) -> None:
        """Record the result of the current commit."""
        self.task.committed(duration_ms, success=success)
        now = now_ms()
        if success:
            self._completions.record(1, now)
        if closing:
            self._closing_commits += 1
            self._closing_ms.record(duration_ms, now)

    def commit_skipped(self) -> None:
        """Record the result of a commit that came after a newer commit had begun."""
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


class SourceMetrics:
    """The metrics of a source task; `task` are those that every task has."""

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
        # Both the loop and the thread that answers the worker process record the records under way.
        self._lock = threading.Lock()

    def polled(self, size: int) -> None:
        """Record the records of a poll."""
        with self._lock:
            self._polled.record(size, now_ms())

    def poll_took(self, duration_ms: float) -> None:
        self._poll_ms.record(duration_ms, now_ms())

    def left_out(self, count: int) -> None:
        """Record records that were filtered, skipped, or not taken by the brokers."""
        with self._lock:
            self._left_out += count

    def under_way(self, count: int) -> None:
        """Record how many records are polled and not finished yet."""
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
        """Record a commit; the timestamp is that of the last record, 0 without one."""
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
