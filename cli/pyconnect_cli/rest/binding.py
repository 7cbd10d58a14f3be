"""Reads JSON into types: texts, numbers, enums, lists, maps, dataclasses field by field.

A field without a default is a required member. A missing member and null give the default. The
field `raw` gets the whole object. KeyError, TypeError or ValueError names what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

Json = Mapping[str, object]
Bound = TypeVar("Bound")
_MEMBER = "member"


def member(name: str) -> Any:
    return field(metadata={_MEMBER: name})


def bind(kind: type[Bound], value: object, **given: object) -> Bound:
    """Return a value of a type; `given` are the fields of an object that are not its members."""
    made = _bind_object(kind, value, given) if given else _reader(cast("Hashable", kind))(value)
    return cast("Bound", made)


def as_object(body: object) -> Json:
    """Return a JSON object, or raise TypeError."""
    if not isinstance(body, Mapping):
        raise TypeError(f"an object was expected, not {type(body).__name__}")
    return body


def as_list(body: object) -> list[object]:
    """Return a JSON array, or raise TypeError."""
    if not isinstance(body, list):
        raise TypeError(f"an array was expected, not {type(body).__name__}")
    return body


def optional_text(value: object) -> str | None:
    """Return a text, or None for null."""
    return None if value is None else str(value)


def _bind_object(kind: type, value: object, given: Mapping[str, object]) -> object:
    body = as_object(value)
    found = {"raw": body, **given}
    members = _members(kind)
    values = {name: found[name] for name in found if name in members}
    for name, (key, read, required) in members.items():
        if name in values:
            continue
        if required or body.get(key) is not None:
            values[name] = read(body[key])
    return kind(**values)


@cache
def _members(kind: type) -> dict[str, tuple[str, Callable[[object], object], bool]]:
    """Return of each field the member, its reader, and whether it is required."""
    hints = get_type_hints(kind)
    return {
        each.name: (
            each.metadata.get(_MEMBER, each.name),
            _reader(hints[each.name]),
            each.default is MISSING and each.default_factory is MISSING,
        )
        for each in fields(kind)
    }


@cache
def _reader(kind: Any) -> Callable[[Any], object]:
    if isinstance(kind, UnionType):
        kinds = [each for each in get_args(kind) if each is not NoneType]
        inner = _reader(kinds[0] if len(kinds) == 1 else object)
        return lambda value: None if value is None else inner(value)
    origin, parts = get_origin(kind) or kind, get_args(kind)
    if origin in (list, tuple):
        item = _reader(parts[0])
        return lambda value: origin(map(item, as_list(value)))
    if origin in (dict, Mapping):
        item = _reader(parts[1])
        return lambda value: {str(key): item(each) for key, each in as_object(value).items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return lambda value: _bind_object(kind, value, {})
    return _PLAIN.get(kind, kind)


_PLAIN: Mapping[object, Callable[[Any], object]] = {
    int: lambda value: int(str(value)),
    float: lambda value: float(str(value)),
    object: lambda value: value,
}
