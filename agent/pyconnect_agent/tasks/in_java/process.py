"""Starts the Java process that belongs to this process.

Layer: tasks.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from pyconnect_agent.core.plugins.catalog import PluginNotFoundError
from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.java_processes.link import Answer, JavaLink
from pyconnect_agent.java_processes.process import JavaProcess
from pyconnect_agent.java_processes.settings import java_options
from pyconnect_agent.plugins.java_classes import java_connector
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.mbeans import mbean_metrics
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_agent.tasks.stacks import describe_threads


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
    """Start the Java process of a connector or task; its process's main thread has to do that."""
    options = java_options(worker.config.originals, config, quick=quick)
    link = JavaLink(JavaProcess(worker.java_installation(config), options), answers)
    control.describe_stacks = lambda: f"{describe_threads()}\n{link.stacks()}"
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
