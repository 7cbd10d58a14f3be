"""Connectors without settings of their own whose tasks get the config and a number.

Layer: builtin. The common part of Apache's test connectors.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_api import (
    ConfigDef,
    ConnectException,
    Connector,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    Task,
)

ID = "id"


class NumberedTasks(Connector):
    """`tasks.max` tasks; each finds its number, from 0, under `id`."""

    props: Mapping[str, str] = {}

    def version(self) -> str:
        return CONNECT_VERSION

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self.props, ID: str(number)} for number in range(max_tasks)]

    def stop(self) -> None:
        """Nothing runs in the background."""

    def config(self) -> ConfigDef:
        return ConfigDef()

    @abstractmethod
    def task_class(self) -> type[Task]: ...


class NumberedSource(NumberedTasks, SourceConnector):
    """The source of that kind."""

    @abstractmethod
    def task_class(self) -> type[SourceTask]: ...


class NumberedSink(NumberedTasks, SinkConnector):
    """The sink of that kind."""

    @abstractmethod
    def task_class(self) -> type[SinkTask]: ...


def number(props: Mapping[str, str], name: str, task: str, default: str = "") -> int:
    """Return a whole number; ConnectException with Apache's text when it is none."""
    try:
        return int(props.get(name, default))
    except ValueError as error:
        raise ConnectException(f"Invalid {task} configuration") from error
