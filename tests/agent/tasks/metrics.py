"""Metrics of a task under test."""

from pyconnect_agent.core.metrics.values import Sampling
from pyconnect_agent.tasks.sink.metrics import SinkMetrics
from pyconnect_agent.tasks.source.metrics import SourceMetrics
from pyconnect_agent.tasks.task_metrics import TaskMetrics


def source_metrics() -> SourceMetrics:
    return SourceMetrics(TaskMetrics(Sampling()))


def sink_metrics() -> SinkMetrics:
    return SinkMetrics(TaskMetrics(Sampling()))
