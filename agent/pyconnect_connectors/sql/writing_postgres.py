"""Values of Connect as texts: plain, as JSON with all digits, and for types of PostgreSQL.

The conversions refuse values that PostgreSQL would round or cut without an error.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from sqlalchemy import types

from pyconnect_api import Struct
from pyconnect_connectors.sql.column_types import BINARIES

Convert: TypeAlias = Callable[[Any], Any]  # a record's value to the driver's
UNFIT = (ValueError, TypeError, ArithmeticError, AttributeError)
"""Errors that a conversion raises for a value that does not fit; only `Unfit` may be shown."""


class Unfit(ValueError):
    """A value that a column cannot hold; the text says what is odd, without the value."""


def text_of(value: Any) -> str:
    """Return the text of a value; raise Unfit for bytes."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return repr(value)
        case float():
            # These are the words of Java and PostgreSQL.
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

    Raise ValueError for a value that JSON has no form for.
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
    """Return a text that is JSON; raise ValueError if it is not."""

    def refuse_constant(name: str) -> object:
        raise ValueError(f"{name} is not JSON")

    json.loads(text, parse_constant=refuse_constant, parse_float=str, parse_int=str)
    return text


def checked_members(text: str) -> str:
    """Return a text; Unfit for two members of one name. PostgreSQL finds other faults of JSON."""

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


_INTERVALS = (
    r"(-?\d+ years?)?",
    r"(-?\d+ mons?)?",
    r"(-?\d+ days?)?",
    r"(-?\d+:00:00)?",
    r"(-?\d+:\d\d:00)?",
)
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_PART_OF_YEAR = re.compile(r"[.]\d*[1-9]\d* *(y|dec|c|mil(?!lis))", re.IGNORECASE)
_DECIMALS = re.compile(r"[.](\d+)")
_ELEMENTS = re.compile(r'("(?:[^"\\]|\\.)*")|([^{},"\s][^{},"]*)', re.DOTALL)
"""Elements of an array in PostgreSQL's own form."""
_BOUNDS = re.compile(r"((?:\[-?\d+:-?\d+\])+=)?\{.*", re.DOTALL)
_KEYS = re.compile(
    r'(?:"((?:[^"\\]|\\.)*)"|([^\s=>,"]+))\s*=>\s*(?:"(?:[^"\\]|\\.)*"|[^\s,]+)', re.DOTALL
)
"""Keys of HSTORE, with their values."""
_CLOCKS = re.compile(r"(\d\d:\d\d(?::\d\d)?(?:\.\d+)?) ?([+-]\d\d|(?!BC|AM|PM)[A-Za-z])?")
_STRUCTURE = re.compile(r'[\\"(),{}<>\[\]]+')


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    instant = local.replace(tzinfo=zone)
    if instant.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != local:
        raise Unfit("a local time that clocks leave out")
    return instant


def uncut_text(value: Any, longest_bytes: int) -> str:
    text = text_of(value)
    if len(text.encode()) > longest_bytes:
        raise Unfit(f"a text of more than {longest_bytes} bytes")
    return text


def money(value: Any) -> str:
    text = text_of(value)
    if not re.fullmatch(r"-?\$?\d[\d,]*(\.\d{1,2})?", text, re.ASCII):
        raise Unfit("a value that is not an amount with two decimals")
    return text


def bits(value: Any) -> str:
    """Return a text of bits; PostgreSQL would take a number's decimal digits for bits."""
    if value.__class__ in (bool, int) and value in (0, 1):
        return str(int(value))
    if not isinstance(value, str):
        raise Unfit("a value that is not a text of bits")
    return value


def hstore(value: Any) -> str:
    text = text_of(value)
    keys = [quoted or plain for quoted, plain in _KEYS.findall(text)]
    if len(set(keys)) < len(keys):
        raise Unfit("a key twice, of which the column keeps one,")
    return text


def range_conversion(*, clock: bool = True, zone: bool | None = None) -> Convert:
    """Return a range's conversion; PostgreSQL drops a time of day or zone that the type lacks.

    `zone`: whether a time of day must have one or must have none, None for both.
    """

    def convert(value: Any) -> str:
        text = text_of(value)
        zones = [found[1] != "" for found in _CLOCKS.findall(text)]
        if zones and not clock:
            raise Unfit("a time of day")
        if zone is not None and (not zone) in zones:
            raise Unfit(f"a time {'without' if zone else 'with'} a zone")
        if any(len(digits) > 6 for digits in _DECIMALS.findall(text)):
            raise Unfit("a fraction of a second with more digits than the column")
        return text

    return convert


def is_changed(given: str, found: str, *, strict: bool) -> bool:
    """Return whether PostgreSQL's own text `found` has another value than the text `given`.

    Numbers are compared by value. Unless `strict`, other differences do not count: a type such as
    PostGIS's may have an alphabet of its own.
    """
    parts, others = ([p for p in _STRUCTURE.split(text) if p] for text in (given, found))
    if len(parts) != len(others):
        return strict
    for part, other in zip(parts, others, strict=True):
        try:
            if part != other and Decimal(part) != Decimal(other):
                return True
        except InvalidOperation:
            if strict:
                return True
    return False


def interval_conversion(precision: int | None, fields: str | None) -> Convert:
    """Return an interval's conversion; PostgreSQL rounds fractions and drops shorter parts."""
    least = (fields or "second").split()[-1]
    kept = " ?".join(_INTERVALS[: list(_UNITS).index(least) + 1])
    form = re.compile(".*" if least == "second" else rf"{kept} ?(00:00:00)?", re.DOTALL)

    def convert(value: Any) -> str:
        if not isinstance(value, str):
            raise Unfit("a value that is not a text, and so has no unit,")
        if any(len(d) > (6 if precision is None else precision) for d in _DECIMALS.findall(value)):
            raise Unfit("a fraction of a second with more digits than the column")
        if _PART_OF_YEAR.search(value):
            raise Unfit("a fraction of a year")
        if not form.fullmatch(value):
            raise Unfit(f"an interval with parts shorter than a {least}, or of another form,")
        return value

    return convert


def array_conversion(convert: Convert, item: Any) -> Convert:
    """Return an array's conversion, which checks elements as the values of a column.

    Elements of a type that is not known stay as they are.
    """
    if isinstance(item, BINARIES):
        convert = _bytes
    elif isinstance(item, types.NullType):
        convert = lambda value: value  # noqa: E731

    def each(value: Any, change: Convert) -> Any:
        # A list is an inner array, or a value of JSON.
        if isinstance(value, list | tuple) and not isinstance(item, types.JSON):
            return [each(element, change) for element in value]
        return None if value is None else change(value)

    def element(found: re.Match[str]) -> str:
        quoted, plain = found.groups()
        if plain and plain.upper() == "NULL":
            return found[0]
        changed = convert(plain or re.sub(r"\\(.)", r"\1", quoted[1:-1]))
        # PostgreSQL would drop a zone that the column does not have.
        return array_element(changed) if isinstance(changed, datetime) else found[0]

    def convert_array(value: Any) -> str:
        literal = _BOUNDS.fullmatch(value) if isinstance(value, str) else None
        if literal is not None:
            # PostgreSQL's words for a boolean lose nothing.
            if isinstance(item, types.Boolean):
                return str(value)
            bounds = literal[1] or ""
            return bounds + _ELEMENTS.sub(element, value[len(bounds) :])
        change = convert
        if isinstance(value, str):
            value = json.loads(value, parse_float=Decimal, parse_int=Decimal)
            # A text within JSON is plain; a text of a list is JSON, as in a JSON column.
            change = json_text if isinstance(item, types.JSON) else convert
        if not isinstance(value, list | tuple):
            raise Unfit("a value that is not a list")
        return array_literal(each(element, change) for element in value)

    return convert_array


def _bytes(value: Any) -> Any:
    """Return bytes; PostgreSQL would store the letters of another text, such as Base64."""
    if isinstance(value, bytes) or re.fullmatch(r"\\x([\da-fA-F]{2})*", text_of(value)):
        return value
    raise Unfit("a value that is not bytes")
