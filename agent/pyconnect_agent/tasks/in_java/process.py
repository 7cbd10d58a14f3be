"""Starts the Java process that belongs to this process, and reads its MBeans as metrics.

Java's own way to MBeans is a port for each process. The names of metrics are those that Prometheus'
JMX exporter gives without rules: the domain, the value of the name's first key, the attribute; the
other keys are labels.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyconnect_agent.core.config.agent_keys import (
    OF_CONNECTOR,
    OF_LOCATION,
    OWN_PROCESS,
)
from pyconnect_agent.core.metric_values import MBEANS, Metric
from pyconnect_agent.core.plugin_catalog import PluginNotFoundError
from pyconnect_agent.java_processes.launch import JavaClass, java_options
from pyconnect_agent.java_processes.link import Answer, JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.shared import SharedJavaProcess
from pyconnect_agent.plugins.java_classes import java_connector, java_host_jars
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.trace import describe_threads

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_]+")
_RESERVED = frozenset({"connector", "task"})
"""Labels of all metrics of a task."""


def mbean_metrics(values: Sequence[Sequence[Any]]) -> tuple[Metric, ...]:
    """`values`: see `MBeans.java`. The metrics lack connector and task."""
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
    """Return the class of a Java connector's config, None for a Python connector's."""
    name, version = config.get("connector.class", ""), config.get("connector.plugin.version")
    try:
        return java_connector(worker.catalog, name, version)
    except PluginNotFoundError:
        # A Python class that is not listed, or none at all.
        return None


def start_link(
    worker: WorkerView,
    control: Control,
    config: Mapping[str, str],
    answers: Mapping[str, Answer],
    *,
    quick: bool = False,
) -> JavaLink:
    """Start the Java process of a connector or task; its process's main thread has to do that.

    Or connect to the one that it shares with others, as agent.java.isolation says.
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
        # Those of a process of several connectors belong to none of them.
        control.mbeans = lambda: mbean_metrics(link.mbeans())
    _follow_levels(control, link)
    return link


def _follow_levels(control: Control, link: JavaLink) -> None:
    """Give Java's loggers the levels of this process's, now and whenever one changes."""
    lock = threading.Lock()

    def send() -> None:
        # The latest levels have to be the last that are sent.
        with lock:
            link.set_levels(control.logger_levels())

    # The control thread must not wait for a Java process that is frozen.
    control.levels_changed = lambda: long_lived.Thread("java-levels", send).start()
    send()
