"""The plugins of a task, as metrics whose values are texts.

Layer: tasks. Kafka: the class and version metrics of WorkerTask and TransformationChain since 4.2.
A built-in task is named as the Java class it stands for, others by their Python class.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyconnect_agent.core.metrics.catalog import PREDICATE, TASK, TRANSFORMATION
from pyconnect_agent.core.metrics.values import Metric, MetricValue, tagged
from pyconnect_agent.tasks.transform_chain import TransformationStage
from pyconnect_api import (
    Connector,
    Converter,
    HeaderConverter,
    SinkTask,
    SourceConnector,
    SourceTask,
)


def connector_and_task(connector: Connector, task: SourceTask | SinkTask) -> tuple[Metric, ...]:
    kind = "source" if isinstance(connector, SourceConnector) else "sink"
    texts = {"connector-type": kind, **_plugin("connector", connector), **_plugin("task", task)}
    return tagged({TASK: texts}, {})


def converters_and_stages(
    key: Converter,
    value: Converter,
    header: HeaderConverter,
    stages: Iterable[TransformationStage],
) -> tuple[Metric, ...]:
    converters = {
        **_plugin("key-converter", key),
        **_plugin("value-converter", value),
        **_plugin("header-converter", header),
    }
    metrics = [*tagged({TASK: converters}, {})]
    for stage in stages:
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
