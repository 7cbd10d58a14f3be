"""The plugins of a task, as metrics whose values are texts.

Layer: tasks. Kafka: the class and version metrics of WorkerTask and TransformationChain since 4.2.
A built-in task is named as the Java class it stands for, others by their Python class.
"""

from __future__ import annotations

from pyconnect_agent.core.metrics.catalog import PREDICATE, TASK, TRANSFORMATION
from pyconnect_agent.core.metrics.values import Metric, MetricValue, tagged
from pyconnect_agent.tasks.setup.plugins import TaskPlugins
from pyconnect_api import (
    Connector,
    SinkTask,
    SourceConnector,
    SourceTask,
)


def connector_and_task(connector: Connector, task: SourceTask | SinkTask) -> tuple[Metric, ...]:
    """Class and version of both; the task's tags are added where metrics are collected."""
    kind = "source" if isinstance(connector, SourceConnector) else "sink"
    texts = {"connector-type": kind, **_plugin("connector", connector), **_plugin("task", task)}
    return tagged({TASK: texts}, {})


def converters_and_stages(plugins: TaskPlugins) -> tuple[Metric, ...]:
    """Class and version of each, those of stages tagged with their aliases."""
    converters = {
        **_plugin("key-converter", plugins.converters.key),
        **_plugin("value-converter", plugins.converters.value),
        **_plugin("header-converter", plugins.converters.header),
    }
    metrics = [*tagged({TASK: converters}, {})]
    for stage in plugins.stages:
        texts = _plugin("transform", stage.transformation)
        metrics += tagged({TRANSFORMATION: texts}, {"transform": stage.alias})
        if stage.predicate is not None and stage.predicate_alias is not None:
            texts = _plugin("predicate", stage.predicate)
            metrics += tagged({PREDICATE: texts}, {"predicate": stage.predicate_alias})
    return tuple(metrics)


def _plugin(role: str, plugin: object) -> dict[str, MetricValue]:
    kind = type(plugin)
    name = getattr(kind, "java_name", f"{kind.__module__}.{kind.__qualname__}")
    version = getattr(plugin, "version", lambda: None)()
    return {f"{role}-class": str(name), f"{role}-version": str(version or "undefined")}
