"""Casts of single values to a primitive type, as Java casts them.

Corresponds to the `castTo…` methods of `org.apache.kafka.connect.transforms.Cast`:

| from      | to integers                    | to floats     | to boolean      | to string |
|-----------|--------------------------------|---------------|-----------------|-----------|
| integer   | low bits                       | nearest       | not 0           | digits    |
| float     | cut, limited to 32 or 64 bits  | nearest       | not 0 when cut  | Java's    |
| Decimal   | cut, low bits                  | nearest       | not 0 when cut  | Java's    |
| boolean   | 1, 0                           | 1.0, 0.0      | itself          | name      |
| string    | digits in the type's range     | Java's syntax | is it `true`?   | itself    |
| bytes     | refused                        | refused       | refused         | base64    |

Temporals are cast as days or milliseconds, to a string as their ISO text. No message contains the
value that failed: records' values do not belong into logs (Kafka's messages do).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from math import isfinite, isnan, trunc

from pyconnect_api import DataException, Schema, Type
from pyconnect_api.java_text import base64_text, decimal_to_float32, to_string
from pyconnect_api.logical import from_logical
from pyconnect_api.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME
from pyconnect_api.struct import Struct
from pyconnect_api.validation import INTEGER_RANGES, to_float32
from pyconnect_api.values import convert_to_long

OUTPUT_TYPES = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
    Type.BOOLEAN,
    Type.STRING,
)
INPUT_TYPES = (*OUTPUT_TYPES, Type.BYTES)

_TEMPORAL_NAMES = frozenset({DATE_NAME, TIME_NAME, TIMESTAMP_NAME})
_BLANKS = "".join(map(chr, range(0x21)))
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(
    r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
    r"|([+-]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_FLOAT_WORD = re.compile(r"[+-]?(?:NaN|Infinity)[fFdD]")
_EXACT_IN_FLOAT64 = 2**53

Cast = Callable[[object], object]
"""Casts a value that is not None."""


def schema_cast(schema: Schema, target: Type) -> Cast:
    """Return the cast of values of that schema; DataException if there is none."""
    _check_input(schema.type)
    if target is Type.STRING:
        return lambda value: to_string(schema, value, base64_text)
    cast = _CASTS[target]
    if schema.name in _TEMPORAL_NAMES:
        return lambda value: cast(from_logical(schema, value))
    return cast


def schemaless_cast(target: Type) -> Cast:
    """Return the cast of values without a schema; it refuses those of other than basic types."""
    cast: Cast = (
        _CASTS[target]
        if target is not Type.STRING
        else lambda value: to_string(None, value, base64_text)
    )

    def checked(value: object) -> object:
        if value.__class__ not in _BASIC_CLASSES:
            _check_input(_inferred_type(value))
        return cast(value)

    return checked


def _check_input(source: Type) -> None:
    if source not in INPUT_TYPES:
        raise DataException(
            f"Cast transformation does not support casting from {source}; "
            f"supported types are {types_text(INPUT_TYPES)}"
        )


def types_text(types: tuple[Type, ...]) -> str:
    """Return how messages list types."""
    return f"[{', '.join(map(str, types))}]"


def _inferred_type(value: object) -> Type:
    """Return the type Kafka infers of a schemaless value that is none of the basic classes."""
    for classes, inferred in (
        (list | tuple, Type.ARRAY),
        (dict, Type.MAP),
        (Struct, Type.STRUCT),
        (bytearray | memoryview, Type.BYTES),
    ):
        if isinstance(value, classes):
            return inferred
    raise DataException(
        f"Cast transformation was passed a value of type class {type(value).__qualname__} "
        "which is not supported by Connect's data API"
    )


def _integer_cast(target: Type) -> Cast:
    """Return the cast to an integer type; integers, the most frequent input, come first."""
    lowest, highest = INTEGER_RANGES[target]
    floats_lowest, floats_highest = INTEGER_RANGES[
        Type.INT64 if target is Type.INT64 else Type.INT32
    ]

    def narrowed(number: int) -> int:
        if lowest <= number <= highest:
            return number
        return (number - lowest & (highest - lowest)) + lowest

    def cast(value: object) -> object:
        match value:
            case int() if value.__class__ is not bool:
                return narrowed(value)
            case bool():
                return 1 if value else 0
            case str():
                try:
                    number = int(value) if _INTEGER.fullmatch(value) else None
                except ValueError:  # more digits than Python reads
                    number = None
                if number is None or not lowest <= number <= highest:
                    raise _out_of_range(target)
                return number
            case float():
                if isnan(value):
                    return 0
                limited = max(floats_lowest, min(floats_highest, value))
                return narrowed(trunc(limited))
            case Decimal():
                return narrowed(convert_to_long(None, value) or 0)
        raise _unexpected(value)

    return cast


def _to_float64(value: object) -> object:
    match value:
        case bool():
            return 1.0 if value else 0.0
        case int() | float() | Decimal():
            return float(value)
        case str():
            return _parsed_float64(value, Type.FLOAT64)
    raise _unexpected(value)


def _to_float32(value: object) -> object:
    match value:
        case bool():
            return 1.0 if value else 0.0
        case float():
            return to_float32(value)
        case int() if abs(value) <= _EXACT_IN_FLOAT64:
            return to_float32(float(value))
        case int() | Decimal():
            return decimal_to_float32(Decimal(value))
        case str():
            nearest = _parsed_float64(value, Type.FLOAT32)
            if not isfinite(nearest) or nearest == 0:
                return nearest
            try:
                # From the text, so that it is rounded once.
                return decimal_to_float32(Decimal(value.strip(_BLANKS).rstrip("fFdD")))
            except InvalidOperation:
                return to_float32(nearest)
    raise _unexpected(value)


def _parsed_float64(text: str, target: Type) -> float:
    trimmed = text.strip(_BLANKS)
    match = _FLOAT.fullmatch(trimmed)
    if match is None or _FLOAT_WORD.fullmatch(trimmed):
        raise _out_of_range(target)
    decimal, hexadecimal = match.groups()
    if hexadecimal is None:
        return float(decimal)
    try:
        return float.fromhex(hexadecimal)
    except OverflowError:
        return float("-inf" if hexadecimal.startswith("-") else "inf")


def _to_boolean(value: object) -> object:
    match value:
        case bool():
            return value
        case int():
            return value != 0
        case float():
            return not isnan(value) and abs(value) >= 1
        case Decimal():
            return convert_to_long(None, value) != 0
        case str():
            return value.lower() == "true"
    raise _unexpected(value)


def _out_of_range(target: Type) -> DataException:
    return DataException(f"Value was out of range for requested data type {target}")


def _unexpected(value: object) -> DataException:
    return DataException(
        f"Unexpected type in Cast transformation: class {type(value).__qualname__}"
    )


_BASIC_CLASSES = frozenset({int, float, bool, str, bytes})

_CASTS: dict[Type, Cast] = {
    Type.INT8: _integer_cast(Type.INT8),
    Type.INT16: _integer_cast(Type.INT16),
    Type.INT32: _integer_cast(Type.INT32),
    Type.INT64: _integer_cast(Type.INT64),
    Type.FLOAT32: _to_float32,
    Type.FLOAT64: _to_float64,
    Type.BOOLEAN: _to_boolean,
}
