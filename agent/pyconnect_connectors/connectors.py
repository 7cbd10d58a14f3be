"""The common part of this package's connectors, of their tasks, and of their settings.

Configs are described, checked and dealt. A task repeats calls that fail for a reason that may pass,
such as a lost connection.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, Protocol, Self, TypeVar, get_type_hints, overload
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyconnect_api import (
    Config,
    ConfigDef,
    ConfigException,
    ConnectException,
    LambdaValidator,
    Password,
    Range,
    RetriableException,
    StopSignal,
)
from pyconnect_api.configdef import define_table

RETRIES = "max.retries"
BACKOFF_MS = "retry.backoff.ms"
GUARANTEE = "delivery.guarantee"
_KEY = "setting"

Bound = TypeVar("Bound")

_RETRIES = """
max.retries  INT  MEDIUM  10
    Attempts after a failure that may pass, such as a lost connection, before the task fails.
retry.backoff.ms  INT  MEDIUM  3000
    Time between two attempts in milliseconds.
"""


class Guarantee(StrEnum):
    """The delivery guarantee of a sink; exactly-once keeps the consumer offsets beside the rows."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def define_retries(definition: ConfigDef) -> ConfigDef:
    """Add the settings that say how a task repeats a call after a failure that may pass."""
    return define_table(
        definition, _RETRIES, {RETRIES: Range.at_least(0), BACKOFF_MS: Range.at_least(0)}
    )


def _check_zone(name: str, value: object) -> None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise ConfigException(
            f"Invalid value {value} for configuration {name}: Unknown time zone"
        ) from error


TIME_ZONE = LambdaValidator(_check_zone, "a name of the IANA time zone database")


def setting(name: str) -> Any:
    """Return a dataclass field that holds the value of a setting."""
    return field(metadata={_KEY: name})


def bound(kind: type[Bound], config: Mapping[str, object], **given: object) -> Bound:
    """Return a dataclass filled from a parsed config; `given`: the fields without a setting."""
    hints = get_type_hints(kind)
    values = {
        each.name: _READERS.get(hints[each.name], hints[each.name])(config[each.metadata[_KEY]])
        for each in fields(kind)  # type: ignore[arg-type]  # a dataclass
        if _KEY in each.metadata
    }
    return kind(**values, **given)


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigException for the first problem, a pair of a setting and a text."""
    for name, problem in problems:
        raise ConfigException(f"{name}: {problem}")


_READERS: Mapping[object, Callable[[Any], object]] = {
    str: lambda value: "" if value is None else str(value),
    str | None: lambda value: None if value in (None, "") else str(value),
    bool: lambda value: value is True,
    int | None: lambda value: value if value > 0 else None,
    tuple[str, ...]: lambda value: tuple(map(str, value or ())),
    frozenset[str]: lambda value: frozenset(map(str, value or ())),
    Password | None: lambda value: value if value and value.value else None,
}
"""Readers by a field's type; other types read a value themselves. A limit of 0 or less is None."""


class _Parsed(Protocol):
    @classmethod
    def parse(cls, props: Mapping[str, object]) -> Self: ...


Settings = TypeVar("Settings", bound=_Parsed)


class ConfiguredConnector(Generic[Settings]):
    """Base class of the connectors here, beside a base class of `pyconnect_api`."""

    props: Mapping[str, str]

    def __init__(
        self, define: Callable[[], ConfigDef], settings: type[Settings], address: str
    ) -> None:
        """`address` is the name of the setting that holds the external system's address."""
        self._define = define
        self._parse = settings.parse
        self._address = address

    @abstractmethod
    def problems(self, settings: Settings) -> Iterable[tuple[str, str]]:
        """Check the external system; return pairs of a setting and what is wrong with it.

        Raise ConfigException or ConnectException if the system cannot be reached; `validate` adds
        an error that names no setting to the setting of the address.
        """

    def config(self) -> ConfigDef:
        return self._define()

    def validate(self, connector_configs: Mapping[str, str | None]) -> Config:
        """Return the values with all errors; connect only if the config has no other error."""
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
        self.props = props


LOG = logging.getLogger(__name__)


class Attempts:
    """Count of failures in a row; the worker repeats the call. `event` is the log's text."""

    def __init__(self, event: str, settings: RetrySettings) -> None:
        self._event = event
        self._settings = settings
        self._failures = 0
        self._must_wait = False

    def wait(self, stop_requested: StopSignal) -> bool:
        """Wait before a source's next attempt; return False when the task is to stop.

        The task raises a failure first and waits in the next call, so that the status shows the
        failure meanwhile.
        """
        if not self._must_wait:
            return True
        self._must_wait = False
        return not stop_requested.wait(self._settings.backoff_ms / 1000)

    @contextmanager
    def limited(self, timeout: Callable[[int], None] | None = None) -> Iterator[None]:
        """Raise ConnectException in place of the last attempt's error.

        `timeout` is the method of a sink's context that sets when the worker repeats the call.
        """
        try:
            yield
        except RetriableException as error:
            self._failures += 1
            if self._failures > self._settings.max_retries:
                raise ConnectException(f"{error} ({self._failures} attempts)") from error
            LOG.warning(self._event, extra={"reason": str(error)})
            self._must_wait = True
            if timeout is not None:
                timeout(self._settings.backoff_ms)
            raise
        self._failures = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrySettings:
    """Settings that `define_retries` defines."""

    max_retries: int = setting(RETRIES)
    backoff_ms: int = setting(BACKOFF_MS)


_Offset = Mapping[str, object]


class LazyOffsets(Sequence[_Offset]):
    """Offsets of numbered rows, each made when it is read, because most are never read."""

    def __init__(self, rows: range, offset: Callable[[int], _Offset]) -> None:
        self._rows = rows
        self._offset = offset

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> _Offset: ...
    @overload
    def __getitem__(self, index: slice) -> LazyOffsets: ...
    def __getitem__(self, index: int | slice) -> _Offset | LazyOffsets:
        if isinstance(index, slice):
            return LazyOffsets(self._rows[index], self._offset)
        return self._offset(self._rows[index])
