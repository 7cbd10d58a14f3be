"""The metrics of a worker's connectors and tasks, put together from the reports of the children.

Layer: children. Kafka: Worker's metric groups. A FAILED task keeps its last metrics until it is
started again or removed from this worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyconnect_agent.channel import StatsReported
from pyconnect_agent.children.connectors import ConnectorChild
from pyconnect_agent.children.inquiries import Inquiries
from pyconnect_agent.children.tasks import TaskChild
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.metrics.catalog import CONNECTOR, TASK, WORKER
from pyconnect_agent.core.metrics.values import Metric, MetricValue, tagged
from pyconnect_agent.core.plugins.catalog import Catalog, PluginNotFoundError

COUNTED_STATES = (
    State.RUNNING,
    State.PAUSED,
    State.FAILED,
    State.UNASSIGNED,
    State.DESTROYED,
    State.RESTARTING,
)


async def task_metrics(
    tasks: Mapping[ConnectorTaskId, TaskChild],
    ended: Mapping[ConnectorTaskId, StatsReported],
    inquiries: Inquiries,
) -> list[Metric]:
    """Ask all live tasks at once; for a task without an answer use its last one."""
    answers = await asyncio.gather(
        *(inquiries.statistics(task.child, mbeans=True) for task in tasks.values())
    )
    found: dict[ConnectorTaskId, tuple[State, StatsReported]] = {
        task_id: (State.FAILED, figures) for task_id, figures in ended.items()
    }
    for (task_id, task), answer in zip(tasks.items(), answers, strict=True):
        found[task_id] = (task.state, task.figures if answer is None else answer)
    metrics: list[Metric] = []
    for task_id, (state, figures) in sorted(found.items(), key=_by_id):
        tags = {"connector": task_id.connector, "task": str(task_id.task)}
        metrics.append(Metric(group=TASK, name="status", value=state.value.lower(), tags=tags))
        metrics.extend(tagged(figures.metrics, tags))
        own = (*figures.plugins, *figures.mbeans)
        metrics.extend(replace(metric, tags={**tags, **metric.tags}) for metric in own)
    metrics.extend(_task_counts({task_id: state for task_id, (state, _) in found.items()}))
    return metrics


def connector_metrics(connectors: Mapping[str, ConnectorChild], catalog: Catalog) -> list[Metric]:
    metrics: list[Metric] = []
    for name, entry in sorted(connectors.items()):
        state = State.UNASSIGNED if entry.state is None else entry.state
        values: dict[str, MetricValue] = {
            "status": state.value.lower(),
            **_plugin(entry, catalog),
            "connector-version": entry.version or "unknown",
        }
        metrics.extend(tagged({CONNECTOR: values}, {"connector": name}))
    return metrics


def worker_values(
    connectors: int, tasks: int, startups: Iterable[Mapping[str, MetricValue]]
) -> list[Metric]:
    values: dict[str, MetricValue] = {"connector-count": connectors, "task-count": tasks}
    for counts in startups:
        values.update(counts)
    return list(tagged({WORKER: values}, {}))


def _plugin(entry: ConnectorChild, catalog: Catalog) -> dict[str, MetricValue]:
    name = entry.config.get("connector.class") or "unknown"
    try:
        plugin = catalog.connector(name, version_range=entry.config.get("connector.plugin.version"))
    except PluginNotFoundError:
        return {"connector-type": "unknown", "connector-class": name}
    return {"connector-type": plugin.kind.value, "connector-class": plugin.class_name}


def _by_id(item: tuple[ConnectorTaskId, object]) -> ConnectorTaskId:
    return item[0]


def _task_counts(tasks: Mapping[ConnectorTaskId, State]) -> list[Metric]:
    by_connector: dict[str, Counter[State]] = {}
    for task_id, state in sorted(tasks.items(), key=_by_id):
        by_connector.setdefault(task_id.connector, Counter())[state] += 1
    metrics: list[Metric] = []
    for connector, states in by_connector.items():
        values: dict[str, MetricValue] = {
            f"connector-{state.value.lower()}-task-count": states[state] for state in COUNTED_STATES
        }
        values["connector-total-task-count"] = states.total()
        metrics.extend(tagged({WORKER: values}, {"connector": connector}))
    return metrics
