"""Meaning of a value, stated without the code under test: exact Python values and their texts. A
column has a kind. The kind says how the text that a database or file holds is understood, and
when two values are equal. Texts that Python cannot hold (`infinity`, years before 1) are `Odd`.
"""

import base64
import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from enum import StrEnum
from typing import Any

EPOCH = datetime.fromisoformat("1970-01-01")
_EXACT = Context(prec=5000, Emax=9999, Emin=-9999)
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d(?::?\d\d)?)?)?"
)
_TIME = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?")


class Kind(StrEnum):
    """How values of a column are understood and compared, by kind."""

    BOOL = "boolean"
    INT = "integer"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    DECIMAL = "decimal"
    NUMBER = "number"
    """Any number in data without a schema."""
    TEXT = "text"
    BYTES = "bytes"
    DATE = "date"
    TIME = "time"
    STAMP = "timestamp"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Odd:
    """A value that the kind cannot hold; `text` is the form of the database or file."""

    text: str


def float32(value: float) -> float:
    """Return the nearest number of 32 bits."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _stamp(text: str) -> datetime | Odd:
    found = _STAMP.fullmatch(text)
    if found is None:
        return Odd(text)
    *parts, fraction, zone = found.groups()
    micros = (fraction or "0").ljust(9, "0")[:6]
    year, month, day, *clock = (part or "00" for part in parts)
    try:
        local = datetime.fromisoformat(f"{year}-{month}-{day} {':'.join(clock)}.{micros}")
    except ValueError:
        return Odd(text)
    if zone in (None, "Z"):
        return local
    hours, minutes = int(zone[:3]), int(zone[3:].strip(":") or 0)
    return local - timedelta(hours=hours, minutes=minutes if hours >= 0 else -minutes)


def _time(text: str) -> time | Odd:
    found = _TIME.fullmatch(text.removesuffix("Z"))
    if found is None:
        return Odd(text)
    hour, minute, second, fraction = found.groups()
    micros = int((fraction or "0").ljust(9, "0")[:6])
    try:
        return time(int(hour), int(minute), int(second or 0), micros)
    except ValueError:
        return Odd(text)


def _date(text: str) -> date | Odd:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else Odd(text)
    except ValueError:
        return Odd(text)


def parsed_json(text: str) -> object:
    """Return JSON with each number exact: 1.10 and 1.1 are equal, 0.1 is not a binary float."""
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _decimal(text: str) -> Decimal | Odd:
    try:
        found = Decimal(text)
    except ArithmeticError:
        return Odd(text)
    return found if found.is_finite() else Odd(text)


def _bytes(text: str) -> bytes:
    digits = text.removeprefix("\\x")
    # MariaDB writes BIT as a number.
    return bytes.fromhex(digits.zfill(len(digits) + len(digits) % 2))


_OF_TEXT: dict[Kind, Callable[[str], object]] = {
    Kind.BOOL: lambda text: {"t": True, "1": True, "f": False, "0": False}[text[:1]],
    Kind.INT: int,
    Kind.FLOAT32: lambda text: float32(float(text)),
    Kind.FLOAT64: float,
    Kind.DECIMAL: _decimal,
    Kind.NUMBER: _decimal,
    Kind.TEXT: str,
    Kind.BYTES: _bytes,
    Kind.DATE: _date,
    Kind.TIME: _time,
    Kind.STAMP: _stamp,
    # Null of JSON is a value, unlike null of SQL.
    Kind.JSON: lambda text: Odd("null") if text == "null" else parsed_json(text),
}


def of_text(kind: Kind, text: str) -> object:
    """Return the meaning of a database's own text form; Odd if the kind has no such value."""
    try:
        return _OF_TEXT[kind](text)
    except (ValueError, KeyError):
        return Odd(text)


def of_python(kind: Kind, value: Any) -> object:  # noqa: C901  one case a class
    """Return the meaning of a value from the reader of a file or of SQLite."""
    if value is None:
        return None
    match kind, value:
        case Kind.STAMP, datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        case Kind.DATE, datetime():
            return value
        case (Kind.DATE, date()) | (Kind.TIME, time()) | (Kind.BOOL, bool()):
            return value
        case Kind.BOOL, 0 | 1:
            return bool(value)
        case Kind.BYTES, bytes():
            return value
        case Kind.BYTES, str():
            try:
                return base64.b64decode(value, validate=True)
            except ValueError:
                return Odd(value)
        case Kind.JSON, list() | dict():
            return _json(value)
        case Kind.TEXT, _ if not isinstance(value, str):
            return Odd(f"{type(value).__name__} {value!r}")
        case _, str():
            # SQLite keeps texts that are not UTF-8.
            return of_text(kind, value) if _is_utf8(value) else Odd(value)
        case Kind.INT, int() if not isinstance(value, bool):
            return value
        case Kind.INT, Decimal() if value == value.to_integral_value():
            return int(value)
        case Kind.FLOAT32, float() | int() | Decimal():
            return float32(float(value))
        case Kind.FLOAT64, float() | int() | Decimal():
            return float(value)
        case Kind.DECIMAL | Kind.NUMBER, Decimal() | int():
            return Decimal(value)
        case Kind.DECIMAL | Kind.NUMBER, float():
            return _decimal(repr(value))
        case Kind.JSON, bool() | Decimal():
            return value
        case Kind.JSON, int() | float():
            return Decimal(repr(value))
    return Odd(f"{type(value).__name__} {value!r}")


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _json(value: Any) -> object:
    """Return a nested value of a file's reader as JSON with exact numbers."""
    match value:
        case [tuple(), *_]:
            # Arrow's maps are lists of pairs.
            return {key: _json(each) for key, each in value}
        case list():
            return list(map(_json, value))
        case dict():
            return {key: _json(each) for key, each in value.items()}
        case bytes():
            return base64.b64encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
        case bool() | None | str() | Decimal():
            return value
    return Decimal(repr(value))


def equal(kind: Kind, expected: object, found: object) -> bool:
    """Return whether two meanings are the same, the sign of zero and the class included."""
    if expected is None or found is None:
        return expected is found
    if isinstance(expected, float) and isinstance(found, float):
        if kind is Kind.FLOAT32:
            expected, found = float32(expected), float32(found)
        return struct.pack("<d", expected) == struct.pack("<d", found) or (
            expected != expected and found != found
        )
    return type(expected) is type(found) and expected == found


def to_milliseconds(meaning: object) -> object:
    """Return times as Connect's types hold them: cut to the earlier whole millisecond."""
    if isinstance(meaning, datetime | time):
        return meaning.replace(microsecond=meaning.microsecond // 1000 * 1000)
    return meaning


def without_schema(kind: Kind, meaning: object, scale: int | None) -> tuple[Kind, object]:
    """Return the value in JSON without a schema, as Connect's formats define it.

    Dates and times are numbers of days and milliseconds, bytes and decimals are base64.
    """
    if meaning is None:
        kinds = {Kind.DATE: Kind.INT, Kind.TIME: Kind.INT, Kind.STAMP: Kind.INT}
        kinds |= {Kind.BYTES: Kind.TEXT}
        kinds |= {} if scale is None else {Kind.DECIMAL: Kind.TEXT}
        return kinds.get(kind, kind), None
    match meaning:
        case float() if not math.isfinite(meaning):
            # As Apache's JsonConverter writes them.
            return Kind.TEXT, str(meaning).replace("inf", "Infinity").replace("nan", "NaN")
        case bytes():
            return Kind.TEXT, base64.b64encode(meaning).decode()
        case Decimal() if kind is Kind.DECIMAL and scale is not None:
            unscaled = int(meaning.scaleb(scale, _EXACT))
            size = max(1, (unscaled + (unscaled < 0)).bit_length() // 8 + 1)
            return Kind.TEXT, base64.b64encode(unscaled.to_bytes(size, "big", signed=True)).decode()
        case datetime():
            return Kind.INT, (meaning - EPOCH) // timedelta(milliseconds=1)
        case date():
            return Kind.INT, (meaning - EPOCH.date()).days
        case time():
            since = datetime.combine(EPOCH.date(), meaning) - EPOCH
            return Kind.INT, since // timedelta(milliseconds=1)
    return kind, meaning
