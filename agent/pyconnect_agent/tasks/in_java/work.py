"""Makes the tasks that run in a Java process.

Layer: tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.metrics.catalog import PREDICATE, TASK, TRANSFORMATION
from pyconnect_agent.core.metrics.values import Metric, tagged
from pyconnect_agent.java_processes.launch import UNKNOWN_VERSION, JavaClass
from pyconnect_agent.java_processes.link import Answer
from pyconnect_agent.plugins.java_classes import plugin_locations
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.jobs import conversions
from pyconnect_agent.tasks.in_java.process import start_link
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask
from pyconnect_agent.tasks.in_java.source_task import JavaSourceTask, ListeningJavaSourceTask
from pyconnect_agent.tasks.setup.resolved_configs import TaskSetup
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

TASK_CLASS = "task.class"


def java_task(
    connector: JavaClass, setup: TaskSetup, control: Control
) -> tuple[JavaSourceTask | JavaSinkTask, tuple[Metric, ...]]:
    """Start a task's Java process; return the task, and what its metrics say of its plugins."""
    config = setup.connector_config
    task: JavaSourceTask | JavaSinkTask | None = None
    answers: dict[str, Answer] = {}
    link = start_link(setup.worker, control, config, answers)
    exactly_once = setup.worker.config.exactly_once_source_enabled
    boundary = config.get("transaction.boundary", "").strip().lower()
    reports = ConnectorSettings.parse(config).errors_log_enable or bool(
        config.get(DEAD_LETTER_TOPIC)
    )
    job: dict[str, Any] = {
        "mode": "task",
        "connector": connector.to_json(),
        "task": setup.task_config.get(TASK_CLASS),
        "exactlyOnce": exactly_once,
        "boundaries": exactly_once and boundary == "connector",
        "reportsErrors": reports,
        "locations": plugin_locations(setup.worker.catalog),
        **conversions(setup.worker, config, connector.jars),
    }
    facts = link.begin(job)
    if not facts["isSource"]:
        task = JavaSinkTask(link, facts)
    elif facts["hearsOfRecords"]:
        task = ListeningJavaSourceTask(link, facts, exactly_once=exactly_once)
    else:
        task = JavaSourceTask(link, facts, exactly_once=exactly_once)
    answers |= task.answers
    return task, plugin_metrics(connector, facts, job)


def plugin_metrics(
    connector: JavaClass, facts: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[Metric, ...]:
    """Return classes and versions of the plugins, as `setup.plugins` does for Python ones."""
    texts = {
        "connector-type": "source" if facts["isSource"] else "sink",
        "connector-class": connector.name,
        "connector-version": facts["connectorVersion"] or UNKNOWN_VERSION,
        "task-class": facts["class"],
        "task-version": facts["version"] or UNKNOWN_VERSION,
    }
    for role, converter in job["converters"].items():
        texts |= _class_and_version(f"{role}-converter", converter)
    metrics = [*tagged({TASK: texts}, {})]
    for stage in job["transforms"]:
        texts = _class_and_version("transform", stage)
        metrics += tagged({TRANSFORMATION: texts}, {"transform": stage["alias"]})
        if predicate := stage.get("predicate"):
            texts = _class_and_version("predicate", predicate)
            metrics += tagged({PREDICATE: texts}, {"predicate": predicate["alias"]})
    return tuple(metrics)


def _class_and_version(role: str, plugin: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{role}-class": plugin["class"], f"{role}-version": plugin["version"]}
