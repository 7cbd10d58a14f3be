"""Settings that all connectors of this package share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from enum import StrEnum
from typing import Any, TypeVar, get_type_hints
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyconnect_api import ConfigDef, ConfigException, LambdaValidator, Password, Range
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
    """Whether a sink keeps consumer offsets beside the rows."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


def define_retries(definition: ConfigDef) -> ConfigDef:
    """Add the keys that say how a task repeats a call whose failure may pass."""
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
    """Return the field of a dataclass that has the value of a setting."""
    return field(metadata={_KEY: name})


def bound(kind: type[Bound], config: Mapping[str, object], **given: object) -> Bound:
    """Return the values of a parsed config by the fields' settings and types; `given`: the rest."""
    hints = get_type_hints(kind)
    values = {
        each.name: _READERS.get(hints[each.name], hints[each.name])(config[each.metadata[_KEY]])
        for each in fields(kind)  # type: ignore[arg-type]  # a dataclass
        if _KEY in each.metadata
    }
    return kind(**values, **given)


def refuse(problems: Iterable[tuple[str, str]]) -> None:
    """Raise ConfigException for the first of pairs of a setting and what is wrong with it."""
    for name, problem in problems:
        raise ConfigException(f"{name}: {problem}")


def text_or_none(value: object) -> str | None:
    """Return a text that is not empty."""
    return None if value is None or value == "" else str(value)


def texts(value: object) -> tuple[str, ...]:
    """Return the entries of a list, none of null."""
    return tuple(map(str, value)) if isinstance(value, list) else ()


_READERS: Mapping[object, Callable[[Any], object]] = {
    str: lambda value: text_or_none(value) or "",
    str | None: text_or_none,
    bool: lambda value: value is True,
    int | None: lambda value: value if value > 0 else None,
    tuple[str, ...]: texts,
    frozenset[str]: lambda value: frozenset(texts(value)),
    Password | None: lambda value: value if value and value.value else None,
}
"""By the type of a field; other types are made of the value. A limit is None unless positive."""
