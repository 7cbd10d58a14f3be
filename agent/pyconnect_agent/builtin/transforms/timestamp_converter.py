"""`org.apache.kafka.connect.transforms.TimestampConverter`: between texts, numbers and temporals.

All forms are converted through milliseconds since the epoch, so smaller digits are cut towards
zero. The schema of a value decides its form; without a schema its class does. Times are UTC.

| form      | schema                   | value                                          |
|-----------|--------------------------|------------------------------------------------|
| string    | STRING                   | text in the configured pattern                 |
| unix      | INT64                    | number since the epoch, in the configured unit |
| Date      | Date                     | `date`                                         |
| Time      | Time                     | `time`                                         |
| Timestamp | Timestamp                | `datetime`                                     |
"""

from collections.abc import Callable
from datetime import date, datetime, time

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.java_date_format import JavaDateFormat
from pyconnect_agent.builtin.transforms.schemas import (
    ChangedStruct,
    SchemaCache,
    require_map,
    require_struct,
)
from pyconnect_api import (
    DATE_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIME_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConfigException,
    ConnectException,
    ConnectRecord,
    DataException,
    Schema,
    Struct,
    Type,
    ValidString,
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
_FORMS_BY_NAME = {TIMESTAMP_NAME: TIMESTAMP, DATE_NAME: DATE, TIME_NAME: TIME}
_FORMS_BY_TYPE = {Type.STRING: STRING, Type.INT64: UNIX}

Reading = Callable[[object], int]
"""Converts a value other than None to milliseconds since the epoch."""
Writing = Callable[[int], object]
"""Converts milliseconds since the epoch to a value."""


class TimestampForms:
    """Conversions to one target form; `date_format` is None if strings cannot occur."""

    __slots__ = ("_readings", "_schemas", "_write")

    def __init__(self, *, target: str, date_format: JavaDateFormat | None, precision: str) -> None:
        units = _UNITS_PER_MILLISECOND.get(precision)

        def read_string(value: object) -> int:
            if not isinstance(value, str):
                raise _unexpected("string timestamp to be a String", value)
            if date_format is None:
                raise DataException(
                    "TimestampConverter requires the format option to read timestamps that are"
                    " strings"
                )
            return date_format.milliseconds(value)

        def read_unix(value: object) -> int:
            if not isinstance(value, int) or isinstance(value, bool):
                raise _unexpected("Unix timestamp to be a Long", value)
            if precision == "milliseconds":
                return value
            if units is None:
                return _limited(value * _MILLISECONDS_PER_SECOND)
            return _cut(value, units)

        self._schemas = _SCHEMAS[target]
        self._write = _writing(target, date_format, precision)
        self._readings: dict[str, Reading] = {
            STRING: read_string,
            UNIX: read_unix,
            DATE: _read_date,
            TIME: _read_time,
            TIMESTAMP: _read_timestamp,
        }

    def target_schema(self, *, optional: bool) -> Schema:
        """Return the schema of converted values."""
        return self._schemas[optional]

    def conversion(self, schema: Schema) -> Callable[[object], object]:
        """Return the conversion of values of that schema; ConnectException if it has no form."""
        form = _FORMS_BY_NAME.get(schema.name or "") or _FORMS_BY_TYPE.get(schema.type)
        if form is None:
            raise ConnectException(
                f"Schema {schema} does not correspond to a known timestamp type format"
            )
        read, write = self._readings[form], self._write
        return lambda value: write(read(value))

    def convert_schemaless(self, value: object) -> object:
        """Return the converted value, which is not None; DataException if its class has no form."""
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


def _cut(number: int, divisor: int) -> int:
    """Divide and cut the fraction towards zero, as Java does."""
    return number // divisor if number >= 0 else -(-number // divisor)


def _limited(number: int) -> int:
    """Limit a number to 64 bits as Java's TimeUnit does, at the nearest limit."""
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


FIELD = "field"
TARGET_TYPE = "target.type"
FORMAT = "format"
UNIX_PRECISION = "unix.precision"
_PURPOSE = "converting timestamp formats"

_Conversion = Callable[[object], object]

_TABLE = """
field  STRING  HIGH  ""
    The field to convert; empty if the whole value is a timestamp.
target.type  STRING  HIGH  !
    What timestamps become: string, unix, Date, Time or Timestamp.
format  STRING  MEDIUM  ""
    Pattern of java.text.SimpleDateFormat for timestamps that are strings, before or after the
    conversion.
unix.precision  STRING  LOW  milliseconds
    Unit of timestamps that are numbers: seconds, milliseconds, microseconds or nanoseconds. What is
    finer than a millisecond is lost.
"""


class TimestampConverter(OneSideTransformation):
    """Converts one field, or with an empty `field` the whole value; None stays None."""

    CONFIG_DEF = with_null_key(
        _TABLE,
        {TARGET_TYPE: ValidString.one_of(*FORMS), UNIX_PRECISION: ValidString.one_of(*PRECISIONS)},
    )

    _field: str
    _forms: TimestampForms
    _structs: SchemaCache[tuple[ChangedStruct, ConnectException | None]]
    _wholes: SchemaCache[tuple[Schema, _Conversion]]

    def configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        target, pattern = options.text(TARGET_TYPE), options.text(FORMAT)
        if target == STRING and not pattern:
            raise ConfigException(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        date_format = None
        if pattern:
            try:
                date_format = JavaDateFormat(pattern)
            except ValueError as error:
                raise ConfigException(
                    "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                    f"timestamps: {pattern}"
                ) from error
        forms = self._forms = TimestampForms(
            target=target, date_format=date_format, precision=options.text(UNIX_PRECISION)
        )
        self._structs = SchemaCache(self._changed_struct)
        self._wholes = SchemaCache(
            lambda schema: (forms.target_schema(optional=schema.optional), forms.conversion(schema))
        )

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        if value is None:
            return None
        convert = self._forms.convert_schemaless
        if not self._field:
            return convert(value)
        updated = dict(require_map(value, _PURPOSE))
        found = updated.get(self._field)
        updated[self._field] = None if found is None else convert(found)
        return updated

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        if not self._field:
            target, convert = self._wholes.of(schema)
            return target, None if value is None else convert(value)
        struct = None if value is None else require_struct(value, _PURPOSE)
        changed, refusal = self._structs.of(schema if struct is None else struct.schema)
        if struct is None:
            return changed.target, None
        if refusal is not None:
            raise ConnectException(*refusal.args)
        return changed.target, changed.struct(struct)

    def _changed_struct(self, schema: Schema) -> tuple[ChangedStruct, ConnectException | None]:
        """Return the conversion, and why the field has none, which is an error for structs only."""
        source, refusal = schema.field(self._field), None
        changes: dict[str, tuple[Schema, _Conversion]] = {}
        if source is not None:
            target = self._forms.target_schema(optional=source.schema.optional)
            try:
                changes[self._field] = (target, self._forms.conversion(source.schema))
            except ConnectException as error:
                if isinstance(schema.default, Struct):
                    raise
                refusal = error
                changes[self._field] = (target, lambda value: value)
        changed = ChangedStruct(schema, changes, replace_null_with_default=self.with_default)
        return changed, refusal


TimestampConverterKey, TimestampConverterValue = both_sides(TimestampConverter)
