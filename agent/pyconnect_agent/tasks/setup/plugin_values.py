"""Results of plugin code, as the plain values that the worker stores and other workers read.

Layer: tasks. Java's type system keeps a connector from returning anything else; Python's does not.
Every function raises ConnectException, which names the place and the type but never a value: it
may be a secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pyconnect_api import ConnectException


def plain_task_configs(found: object, owner: str) -> tuple[dict[str, str | None], ...]:
    """Check what `task_configs` of the class `owner` returned. Values may be None, as in Java."""
    place = f"{owner}.task_configs()"
    if not isinstance(found, Collection) or isinstance(found, str | bytes | Mapping):
        raise ConnectException(f"{place} returned {type_name(found)}, expected a list of mappings")
    return tuple(_config(config, f"{place}[{number}]") for number, config in enumerate(found))


def plain_version(found: object, owner: str) -> str | None:
    """Check what `version` of `owner`, connector or task, returned."""
    return None if found is None else _text(found, f"version() of the {owner}")


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module unless built in."""
    kind = type(value)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _config(found: object, place: str) -> dict[str, str | None]:
    if not isinstance(found, Mapping):
        raise ConnectException(f"{place} is of type {type_name(found)}, expected a mapping")
    config: dict[str, str | None] = {}
    for key, value in found.items():
        name = _text(key, f"{place}: the key {key!r}")
        config[name] = None if value is None else _text(value, f"{place}: the value of {name!r}")
    return config


def _text(value: object, place: str) -> str:
    """Return a plain str: subclasses such as StrEnum may have conversions of their own."""
    if not isinstance(value, str):
        raise ConnectException(f"{place} is of type {type_name(value)}, expected str")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise ConnectException(f"{place} is not valid Unicode: {exc.reason}") from None
    return text
