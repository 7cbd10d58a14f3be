"""The common part of this package's connectors: configs are described, checked and dealt."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

from pyconnect_api import Config, ConfigDef, ConfigException, ConnectException
from pyconnect_connectors import version


class _Parsed(Protocol):
    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self: ...


Settings = TypeVar("Settings", bound=_Parsed)


class ConfiguredConnector(Generic[Settings]):
    """The base of a connector beside that of `pyconnect_api`; all its tasks have its own config."""

    def __init__(
        self, define: Callable[[], ConfigDef], settings: type[Settings], address: str
    ) -> None:
        """`address` is the setting that has the address of the other side."""
        self._define = define
        self._parse = settings.parse
        self._address = address
        self._props: Mapping[str, str] = {}

    @abstractmethod
    def problems(self, settings: Settings) -> Iterable[tuple[str, str]]:
        """Look at the system on the other side; return pairs of a setting and what is wrong.

        ConfigException or ConnectException if it cannot be reached: that is one of the address.
        """

    def version(self) -> str:
        return version()

    def config(self) -> ConfigDef:
        return self._define()

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        """Return the values with all errors; connects when there is no other error."""
        values = self._define().validate_all(connector_configs)
        if not any(value.error_messages for value in values.values()):
            try:
                for key, problem in self.problems(self._parse(connector_configs)):
                    values[key].add_error_message(problem)
            except (ConfigException, ConnectException) as error:
                key, _, problem = str(error).partition(": ")
                if not isinstance(error, ConfigException) or key not in values:
                    key, problem = self._address, str(error)
                values[key].add_error_message(problem)
        return Config(config_values=list(values.values()))

    def start(self, props: Mapping[str, str]) -> None:
        self._parse(props)
        self._props = props

    def stop(self) -> None:
        """The connector has no thread."""

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [self._props] * max_tasks
