"""Which converters can take many values at once.

A converter's form for many values is used only where it is as new as its form for one: a class that
changed the latter alone is asked value by value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pyconnect_api import Converter, Schema

FromConnectMany: TypeAlias = Callable[[str, Schema | None, Sequence[object]], list[bytes | None]]
ToConnectMany: TypeAlias = Callable[
    [str, Sequence[bytes | None]], tuple[list[Schema | None], list[object]]
]


def from_connect_many(converter: Converter) -> FromConnectMany | None:
    """Return the converter's own method, None when it has none."""
    method: FromConnectMany | None = _own(converter, "from_connect_data", "from_connect_many")
    return method


def to_connect_many(converter: Converter) -> ToConnectMany | None:
    """Return the converter's own method, None when it has none."""
    method: ToConnectMany | None = _own(converter, "to_connect_data", "to_connect_many")
    return method


def _own(converter: Converter, one: str, many: str) -> Any:
    for names in (
        getattr(converter, "__dict__", {}),
        *(vars(kind) for kind in type(converter).__mro__),
    ):
        if many in names:
            return getattr(converter, many)
        if one in names:
            return None
    return None
