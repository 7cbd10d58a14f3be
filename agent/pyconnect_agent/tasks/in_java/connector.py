"""A connector in a Java process.

The module is for an instance that runs, or that gets a question about new offsets;
`plugins.class_source` answers questions about settings.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pyconnect_agent.java_processes.launch import JavaClass
from pyconnect_agent.java_processes.link import Answer, JavaLink, java_error
from pyconnect_agent.plugins.java_classes import plugin_locations
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.in_java.process import start_link
from pyconnect_agent.tasks.in_java.source_task import read_offsets
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    ConfigDef,
    ConnectException,
    Connector,
    ConnectorContext,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    TopicPartition,
)


class JavaConnector(Connector):
    """The common part of both kinds; `facts`: the Java process's answer to its job."""

    def __init__(self, link: JavaLink, facts: Mapping[str, Any]) -> None:
        self._link = link
        self._facts = facts
        self.answers: Mapping[str, Answer] = {
            "requestTaskReconfiguration": lambda _: self.context.request_task_reconfiguration(),
            "raiseError": lambda asked: self.context.raise_error(java_error(asked["error"])),
            "readOffsets": lambda asked: read_offsets(
                self.context.offset_storage_reader,  # type: ignore[attr-defined]  # a source's
                asked,
            ),
        }

    def initialize(self, context: ConnectorContext) -> None:
        super().initialize(context)
        # Without a request for task configs, no later call would find the failure.
        self._link.on_end = self._fail
        self._link.call("initialize")

    def start(self, props: Mapping[str, str]) -> None:
        self._link.call("start", config=dict(props))

    def stop(self) -> None:
        self._link.call("stop")

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        configs: Sequence[Mapping[str, str]] = self._link.call("taskConfigs", maxTasks=max_tasks)
        return configs

    def is_idle(self) -> bool:
        """Return whether the Java process has only the threads that it had before `initialize`."""
        try:
            return bool(self._link.call("isIdle"))
        except ConnectException:
            return False

    def config(self) -> ConfigDef:
        raise NotImplementedError("definitions are asked for elsewhere")

    def version(self) -> str:
        version: str = self._facts["version"]
        return version

    def _fail(self) -> None:
        with suppress(ConnectException):  # the link has been shut down
            self.context.raise_error(self._link.ended())

    def _task_class(self, base: type) -> type:
        # No instance is made here: only the name is stored.
        return type(base.__name__, (base,), {"java_name": self._link.call("taskClass")})


class JavaSourceConnector(JavaConnector, SourceConnector):
    def task_class(self) -> type[SourceTask]:
        return self._task_class(SourceTask)

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]
    ) -> bool:
        return bool(
            self._link.call(
                "alterOffsets", config=dict(connector_config), offsets=list(map(list, offsets))
            )
        )


class JavaSinkConnector(JavaConnector, SinkConnector):
    def task_class(self) -> type[SinkTask]:
        return self._task_class(SinkTask)

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        changes = [(*partition, offset) for partition, offset in offsets.items()]
        return bool(self._link.call("alterOffsets", config=dict(connector_config), offsets=changes))


def java_connector(
    found: JavaClass, worker: WorkerView, control: Control, config: Mapping[str, str]
) -> JavaSourceConnector | JavaSinkConnector:
    """Start a connector's Java process. Raises the exceptions of the constructor."""
    answers: dict[str, Answer] = {}
    link = start_link(worker, control, config, answers, quick=True)
    job = {
        "mode": "connector",
        "owner": f"connector {config.get('name')}",
        "connector": found.to_json(),
        "locations": plugin_locations(worker.catalog),
    }
    facts = link.begin(job)
    make: Callable[..., JavaSourceConnector | JavaSinkConnector]
    if facts["source"]:
        make = JavaSourceConnector
    elif facts["sink"]:
        make = JavaSinkConnector
    else:
        raise ConnectException(
            "Connector implementations must be a subclass of either SourceConnector or "
            "SinkConnector"
        )
    connector = make(link, facts)
    answers |= connector.answers
    return connector
