"""The forms in which a timestamp can be, and conversions between them.

Layer: builtin. Corresponds to the translators inside Kafka's `TimestampConverter`.

| form      | schema                   | value                                          |
|-----------|--------------------------|------------------------------------------------|
| string    | STRING                   | text in the configured pattern                 |
| unix      | INT64                    | number since the epoch, in the configured unit |
| Date      | Date                     | `date`                                         |
| Time      | Time                     | `time`                                         |
| Timestamp | Timestamp                | `datetime`                                     |
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time

from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_api import (
    DATE_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConnectException,
    DataException,
    Schema,
    Type,
)
from pyconnect_api.logical import (
    MILLISECONDS_PER_DAY,
    date_builder,
    date_from_days,
    date_to_days,
    time_builder,
    time_from_milliseconds,
    time_to_milliseconds,
    timestamp_builder,
    timestamp_from_milliseconds,
    timestamp_to_milliseconds,
)
from pyconnect_api.schema import DATE_NAME, TIME_NAME, TIMESTAMP_NAME

STRING = "string"
UNIX = "unix"
DATE = "Date"
TIME = "Time"
TIMESTAMP = "Timestamp"
FORMS = (STRING, UNIX, DATE, TIME, TIMESTAMP)

PRECISIONS = ("nanoseconds", "microseconds", "milliseconds", "seconds")
_UNITS_PER_MILLISECOND = {"nanoseconds": 1_000_000, "microseconds": 1000}
_MILLISECONDS_PER_SECOND = 1000
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1

_SCHEMAS = {
    STRING: (STRING_SCHEMA, OPTIONAL_STRING_SCHEMA),
    UNIX: (INT64_SCHEMA, OPTIONAL_INT64_SCHEMA),
    DATE: (DATE_SCHEMA, date_builder().optional().build()),
    TIME: (TIME_SCHEMA, time_builder().optional().build()),
    TIMESTAMP: (TIMESTAMP_SCHEMA, timestamp_builder().optional().build()),
}

Reading = Callable[[object], int]
"""Value that is not None to milliseconds since the epoch."""
Writing = Callable[[int], object]
"""Milliseconds since the epoch to value."""


class TimestampForms:
    """Conversions to one target form; `date_format` is None if strings cannot occur."""

    __slots__ = ("_readings", "_schemas", "_write")

    def __init__(self, *, target: str, date_format: JavaDateFormat | None, precision: str) -> None:
        self._schemas = _SCHEMAS[target]
        self._write = _writing(target, date_format, precision)
        self._readings: dict[str, Reading] = {
            STRING: _string_reading(date_format),
            UNIX: _unix_reading(precision),
            DATE: _read_date,
            TIME: _read_time,
            TIMESTAMP: _read_timestamp,
        }

    def target_schema(self, *, optional: bool) -> Schema:
        """Return the schema of converted values."""
        return self._schemas[optional]

    def conversion(self, schema: Schema) -> Callable[[object], object]:
        """Return the conversion of values of that schema; ConnectException if it has no form."""
        read, write = self._readings[_form_of(schema)], self._write
        return lambda value: write(read(value))

    def convert_schemaless(self, value: object) -> object:
        """Return the converted value; it is not None. DataException if its class has no form."""
        match value:
            case bool():
                pass
            case int():
                return self._write(self._readings[UNIX](value))
            case str():
                return self._write(self._readings[STRING](value))
            case datetime():
                return self._write(timestamp_to_milliseconds(value))
            case date():
                return self._write(date_to_days(value) * MILLISECONDS_PER_DAY)
            case time():
                return self._write(time_to_milliseconds(value))
        raise DataException(
            f"TimestampConverter does not support class {type(value).__qualname__} objects as "
            "timestamps"
        )


def _form_of(schema: Schema) -> str:
    match schema.name, schema.type:
        case str(name), _ if name == TIMESTAMP_NAME:
            return TIMESTAMP
        case str(name), _ if name == DATE_NAME:
            return DATE
        case str(name), _ if name == TIME_NAME:
            return TIME
        case _, Type.STRING:
            return STRING
        case _, Type.INT64:
            return UNIX
    raise ConnectException(f"Schema {schema} does not correspond to a known timestamp type format")


def _writing(target: str, date_format: JavaDateFormat | None, precision: str) -> Writing:
    match target:
        case "string":
            assert date_format is not None
            return date_format.text
        case "unix":
            if precision == "milliseconds":
                return lambda milliseconds: milliseconds
            units = _UNITS_PER_MILLISECOND.get(precision)
            if units is None:
                return lambda milliseconds: _cut(milliseconds, _MILLISECONDS_PER_SECOND)
            return lambda milliseconds: _limited(milliseconds * units)
        case "Date":
            return lambda milliseconds: date_from_days(milliseconds // MILLISECONDS_PER_DAY)
        case "Time":
            return lambda milliseconds: time_from_milliseconds(milliseconds % MILLISECONDS_PER_DAY)
    return timestamp_from_milliseconds


def _string_reading(date_format: JavaDateFormat | None) -> Reading:
    def read(value: object) -> int:
        if not isinstance(value, str):
            raise _unexpected("string timestamp to be a String", value)
        if date_format is None:
            raise DataException(
                "TimestampConverter requires the format option to read timestamps that are strings"
            )
        return date_format.milliseconds(value)

    return read


def _unix_reading(precision: str) -> Reading:
    units = _UNITS_PER_MILLISECOND.get(precision)

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _unexpected("Unix timestamp to be a Long", value)
        if precision == "milliseconds":
            return value
        if units is None:
            return _limited(value * _MILLISECONDS_PER_SECOND)
        return _cut(value, units)

    return read


def _cut(number: int, divisor: int) -> int:
    """Divide, leaving the fraction out, as Java does: towards zero."""
    return number // divisor if number >= 0 else -(-number // divisor)


def _limited(number: int) -> int:
    """Keep to 64 bits as Java's TimeUnit does: at the nearest limit."""
    return max(_LOWEST, min(_HIGHEST, number))


def _read_timestamp(value: object) -> int:
    if not isinstance(value, datetime):
        raise _unexpected("Timestamp to be a datetime", value)
    return timestamp_to_milliseconds(value)


def _read_date(value: object) -> int:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _unexpected("Date to be a date", value)
    return date_to_days(value) * MILLISECONDS_PER_DAY


def _read_time(value: object) -> int:
    if not isinstance(value, time):
        raise _unexpected("Time to be a time", value)
    return time_to_milliseconds(value)


def _unexpected(expected: str, value: object) -> DataException:
    return DataException(f"Expected {expected}, but found class {type(value).__qualname__}")
