"""The Java process that belongs to this process: its start, its job, the tasks that run in it.

This process looks up names of classes: the Java process gets full names and class paths.

MBeans are read as metrics (Java's own way to them is a port for each process), under the names that
Prometheus' JMX exporter gives without rules: the domain, the value of the name's first key, the
attribute; the other keys are labels.
"""

import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from pyconnect_agent.core.config import aliases, below
from pyconnect_agent.core.config.agent_keys import OF_CONNECTOR, OF_LOCATION, OWN_PROCESS
from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.metric_values import (
    MBEANS,
    PREDICATE,
    TASK,
    TRANSFORMATION,
    Metric,
    tagged,
)
from pyconnect_agent.core.plugin_catalog import PluginKind, PluginNotFoundError
from pyconnect_agent.java_processes.crossing import Crossing
from pyconnect_agent.java_processes.launch import UNKNOWN_VERSION, JavaClass, java_options
from pyconnect_agent.java_processes.link import Answer, JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.shared import SharedJavaProcess
from pyconnect_agent.plugins.java_classes import (
    is_other_side,
    java_class,
    java_connector,
    java_host_jars,
    plugin_locations,
)
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.segments import JavaSegment, PythonSegment, PythonSegments
from pyconnect_agent.tasks.in_java.sink_task import JavaSinkTask
from pyconnect_agent.tasks.in_java.source_task import JavaSourceTask, ListeningJavaSourceTask
from pyconnect_agent.tasks.plugins import (
    VERSION_OPTION,
    TaskPlugins,
    converter_choice,
    stage_metrics,
    stage_options,
    stages_of,
)
from pyconnect_agent.tasks.records import ChainPart, StageCounts, TransformationStage
from pyconnect_agent.tasks.trace import describe_threads
from pyconnect_agent.tasks.worker_view import TaskSetup, WorkerView, plugin_named
from pyconnect_api import CONVERTER_TYPE_CONFIG
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]+")
_RESERVED = frozenset({"connector", "task"})
"""The labels that all metrics of a task have."""


def mbean_metrics(values: Sequence[Sequence[Any]]) -> tuple[Metric, ...]:
    """Return the metrics of `values` (see `MBeans.java`), without labels of connector and task."""
    metrics: list[Metric] = []
    for domain, keys, attribute, labels, number in values:
        (_, kind), *others = keys.items()
        metrics.append(
            Metric(
                group=MBEANS,
                name=_name(f"{domain}_{kind}_{attribute}"),
                value=number,
                tags={_label(key): value for key, value in (*others, *labels.items())},
            )
        )
    return tuple(metrics)


def _name(text: str) -> str:
    name = _NOT_IN_NAMES.sub("_", text)
    return f"_{name}" if name[0].isdigit() else name


def _label(key: str) -> str:
    # Prometheus reserves two underscores at the beginning.
    name = re.sub("^__+", "_", _name(key))
    return f"mbean_{name}" if name in _RESERVED else name


def java_class_of(worker: WorkerView, config: Mapping[str, str]) -> JavaClass | None:
    """Return the Java class that a config names as its connector, None for a Python connector."""
    name, version = config.get("connector.class", ""), config.get("connector.plugin.version")
    try:
        return java_connector(worker.catalog, name, version)
    except PluginNotFoundError:
        # The name is that of a Python class that is not listed, or not that of a class.
        return None


def start_link(
    worker: WorkerView,
    control: Control,
    config: Mapping[str, str],
    answers: Mapping[str, Answer],
    *,
    quick: bool = False,
) -> JavaLink:
    """Start the Java process of a connector or task, or connect to the one that it shares.

    `agent.java.isolation` decides between the two. The main thread of the connector's or task's
    process has to call this.
    """
    keys = worker.config.agent_keys.of_connector(config)
    originals, installation = worker.config.originals, worker.java_installation(config)
    isolation = keys.isolation_of(is_java=True)
    process: JavaProcess | SharedJavaProcess
    if isolation == OWN_PROCESS:
        process = JavaProcess(installation, java_options(originals, config, quick=quick))
    else:
        keys.check_limits(is_java=True)
        sharing = (
            [config["name"]]
            if isolation == OF_CONNECTOR
            else java_host_jars(worker.catalog, config)
        )
        process = SharedJavaProcess(
            installation,
            java_options(originals, config, shared=True),
            "\n".join([isolation, *sharing]),
        )
        control.shared_java_pid = process.pid
    link = JavaLink(process, answers)
    control.describe_stacks = lambda: f"{describe_threads()}\n{link.stacks()}"
    if isolation != OF_LOCATION:
        # The MBeans of a process of several connectors belong to none of them.
        control.mbeans = lambda: mbean_metrics(link.mbeans())
    _follow_levels(control, link)
    return link


def _follow_levels(control: Control, link: JavaLink) -> None:
    """Give Java's loggers the levels of this process's loggers, now and whenever one changes."""
    lock = threading.Lock()

    def send() -> None:
        # The lock makes the latest levels the last that are sent.
        with lock:
            link.set_levels(control.logger_levels())

    # The control thread must not wait for a Java process that is frozen.
    control.levels_changed = lambda: long_lived.Thread("java-levels", send).start()
    send()


@dataclass(frozen=True, slots=True)
class _Names:
    """A lookup of class names; `jars` hold classes that are in no list of plugins.

    They are the connector's jars, or those of a Python connector's first class in Java.
    """

    worker: WorkerView
    jars: tuple[str, ...]

    def find(
        self, name: str, kind: PluginKind, key: str, version_range: str | None
    ) -> dict[str, object]:
        """Return the class of a name that a config has at `key`. Raises ConfigException."""
        with plugin_named(name, key):
            found = java_class(self.worker.catalog, name, kind, version_range, jars=self.jars)
        return {**found.to_json(), "version": found.version}


def conversions(
    worker: WorkerView, config: Mapping[str, str], jars: tuple[str, ...], *, alone: bool = False
) -> tuple[dict[str, Any], list[list[TransformationStage]]]:
    """Return the part of a job about converters and transformations, and the segments in Python.

    `jars` are the connector's, with classes that are in no list. With `alone` each segment has one
    transformation. Raises ConfigException.
    """
    names = _Names(worker, jars)
    stages: list[dict[str, Any]] = []
    segments: list[list[TransformationStage]] = []
    for crosses, group in _groups(worker, config, alone=alone):
        if crosses:
            stages.append({"alias": group[0], "segment": len(segments)})
            segments.append(stages_of(worker, config, group))
        else:
            stages += [_stage(names, config, alias) for alias in group]
    return {
        "converters": {
            role: _converter(names, role, config) for role in ("key", "value", "header")
        },
        "transforms": stages,
        **_on_errors(config),
    }, segments


def _on_errors(config: Mapping[str, str]) -> dict[str, Any]:
    settings = ConnectorSettings.parse(config)
    return {
        "toleratesAll": settings.tolerate_all_errors,
        "showsRecords": settings.errors_log_enable and settings.errors_log_include_messages,
        "retryTimeoutMs": settings.errors_retry_timeout_ms,
        "retryDelayMaxMs": settings.errors_retry_delay_max_ms,
    }


def python_segments(
    worker: WorkerView,
    config: Mapping[str, str],
    control: Control,
    job: Mapping[str, Any],
    segments: Sequence[Sequence[TransformationStage]],
) -> PythonSegments:
    """Return the segments of a Java connector; `conversions` returned `job` and `segments`."""
    settings, sampling = ConnectorSettings.parse(config), worker.config.sampling
    in_java = [stage["alias"] for stage in job["transforms"] if "segment" not in stage]
    return PythonSegments(
        [PythonSegment(each, settings, control.stop_requested, sampling) for each in segments],
        [StageCounts(alias, sampling) for alias in in_java],
    )


def plugins_of_python(
    worker: WorkerView,
    config: Mapping[str, str],
    control: Control,
    *,
    owner: str,
    alone: bool = False,
) -> tuple[TaskPlugins, tuple[Metric, ...]]:
    """Make the plugins of a Python connector; return them and the metrics of those in Java.

    A Java process is started if transformations need it. `alone`: see `conversions`. Raises the
    exceptions of `TaskPlugins.of`.
    """
    names = _Names(worker, java_host_jars(worker.catalog, config))
    groups = _groups(worker, config, alone=alone)
    in_java = [
        [_stage(names, config, alias) for alias in group] for is_java, group in groups if is_java
    ]
    if not in_java:
        return TaskPlugins.of(worker, config), ()
    link = start_link(worker, control, config, {})

    def fail() -> None:
        raise link.ended()

    def end() -> None:
        # A task that waits for records would not notice the end of the Java process.
        if not control.stopping:
            long_lived.Thread("java-transformations", fail).start()

    if not alone:
        link.on_end = end
    link.begin(
        {
            "mode": "transformations",
            "owner": owner,
            "locations": plugin_locations(worker.catalog),
            "segments": [{"transforms": each, **_on_errors(config)} for each in in_java],
        }
    )
    crossing, numbers = Crossing(), count()
    stages: list[ChainPart] = []
    for is_java, group in groups:
        if is_java:
            counts = [StageCounts(alias, worker.config.sampling) for alias in group]
            segment = JavaSegment(link, next(numbers), crossing, counts, control.stop_requested)
            stages.append(segment)
        else:
            stages += stages_of(worker, config, group)
    return TaskPlugins.of(worker, config, stages), _classes(chain.from_iterable(in_java))


def _groups(
    worker: WorkerView, config: Mapping[str, str], *, alone: bool
) -> list[tuple[bool, list[str]]]:
    """Return groups of neighbouring transformations of one language, each with whether it crosses.

    A group crosses when its language is not the connector's. Raises ConnectException for a
    transformation without a language. `alone`: see `conversions`.
    """
    groups: list[tuple[bool, list[str]]] = []
    for alias in aliases(config, "transforms"):
        crosses = is_other_side(worker.catalog, config, alias)
        if alone or not groups or groups[-1][0] is not crosses:
            groups.append((crosses, []))
        groups[-1][1].append(alias)
    return groups


def _converter(names: _Names, role: str, config: Mapping[str, str]) -> dict[str, Any]:
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    name, options = converter_choice(names.worker, role, config)
    found = names.find(name, kind, f"{role}.converter", options.get(VERSION_OPTION))
    return {**found, "config": {**options, CONVERTER_TYPE_CONFIG: role}}


def _stage(names: _Names, config: Mapping[str, str], alias: str) -> dict[str, Any]:
    options, predicate, negate = stage_options(config, alias)
    found = _plugin(names, f"transforms.{alias}.", options, PluginKind.TRANSFORMATION)
    stage = {"alias": alias, **found}
    if predicate is not None:
        prefix = f"predicates.{predicate}."
        found = _plugin(names, prefix, below(config, prefix), PluginKind.PREDICATE)
        stage |= {"predicate": {"alias": predicate, **found}, "negate": negate}
    return stage


def _plugin(
    names: _Names, prefix: str, options: Mapping[str, str], kind: PluginKind
) -> dict[str, Any]:
    version = options.get(VERSION_OPTION)
    found = names.find(options.get("type", ""), kind, f"{prefix}type", version)
    return {**found, "config": dict(options)}


TASK_CLASS = "task.class"


def java_task(
    connector: JavaClass, setup: TaskSetup, control: Control
) -> tuple[JavaSourceTask | JavaSinkTask, tuple[Metric, ...]]:
    """Start a task's Java process; return the task and the metrics of its plugins."""
    config = setup.connector_config
    task: JavaSourceTask | JavaSinkTask | None = None
    answers: dict[str, Answer] = {}
    link = start_link(setup.worker, control, config, answers)
    exactly_once = setup.worker.config.exactly_once_source_enabled
    boundary = config.get("transaction.boundary", "").strip().lower()
    reports = ConnectorSettings.parse(config).errors_log_enable or bool(
        config.get(DEAD_LETTER_TOPIC)
    )
    converting, segments = conversions(setup.worker, config, connector.jars)
    job: dict[str, Any] = {
        "mode": "task",
        "owner": f"task {setup.task_id}",
        "connector": connector.to_json(),
        "task": setup.task_config.get(TASK_CLASS),
        "exactlyOnce": exactly_once,
        "boundaries": exactly_once and boundary == "connector",
        "reportsErrors": reports,
        "locations": plugin_locations(setup.worker.catalog),
        **converting,
    }
    in_python = python_segments(setup.worker, config, control, job, segments)
    link.transform = in_python.transform
    facts = link.begin(job)
    if not facts["isSource"]:
        task = JavaSinkTask(link, facts)
    elif facts["hearsOfRecords"]:
        task = ListeningJavaSourceTask(link, facts, exactly_once=exactly_once)
    else:
        task = JavaSourceTask(link, facts, exactly_once=exactly_once)
    answers |= task.answers
    task.segments = in_python
    texts = plugin_metrics(connector, facts, job)
    return task, (*texts, *stage_metrics(chain.from_iterable(segments)))


def plugin_metrics(
    connector: JavaClass, facts: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[Metric, ...]:
    """Return the metrics of the plugins' classes and versions, like `tasks.plugins` for Python."""
    texts = {
        "connector-type": "source" if facts["isSource"] else "sink",
        "connector-class": connector.name,
        "connector-version": facts["connectorVersion"] or UNKNOWN_VERSION,
        "task-class": facts["class"],
        "task-version": facts["version"] or UNKNOWN_VERSION,
    }
    for role, converter in job["converters"].items():
        texts |= _class_and_version(f"{role}-converter", converter)
    in_java = [stage for stage in job["transforms"] if "segment" not in stage]
    return (*tagged({TASK: texts}, {}), *_classes(in_java))


def _classes(stages: Iterable[Mapping[str, Any]]) -> tuple[Metric, ...]:
    metrics: list[Metric] = []
    for stage in stages:
        texts = _class_and_version("transform", stage)
        metrics += tagged({TRANSFORMATION: texts}, {"transform": stage["alias"]})
        if predicate := stage.get("predicate"):
            texts = _class_and_version("predicate", predicate)
            metrics += tagged({PREDICATE: texts}, {"predicate": predicate["alias"]})
    return tuple(metrics)


def _class_and_version(role: str, plugin: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{role}-class": plugin["class"], f"{role}-version": plugin["version"]}
