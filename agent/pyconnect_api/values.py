"""Conversions between the types of values, and their text form.

Corresponds to `org.apache.kafka.connect.data.Values`; parsing is in `value_parser`. Where Kafka
chooses the form of a temporal's text by a number, the value's class decides here, always in UTC.
Conversions raise DataException when there is no result.
"""

import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from math import isfinite, isnan, trunc

from pyconnect_api.errors import DataException
from pyconnect_api.java_text import (
    base64_text,
    decimal_text,
    decimal_to_float32,
    double_text,
    float_text,
    part_schema,
    temporal_text,
)
from pyconnect_api.logical import (
    date_from_days,
    date_to_days,
    decimal_from_bytes,
    decimal_schema,
    time_from_milliseconds,
    time_to_milliseconds,
    timestamp_from_milliseconds,
    timestamp_to_milliseconds,
)
from pyconnect_api.schema import Schema, StructValue, Type
from pyconnect_api.struct import Struct
from pyconnect_api.validation import INTEGER_RANGES, to_float32
from pyconnect_api.value_parser import decimal_from_text, parse_string

__all__ = [
    "convert_to_boolean",
    "convert_to_byte",
    "convert_to_date",
    "convert_to_decimal",
    "convert_to_double",
    "convert_to_float",
    "convert_to_integer",
    "convert_to_list",
    "convert_to_long",
    "convert_to_map",
    "convert_to_short",
    "convert_to_string",
    "convert_to_struct",
    "convert_to_time",
    "convert_to_timestamp",
    "parse_string",
]

_INT64_BITS = 64
_QUOTED = re.compile(r'[\\"]')
_WITH_BACKSLASH = r"\\\g<0>"


def convert_to_string(schema: Schema | None, value: object) -> str | None:
    """Return the text form; None stays None.

    Strings are unchanged at the top and quoted inside lists, maps and structs; bytes are base64;
    `[a,b]`, `{k:v}` and `{"field":v}` have no blanks; None inside is `null`.
    """
    return None if value is None else _text(schema, value, embedded=False)


def convert_to_boolean(schema: Schema | None, value: object) -> bool | None:
    """Return the boolean, the text's boolean, or whether the number is not 0."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        parsed = parse_string(value).value
        if isinstance(parsed, bool):
            return parsed
    return _as_integer(schema, value) != 0


def convert_to_byte(schema: Schema | None, value: object) -> int | None:
    """Return the number cut to 8 bits, without its fraction."""
    return _narrowed(schema, value, Type.INT8)


def convert_to_short(schema: Schema | None, value: object) -> int | None:
    """Return the number cut to 16 bits, without its fraction."""
    return _narrowed(schema, value, Type.INT16)


def convert_to_integer(schema: Schema | None, value: object) -> int | None:
    """Return the number cut to 32 bits, without its fraction."""
    return _narrowed(schema, value, Type.INT32)


def convert_to_long(schema: Schema | None, value: object) -> int | None:
    """Return the number cut to 64 bits, without its fraction."""
    return _narrowed(schema, value, Type.INT64)


def convert_to_float(schema: Schema | None, value: object) -> float | None:
    """Return the nearest binary32 number."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return decimal_to_float32(value)
    return to_float32(_as_double(schema, value))


def convert_to_double(schema: Schema | None, value: object) -> float | None:
    """Return the nearest binary64 number."""
    return None if value is None else _as_double(schema, value)


def convert_to_list(schema: Schema | None, value: object) -> list[object]:  # noqa: ARG001  # as its siblings
    """Return the list, or the list that the text is."""
    found = _parsed(_not_none(value))
    if isinstance(found, list | tuple):
        return list(found)
    raise _inconvertible(value, "Schema{ARRAY}")


def convert_to_map(schema: Schema | None, value: object) -> dict[object, object]:  # noqa: ARG001  # as its siblings
    """Return the dict, or the map that the text is."""
    found = _parsed(_not_none(value))
    if isinstance(found, dict):
        return found
    raise _inconvertible(value, "Schema{MAP}")


def convert_to_struct(schema: Schema | None, value: object) -> Struct:  # noqa: ARG001  # as its siblings
    """Return the struct; values of other types are refused."""
    if isinstance(_not_none(value), Struct):
        return value  # type: ignore[return-value]  # checked just above
    raise _inconvertible(value, "Schema{STRUCT}")


def convert_to_date(schema: Schema | None, value: object) -> date:
    """Return the day of a date, timestamp, text, or number of days since the epoch."""
    found = _parsed(_not_none(value))
    if isinstance(found, datetime):
        return timestamp_from_milliseconds(timestamp_to_milliseconds(found)).date()
    if isinstance(found, date):
        return found
    if isinstance(found, time):
        raise _inconvertible(value, "a date")
    return date_from_days(_wrapped(_as_integer(schema, found), Type.INT32))


def convert_to_time(schema: Schema | None, value: object) -> time:
    """Return the time of day of a time, timestamp, text, or number of milliseconds."""
    found = _parsed(_not_none(value))
    if isinstance(found, datetime):
        return timestamp_from_milliseconds(timestamp_to_milliseconds(found)).time()
    if isinstance(found, time):
        return found
    if isinstance(found, date):
        raise _inconvertible(value, "a time of day")
    return time_from_milliseconds(_wrapped(_as_integer(schema, found), Type.INT32))


def convert_to_timestamp(schema: Schema | None, value: object) -> datetime:
    """Return the moment of a timestamp, date, time, text, or milliseconds since the epoch."""
    found = _parsed(_not_none(value))
    if isinstance(found, datetime):
        return found
    if isinstance(found, date):
        return datetime(found.year, found.month, found.day, tzinfo=UTC)
    if isinstance(found, time):
        return timestamp_from_milliseconds(time_to_milliseconds(found))
    return timestamp_from_milliseconds(_wrapped(_as_integer(schema, found), Type.INT64))


def convert_to_decimal(schema: Schema | None, value: object, scale: int) -> Decimal:  # noqa: ARG001  # as its siblings
    """Return the decimal of a number, of text, or of unscaled bytes.

    `scale` is for bytes only; a number keeps its own scale, a float the scale of its text.
    """
    match _not_none(value):
        case Decimal():
            return value  # type: ignore[return-value]  # matched
        case bytes() | bytearray() | memoryview():
            unscaled = bytes(value)  # type: ignore[call-overload]  # matched
            return decimal_from_bytes(decimal_schema(scale), unscaled)
        case bool():
            raise _inconvertible(value, "a decimal")
        case int():
            return Decimal(value)  # type: ignore[arg-type]  # matched
        case float() if isfinite(value):  # type: ignore[arg-type]  # matched
            return Decimal(double_text(value))  # type: ignore[arg-type]  # matched
        case str():
            number = decimal_from_text(value)  # type: ignore[arg-type]  # matched
            if number is not None:
                return number
    raise _inconvertible(value, "a decimal")


def _text(schema: Schema | None, value: object, *, embedded: bool) -> str:
    match value:
        case None:
            return "null"
        case str():
            return f'"{_QUOTED.sub(_WITH_BACKSLASH, value)}"' if embedded else value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            is_float32 = schema is not None and schema.type is Type.FLOAT32
            return float_text(value) if is_float32 else double_text(value)
        case Decimal():
            return decimal_text(value)
        case bytes() | bytearray() | memoryview():
            return f'"{base64_text(value)}"' if embedded else base64_text(value)
        case list() | tuple():
            element_schema = part_schema(schema, Type.ARRAY)
            return f"[{','.join(_text(element_schema, e, embedded=True) for e in value)}]"
        case dict():
            value_schema = part_schema(schema, Type.MAP)
            is_map = schema is not None and schema.type is Type.MAP
            key_schema = schema.key_schema if schema is not None and is_map else None
            entries = (
                f"{_text(key_schema, k, embedded=True)}:{_text(value_schema, v, embedded=True)}"
                for k, v in value.items()
            )
            return f"{{{','.join(entries)}}}"
        case StructValue():
            members = []
            for field, stored in zip(value.schema.fields, value.stored_values(), strict=True):
                member = field.schema.default if stored is None else stored
                name = _text(None, field.name, embedded=True)
                members.append(f"{name}:{_text(field.schema, member, embedded=True)}")
            return f"{{{','.join(members)}}}"
        case date() | time():
            return temporal_text(value)
    raise DataException(f"Failed to serialize unexpected value type {type(value).__qualname__}")


def _not_none(value: object) -> object:
    if value is None:
        raise DataException("Unable to convert a null value to a schema that requires a value")
    return value


def _parsed(value: object) -> object:
    return parse_string(value).value if isinstance(value, str) else value


def _narrowed(schema: Schema | None, value: object, target: Type) -> int | None:
    return None if value is None else _wrapped(_as_integer(schema, value), target)


def _wrapped(number: int, target: Type) -> int:
    """Keep the low bits, as a narrowing cast in Java does."""
    lowest, highest = INTEGER_RANGES[target]
    return (number - lowest & (highest - lowest)) + lowest


def _as_integer(schema: Schema | None, value: object) -> int:
    """Return the number without its fraction; for more than 64 bits the low ones."""
    match value:
        case bool():
            pass
        case int():
            return value
        case float():
            # As in Java: NaN is 0, and a number that is too large becomes the largest one.
            lowest, highest = INTEGER_RANGES[Type.INT64]
            if not isfinite(value):
                return 0 if isnan(value) else highest if value > 0 else lowest
            return max(lowest, min(highest, trunc(value)))
        case Decimal():
            return _low_bits(value)
        case str():
            number = decimal_from_text(value)
            if number is not None:
                return _low_bits(number)
        case datetime():
            return timestamp_to_milliseconds(value)
        case date():
            return date_to_days(value)
        case time():
            return time_to_milliseconds(value)
    raise _inconvertible(value, "a number" if schema is None else str(schema))


def _low_bits(number: Decimal) -> int:
    """Return the low 64 bits of a number without its fraction, as BigDecimal.longValue.

    A short text such as 1E+999999999 has more digits than memory holds: they are never made.
    """
    exponent = number.as_tuple().exponent
    # 10 to the power of 64 is a multiple of 2 to the power of 64.
    if isinstance(exponent, int) and (exponent >= _INT64_BITS or number.adjusted() < 0):
        return 0
    return _wrapped(trunc(number), Type.INT64)


def _as_double(schema: Schema | None, value: object) -> float:
    match value:
        case bool():
            pass
        case int() | float() | Decimal():
            return float(value)
        case str():
            number = decimal_from_text(value)
            if number is not None:
                return float(number)
    return float(_as_integer(schema, value))


def _inconvertible(value: object, target: str) -> DataException:
    return DataException(
        f"Unable to convert a value of class {type(value).__qualname__} to {target}"
    )
