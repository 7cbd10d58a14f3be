"""The metrics that all tasks have.

Layer: tasks. Kafka: WorkerTask.TaskMetricsGroup and ErrorHandlingMetrics. Everything is recorded
per batch or per commit, never per record. Recorded by the task's threads, read by the one that
answers the worker process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metrics.catalog import PLUGIN, TASK, TASK_ERROR
from pyconnect_agent.core.metrics.values import (
    GroupValues,
    Metric,
    Outcomes,
    Sampled,
    Sampling,
    StateTimes,
)
from pyconnect_agent.tasks.records.tolerance import ErrorCounts
from pyconnect_api import PluginMetrics


def now_ms() -> float:
    """The clock of all measurements of this process."""
    return time.monotonic() * 1000


class TaskMetrics:
    """`errors` is set once the task has its tolerance."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.errors = ErrorCounts()
        self.plugins: tuple[Metric, ...] = ()
        """Classes and versions; grows while the task is made."""
        self.stages: Callable[[], Iterable[Metric]] = tuple
        """Returns the numbers of the task's transformations."""
        self.own = PluginMetrics()
        """The task's; set once it has its context."""
        self._states = StateTimes()
        self._commits = Outcomes(sampling)
        self._commit_ms = Sampled(sampling)
        self._batch_size = Sampled(sampling)

    def state_changed(self, state: State) -> None:
        self._states.changed(state, now_ms())

    def committed(self, duration_ms: float, *, success: bool) -> None:
        """An attempt to commit offsets has ended."""
        now = now_ms()
        self._commits.record(success=success, now_ms=now)
        if success:
            self._commit_ms.record(duration_ms, now)

    def batch(self, size: int) -> None:
        self._batch_size.record(size, now_ms())

    def plugin_values(self) -> tuple[Metric, ...]:
        """Return classes, versions, and the numbers of transformations and of the task's own."""
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
