"""Metrics: a value as it leaves the worker, and the recorder of values over the sample windows.

Kafka: MetricName without the description, SampledStat with Avg, Max, Min, Rate, Frequencies, and
Connect's StateTracker, HerderMetrics and WorkerMetricsGroup. One thread records; others may read at
any time and see a value of just before or just after.

`DESCRIPTIONS` has all metrics of a worker, with the groups and names of ConnectMetricsRegistry.
These are this worker's own: the two metrics of `sink-task-metrics` that begin with `sink-closing`,
`agent-restart-metrics`, the lag of `source-task-metrics` and the numbers of
`connector-transform-metrics`. `mbeans` has the numbers that Java plugins show by JMX, and
`plugin-metrics` those of Python tasks; their names are not known here. `sink-record-lag-max` is
left out: Kafka declares it and never gives it a value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pyconnect_agent.core.ids import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """`metrics.num.samples` windows of `metrics.sample.window.ms` each."""

    count: int = 2
    window_ms: int = 30_000


DEFAULT_SAMPLING = Sampling()


@dataclass(slots=True)
class _Sample:
    began_ms: float
    events: int = 0
    total: float = 0.0
    maximum: float = -math.inf
    minimum: float = math.inf


class Sampled:
    """A measured quantity. Times are milliseconds of one monotonic clock."""

    def __init__(self, sampling: Sampling) -> None:
        self._sampling = sampling
        self._samples: tuple[_Sample, ...] = ()
        self.total = 0.0
        """The sum of all values since the start."""

    def record(self, value: float, now_ms: float) -> None:
        sampling = self._sampling
        if not self._samples or now_ms - self._samples[-1].began_ms >= sampling.window_ms:
            kept = self._samples[len(self._samples) - sampling.count + 1 :] if self._samples else ()
            self._samples = (*kept, _Sample(now_ms))
        sample = self._samples[-1]
        sample.events += 1
        sample.total += value
        sample.maximum = max(sample.maximum, value)
        sample.minimum = min(sample.minimum, value)
        self.total += value

    def average(self, now_ms: float) -> float:
        """Return the average; NaN, as are the extremes, if no value was recorded lately."""
        samples = self._current(now_ms)
        events = sum(sample.events for sample in samples)
        return sum(sample.total for sample in samples) / events if events else math.nan

    def maximum(self, now_ms: float) -> float:
        return max((sample.maximum for sample in self._current(now_ms)), default=math.nan)

    def minimum(self, now_ms: float) -> float:
        return min((sample.minimum for sample in self._current(now_ms)), default=math.nan)

    def rate(self, now_ms: float) -> float:
        """Return the sum of the values per second.

        As in Kafka the time is at least all windows but one, so that a first value after a pause
        does not look like a burst.
        """
        samples, sampling = self._current(now_ms), self._sampling
        if not samples:
            return 0.0
        elapsed_ms = now_ms - samples[0].began_ms
        missing = sampling.count - 1 - int(elapsed_ms // max(1, sampling.window_ms))
        elapsed_ms += max(0, missing) * sampling.window_ms
        return sum(sample.total for sample in samples) / max(elapsed_ms, 1.0) * 1000

    def _current(self, now_ms: float) -> tuple[_Sample, ...]:
        oldest_ms = now_ms - self._sampling.count * self._sampling.window_ms
        return tuple(sample for sample in self._samples if sample.began_ms > oldest_ms)


class Outcomes:
    """Shares of successes and failures, between 0 and 1; both are 0 before the first outcome."""

    def __init__(self, sampling: Sampling) -> None:
        self._successes = Sampled(sampling)

    def record(self, *, success: bool, now_ms: float) -> None:
        self._successes.record(float(success), now_ms)

    def success_share(self, now_ms: float) -> float:
        share = self._successes.average(now_ms)
        return 0.0 if math.isnan(share) else share

    def failure_share(self, now_ms: float) -> float:
        share = self._successes.average(now_ms)
        return 0.0 if math.isnan(share) else 1.0 - share


class StateTimes:
    """The time that a connector or task has been in each state since it first had one."""

    def __init__(self) -> None:
        self._state: State | None = None
        self._since_ms = 0.0
        self._before_ms: dict[State, float] = {}

    def changed(self, state: State, now_ms: float) -> None:
        if self._state is not None:
            spent_ms = self._before_ms.get(self._state, 0.0) + now_ms - self._since_ms
            self._before_ms[self._state] = spent_ms
        self._state, self._since_ms = state, now_ms

    def share(self, state: State, now_ms: float) -> float:
        """Return the share of a state, between 0 and 1; 0 before the first state."""
        spent_ms = dict(self._before_ms)
        if self._state is not None:
            running_ms = now_ms - self._since_ms
            spent_ms[self._state] = spent_ms.get(self._state, 0.0) + running_ms
        total_ms = sum(spent_ms.values())
        return spent_ms.get(state, 0.0) / total_ms if total_ms > 0 else 0.0


class Rebalances:
    """The number and times of rebalances. `now_ms` of one clock; repeated calls have no effect."""

    def __init__(self, sampling: Sampling) -> None:
        self._times_ms = Sampled(sampling)
        self._completed = 0
        self._began_ms: float | None = None
        self._ended_ms: float | None = None

    def under_way(self, now_ms: float) -> None:
        if self._began_ms is None:
            self._began_ms = now_ms

    def over(self, now_ms: float) -> None:
        if self._began_ms is not None:
            self._times_ms.record(now_ms - self._began_ms, now_ms)
            self._completed += 1
            self._began_ms, self._ended_ms = None, now_ms

    def values(self, now_ms: float) -> dict[str, MetricValue]:
        """Return all metrics of the group except protocol, leader and epoch."""
        ended_ms = self._ended_ms
        return {
            "completed-rebalances-total": self._completed,
            "rebalancing": float(self._began_ms is not None),
            "rebalance-max-time-ms": self._times_ms.maximum(now_ms),
            "rebalance-avg-time-ms": self._times_ms.average(now_ms),
            "time-since-last-rebalance-ms": math.inf if ended_ms is None else now_ms - ended_ms,
        }


class Startups:
    """The outcomes of starts. `what` is `connector` or `task`."""

    def __init__(self, what: str, sampling: Sampling) -> None:
        self._what = what
        self._outcomes = Outcomes(sampling)
        self._succeeded = 0
        self._failed = 0

    def reported(self, state: State, now_ms: float) -> bool:
        """Count a state of an instance that is starting; return whether it decides the start."""
        match state:
            case State.RUNNING:
                self._succeeded += 1
            case State.FAILED:
                self._failed += 1
            case _:
                return False
        self._outcomes.record(success=state is State.RUNNING, now_ms=now_ms)
        return True

    def values(self, now_ms: float) -> dict[str, MetricValue]:
        prefix = f"{self._what}-startup-"
        return {
            f"{prefix}attempts-total": self._succeeded + self._failed,
            f"{prefix}success-total": self._succeeded,
            f"{prefix}success-percentage": self._outcomes.success_share(now_ms),
            f"{prefix}failure-total": self._failed,
            f"{prefix}failure-percentage": self._outcomes.failure_share(now_ms),
        }


MetricValue: TypeAlias = int | float | str

GroupValues: TypeAlias = Mapping[str, Mapping[str, MetricValue]]
"""Values by group, then by metric name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `tags`: `connector` and `task`, as the group has. A text is a state or a name."""

    group: str
    name: str
    value: MetricValue
    tags: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the metric as a JSON document; a number that is not finite is null."""
        value: MetricValue | None = self.value
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        return {"group": self.group, "name": self.name, "tags": dict(self.tags), "value": value}


def tagged(values: GroupValues, tags: Mapping[str, str]) -> tuple[Metric, ...]:
    """Return the metrics of one connector or task."""
    return tuple(
        Metric(group=group, name=name, value=value, tags=tags)
        for group, members in values.items()
        for name, value in members.items()
    )


CONNECTOR = "connector-metrics"
TASK = "connector-task-metrics"
SOURCE_TASK = "source-task-metrics"
SINK_TASK = "sink-task-metrics"
TASK_ERROR = "task-error-metrics"
TRANSFORMATION = "connector-transform-metrics"
PREDICATE = "connector-predicate-metrics"
WORKER = "connect-worker-metrics"
REBALANCE = "connect-worker-rebalance-metrics"
RESTARTS = "agent-restart-metrics"
MBEANS = "mbeans"
PLUGIN = "plugin-metrics"

_WINDOWS = "over the last sample windows"
_LAG = "time from a commit's last record, by its timestamp, to the commit"

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    CONNECTOR: {
        "status": "State of the connector",
        "connector-type": "source or sink",
        "connector-class": "Class of the connector",
        "connector-version": "Version the connector reports",
    },
    TASK: {
        "status": "State of the task",
        "connector-type": "source or sink",
        **{
            f"{role}-{what}": f"{what} of the {role.replace('-', ' ')}".capitalize()
            for role in (
                "connector",
                "task",
                "key-converter",
                "value-converter",
                "header-converter",
            )
            for what in ("class", "version")
        },
        "running-ratio": "Share of its life the task was running",
        "pause-ratio": "Share of its life the task was paused",
        "offset-commit-max-time-ms": f"Longest successful offset commit {_WINDOWS}",
        "offset-commit-avg-time-ms": f"Mean time of successful offset commits {_WINDOWS}",
        "offset-commit-success-percentage": f"Share of offset commits that succeeded {_WINDOWS}",
        "offset-commit-failure-percentage": f"Share of offset commits that failed {_WINDOWS}",
        "batch-size-max": f"Records of the largest batch {_WINDOWS}",
        "batch-size-avg": f"Mean records of a batch {_WINDOWS}",
    },
    SOURCE_TASK: {
        "source-record-poll-rate": "Records polled a second, before transformations",
        "source-record-poll-total": "Records polled, before transformations",
        "source-record-write-rate": "Records written to Kafka a second",
        "source-record-write-total": "Records written to Kafka",
        "poll-batch-max-time-ms": f"Longest poll {_WINDOWS}",
        "poll-batch-avg-time-ms": f"Mean time of a poll {_WINDOWS}",
        "source-record-active-count": "Records polled and not finished yet",
        "source-record-active-count-max": f"Most records polled and not finished {_WINDOWS}",
        "source-record-active-count-avg": f"Mean of records polled and not finished {_WINDOWS}",
        "source-record-commit-lag-max-ms": f"Longest {_LAG} {_WINDOWS}",
        "source-record-commit-lag-avg-ms": f"Mean {_LAG} {_WINDOWS}",
        "transaction-size-min": f"Records of the smallest committed transaction {_WINDOWS}",
        "transaction-size-max": f"Records of the largest committed transaction {_WINDOWS}",
        "transaction-size-avg": f"Mean records of a committed transaction {_WINDOWS}",
    },
    SINK_TASK: {
        "sink-record-read-rate": "Records consumed a second, before transformations",
        "sink-record-read-total": "Records consumed, before transformations",
        "sink-record-send-rate": "Records the task has taken a second",
        "sink-record-send-total": "Records the task has taken",
        "sink-record-active-count": "Records consumed and not committed yet",
        "sink-record-active-count-max": f"Most records consumed and not committed {_WINDOWS}",
        "sink-record-active-count-avg": f"Mean of records consumed and not committed {_WINDOWS}",
        "partition-count": "Partitions the task has",
        "offset-commit-seq-no": "Number of the last offset commit",
        "offset-commit-completion-rate": "Offset commits completed a second",
        "offset-commit-completion-total": "Offset commits completed",
        "offset-commit-skip-rate": "Results of offset commits that came too late, a second",
        "offset-commit-skip-total": "Results of offset commits that came too late",
        "put-batch-max-time-ms": f"Longest put {_WINDOWS}",
        "put-batch-avg-time-ms": f"Mean time of a put {_WINDOWS}",
        "sink-closing-commit-total": "Offset commits of partitions being given up",
        "sink-closing-commit-time-ms": f"Mean time of such commits {_WINDOWS}",
    },
    TASK_ERROR: {
        "total-record-failures": "Attempts to process a record that failed",
        "total-record-errors": "Records given up",
        "total-records-skipped": "Records left out because of an error",
        "total-retries": "Attempts that were repeated",
        "total-errors-logged": "Errors written to the log",
        "deadletterqueue-produce-requests": "Records sent to the dead letter queue",
        "deadletterqueue-produce-failures": "Records that did not reach the dead letter queue",
        "last-error-timestamp": "Time of the last error in epoch milliseconds, 0 before it",
    },
    TRANSFORMATION: {
        "transform-class": "Class of the transformation",
        "transform-version": "Version the transformation reports",
        "transform-record-in-total": "Records the transformation got",
        "transform-record-out-total": "Records it passed on, also those that a predicate exempts",
        "transform-record-dropped-total": "Records it dropped",
        "transform-record-failed-total": "Records it could not transform, after all attempts",
        "transform-record-avg-time-us": f"Mean time for a record, one in 100 measured, {_WINDOWS}",
    },
    PREDICATE: {
        "predicate-class": "Class of the predicate",
        "predicate-version": "Version the predicate reports",
    },
    WORKER: {
        "connector-count": "Connectors of this worker",
        "task-count": "Tasks of this worker",
        **{
            f"{what}-startup-{name}": f"{meaning} {what} starts"
            for what in ("connector", "task")
            for name, meaning in (
                ("attempts-total", "Number of"),
                ("success-total", "Number of successful"),
                ("success-percentage", "Share of successful"),
                ("failure-total", "Number of failed"),
                ("failure-percentage", "Share of failed"),
            )
        },
        "connector-total-task-count": "Tasks of the connector in this worker",
        **{
            f"connector-{state}-task-count": f"Its tasks here that are {state}"
            for state in ("running", "paused", "failed", "unassigned", "destroyed", "restarting")
        },
    },
    REBALANCE: {
        "connect-protocol": "Protocol the group has agreed on",
        "leader-name": "URL of the group's leader",
        "epoch": "Generation of the group",
        "completed-rebalances-total": "Rebalances this worker has completed",
        "rebalancing": "1 while a rebalance is under way",
        "rebalance-max-time-ms": f"Longest rebalance {_WINDOWS}",
        "rebalance-avg-time-ms": f"Mean time of a rebalance {_WINDOWS}",
        "time-since-last-rebalance-ms": "Time since the last rebalance was completed",
    },
    RESTARTS: {
        "restart-attempts": "Automatic restarts since it was last stable",
        "restart-attempts-total": "Automatic restarts since this worker got it",
        "next-restart-timestamp": "Time of the next restart in epoch milliseconds, 0 without one",
        "given-up": "1 when it is not restarted automatically any more",
    },
}
