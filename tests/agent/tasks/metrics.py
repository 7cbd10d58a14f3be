"""Metrics of a task under test."""

from pyconnect_agent.core.metric_values import Sampling
from pyconnect_agent.tasks.task_metrics import SinkMetrics, SourceMetrics, TaskMetrics


def source_metrics() -> SourceMetrics:
    return SourceMetrics(TaskMetrics(Sampling()))


def sink_metrics() -> SinkMetrics:
    return SinkMetrics(TaskMetrics(Sampling()))
