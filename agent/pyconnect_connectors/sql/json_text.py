"""Values of Connect as texts: plain, as JSON with all digits, lists as PostgreSQL's literals."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias

from pyconnect_api import Struct

Convert: TypeAlias = Callable[[Any], Any]  # a record's value to the driver's
UNFIT = (ValueError, TypeError, ArithmeticError, AttributeError)
"""What a conversion raises for a value that does not fit. Only `Unfit` may be shown."""


class Unfit(ValueError):
    """A value that a column cannot hold; the text says what is odd, without the value."""


def text_of(value: Any) -> str:
    """Return the text of a value; bytes have none."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return repr(value)
        case float():
            # As Java and PostgreSQL write them.
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(
                repr(value), repr(value)
            )
        case Decimal():
            return f"{value:f}"
        case datetime() | date() | time():
            return value.isoformat()
        case Struct() | dict() | list():
            return json_text(value)
    raise Unfit("a value that is not a text")


def json_text(value: object) -> str:
    """Return a value as JSON: bytes in Base64, times as ISO 8601, decimals with all digits.

    ValueError for a value that JSON has no form for.
    """
    match value:
        case None | str() | bool() | int():
            return json.dumps(value, ensure_ascii=False)
        case float() if math.isfinite(value):
            return repr(value)
        case Decimal() if value.is_finite():
            return f"{value}"
        case Struct():
            names = (field.name for field in value.schema.fields)
            return _object(zip(names, value.stored_values(), strict=True))
        case Mapping():
            entries = {
                key if isinstance(key, str) else json_text(key).strip('"'): each
                for key, each in value.items()
            }
            if len(entries) < len(value):
                raise ValueError("a map with two keys of the same text")
            return _object(entries.items())
        case list() | tuple():
            return f"[{','.join(map(json_text, value))}]"
        case bytes():
            return json_text(base64.b64encode(value).decode())
        case datetime() | date() | time():
            return json_text(value.isoformat())
    raise ValueError("a value that JSON has no form for")


def _object(entries: Iterable[tuple[str, object]]) -> str:
    members = (f"{json_text(name)}:{json_text(value)}" for name, value in entries)
    return "{" + ",".join(members) + "}"


def checked_json(text: str) -> str:
    """Return a text that is JSON; ValueError for another one."""

    def refuse_constant(name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    json.loads(text, parse_constant=refuse_constant, parse_float=str, parse_int=str)
    return text


def checked_members(text: str) -> str:
    """Return a text; Unfit for two members of one name. Other faults of JSON are the database's."""

    def once(members: list[tuple[str, object]]) -> None:
        if len(dict(members)) < len(members):
            raise Unfit("JSON with two members of one name, of which the column keeps one,")

    try:
        json.loads(text, object_pairs_hook=once, parse_float=str, parse_int=str)
    except Unfit:
        raise
    except (ValueError, RecursionError):
        pass
    return text


def array_literal(value: Iterable[object]) -> str:
    """Return a list as PostgreSQL writes arrays."""
    return "{" + ",".join(map(array_element, value)) + "}"


def array_element(value: object) -> str:
    """Return a value as PostgreSQL writes it within an array."""
    match value:
        case None:
            return "NULL"
        case list() | tuple():
            return array_literal(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case bytes():
            text = "\\x" + value.hex()
        case Decimal():
            return f"{value}"
        case datetime() | date() | time():
            text = value.isoformat()
        case str():
            text = value
        case _:
            text = json_text(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
