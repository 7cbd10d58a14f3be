"""Rows of Arrow batches as Connect's structs, a column at a time.

| Arrow | Connect |
|---|---|
| unsigned numbers | the next wider number; text for uint64 |
| decimals | Decimal of the same scale |
| date, time, timestamp | Date, Time, Timestamp; what is finer than a millisecond is cut off |
| duration | text of ISO 8601 |
| uuid | its text |
| lists, map, struct | array, map, struct |
| dictionary, extension | the type of its values |
| other types | the type of the same width |

Connect's dates and timestamps are of the years 1 to 9999, and its times of one day. Arrow's may be
outside, and a text of a file may not be UTF-8. `values.out.of.range` is the policy for such values.
Columns are read as a whole, and value by value only if one of their values is odd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from pyconnect_api import (
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.logical import (
    MILLISECONDS_PER_DAY,
    date_from_days,
    date_to_days,
    time_from_milliseconds,
    timestamp_from_milliseconds,
)
from pyconnect_connectors.odd_values import OddValue, OddValues

Convert: TypeAlias = Callable[[Any], object]
Quick: TypeAlias = Callable[[Any], list[Any] | None]
_PER_SECOND = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}
_FIRST_DAY, _LAST_DAY = date_to_days(date.min), date_to_days(date.max)
_DAYS_OF_400_YEARS = 146_097
_UTC_MS = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """How values of an Arrow type are read.

    `stored` is the Arrow type that Python reads without loss or failure. `convert` makes Connect's
    value of such a value, or raises OddValue. `quick` reads a whole column of usual values, and
    returns None for a column with another value.
    """

    schema: Schema
    stored: Any
    convert: Convert | None = None
    quick: Quick | None = None


class _Place(NamedTuple):
    """The path of a field's column, whether it may be null, and `values.out.of.range`."""

    path: str
    nullable: bool
    policy: OddValues

    def inner(self, name: str, field: Any) -> _Place:
        return _Place(f"{self.path}{name}", field.nullable, self.policy)

    def schema(self, builder: SchemaBuilder, *, is_odd: bool = False) -> Schema:
        """Return the field's schema; `is_odd`: values may be outside the range of its type."""
        optional = self.nullable or (is_odd and self.policy is OddValues.NULL)
        return (builder.optional() if optional else builder).build()

    def convert(self, convert: Convert) -> Convert:
        """Return a conversion that returns None in place of OddValue if the policy is `null`."""
        if self.policy is not OddValues.NULL:
            return convert

        def convert_or_null(value: Any) -> object:
            try:
                return convert(value)
            except OddValue:
                return None

        return convert_or_null

    def refuse(self, kind: Any) -> DataException:
        return DataException(f"Column {self.path} has the type {kind}, which Connect has not")


class Rows:
    """Maker of structs from Arrow batches of one schema."""

    def __init__(self, schema: Any, name: str, policy: OddValues = OddValues.FAIL) -> None:
        """`name` is the struct schema's. Raise DataException for types that Connect lacks."""
        self._readings = [
            _reading(field.type, _Place(field.name, field.nullable, policy)) for field in schema
        ]
        if "" in schema.names:
            raise DataException(f"Column {schema.names.index('') + 1} has no name")
        builder = SchemaBuilder.struct().name(name)
        for field, reading in zip(schema, self._readings, strict=True):
            builder.field(field.name, reading.schema)
        self.schema = builder.build()

    def structs(self, batch: Any) -> tuple[list[Struct], Mapping[int, OddValue]]:
        """Return a struct for each row, and the odd values by the index of their row."""
        odd: dict[int, OddValue] = {}
        columns: list[list[Any]] = []
        for reading, found in zip(self._readings, batch.columns, strict=True):
            column = found.storage if isinstance(found, pa.ExtensionArray) else found
            # Some of Arrow's functions do not take a dictionary.
            column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            values = None if reading.quick is None else reading.quick(column)
            if values is None:
                stored = column if column.type == reading.stored else column.cast(reading.stored)
                values = stored.to_pylist()
                if reading.convert is not None:
                    for index, value in enumerate(values):
                        try:
                            values[index] = None if value is None else reading.convert(value)
                        except OddValue as error:
                            odd.setdefault(index, error)
                            values[index] = None
            columns.append(values)
        return Struct.all_of_checked(self.schema, map(list, zip(*columns, strict=True))), odd


def _reading(kind: Any, place: _Place) -> _Reading:
    types = pa.types
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            schema = place.schema(SchemaBuilder.string())
            return _Reading(
                schema=schema, stored=pa.binary(16), convert=lambda value: str(UUID(bytes=value))
            )
        return _reading(kind.storage_type, place)
    if types.is_dictionary(kind):
        return _reading(kind.value_type, place)
    if types.is_decimal(kind):
        return _Reading(schema=place.schema(decimal_builder(kind.scale)), stored=kind)
    if types.is_temporal(kind):
        return _temporal(kind, place)
    if types.is_map(kind):
        return _map(kind, place)
    if types.is_struct(kind):
        return _struct(kind, place)
    if types.is_nested(kind):
        return _array(kind, place)
    if _is_any(kind, types.is_string, types.is_large_string, types.is_string_view):
        return _texts(place)
    for make, stored, *kinds in _PLAIN:
        if _is_any(kind, *kinds):
            return _Reading(schema=place.schema(make()), stored=kind if stored is None else stored)
    if types.is_uint64(kind):
        return _Reading(schema=place.schema(SchemaBuilder.string()), stored=kind, convert=str)
    if types.is_null(kind):
        return _Reading(schema=place.schema(SchemaBuilder.string()), stored=kind)
    raise place.refuse(kind)


def _is_any(kind: Any, *tests: Callable[[Any], bool]) -> bool:
    return any(test(kind) for test in tests)


_PLAIN: Sequence[tuple[Any, ...]] = (
    (SchemaBuilder.boolean, None, pa.types.is_boolean),
    (SchemaBuilder.int8, None, pa.types.is_int8),
    (SchemaBuilder.int16, None, pa.types.is_int16, pa.types.is_uint8),
    (SchemaBuilder.int32, None, pa.types.is_int32, pa.types.is_uint16),
    (SchemaBuilder.int64, None, pa.types.is_int64, pa.types.is_uint32),
    (SchemaBuilder.float32, pa.float32(), pa.types.is_float16, pa.types.is_float32),
    (SchemaBuilder.float64, None, pa.types.is_float64),
    (
        SchemaBuilder.bytes,
        None,
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    ),
)
"""A schema's builder, the type to read values as (None: their own), and the tests of types."""


def _texts(place: _Place) -> _Reading:
    def to_text(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise OddValue(place.path, "a text that is not UTF-8", "STRING") from None

    def quick(column: Any) -> list[Any] | None:
        try:
            return column.to_pylist()  # type: ignore[no-any-return]  # of an untyped library
        except UnicodeDecodeError:
            return None

    return _Reading(
        schema=place.schema(SchemaBuilder.string(), is_odd=True),
        stored=pa.large_binary(),
        convert=place.convert(to_text),
        quick=quick,
    )


# Times and dates, read as numbers


def _temporal(kind: Any, place: _Place) -> _Reading:
    types = pa.types
    stored = pa.int32() if types.is_date32(kind) or types.is_time32(kind) else pa.int64()
    if types.is_duration(kind):
        per_second = _PER_SECOND[kind.unit]

        def to_text(value: int) -> str:
            """Return a duration in seconds as ISO 8601: `PT90061.5S`."""
            seconds, fraction = divmod(abs(value), per_second)
            return f"{'-' if value < 0 else ''}PT{seconds}{_fraction_text(fraction, per_second)}S"

        return _Reading(schema=place.schema(SchemaBuilder.string()), stored=stored, convert=to_text)
    if types.is_timestamp(kind):
        builder, convert, text, quick = _timestamps(kind, place.path)
    elif types.is_date(kind):
        builder, convert, text, quick = _dates(kind, place.path)
    elif types.is_time(kind):
        builder, convert, text, quick = _times(kind, place.path)
    else:
        raise place.refuse(kind)
    # Nanoseconds in 64 bits reach from 1677 to 2262, so they are never odd.
    is_odd = not (types.is_timestamp(kind) and kind.unit == "ns")
    if is_odd and place.policy is OddValues.TEXT:
        return _Reading(schema=place.schema(SchemaBuilder.string()), stored=stored, convert=text)
    return _Reading(
        schema=place.schema(builder, is_odd=is_odd),
        stored=stored,
        convert=place.convert(convert),
        quick=quick,
    )


_Forms: TypeAlias = tuple[SchemaBuilder, Convert, Convert, Quick]
"""A schema's builder, conversions of a number to a value and to a text, and that of a column."""


def _dates(kind: Any, path: str) -> _Forms:
    per_day = 1 if pa.types.is_date32(kind) else MILLISECONDS_PER_DAY

    def quick(column: Any) -> list[Any] | None:
        is_days = pa.types.is_date32(column.type)
        days = column if is_days else pc.cast(column, pa.date32(), safe=False)
        try:
            return days.to_pylist()  # type: ignore[no-any-return]  # of an untyped library
        except OverflowError:
            return None

    return (
        date_builder(),
        lambda value: date_from_days(_day(value // per_day, path, "Date")),
        lambda value: _day_text(value // per_day),
        quick,
    )


def _times(kind: Any, path: str) -> _Forms:
    per_second = _PER_SECOND[kind.unit]

    def to_time(value: int) -> object:
        milliseconds = value * 1000 // per_second
        if not 0 <= milliseconds < MILLISECONDS_PER_DAY:
            raise OddValue(path, "a time that is not within a day", "Time")
        return time_from_milliseconds(milliseconds)

    def quick(column: Any) -> list[Any] | None:
        stored = pa.int32() if pa.types.is_time32(column.type) else pa.int64()
        limits = pc.min_max(column.cast(stored)).as_py()
        is_usual = limits["min"] is None or (
            limits["min"] >= 0 and limits["max"] < 86_400 * per_second
        )
        # Python would wrap a time that is outside one day.
        return pc.cast(column, pa.time32("ms"), safe=False).to_pylist() if is_usual else None

    return time_builder(), to_time, lambda value: _time_text(value, per_second), quick


def _timestamps(kind: Any, path: str) -> _Forms:
    per_second = _PER_SECOND[kind.unit]
    suffix = "" if kind.tz is None else "Z"

    def to_timestamp(value: int) -> object:
        milliseconds = value * 1000 // per_second
        _day(milliseconds // MILLISECONDS_PER_DAY, path, "Timestamp")
        return timestamp_from_milliseconds(milliseconds)

    def to_text(value: int) -> str:
        days, rest = divmod(value, 86_400 * per_second)
        return f"{_day_text(days)}T{_time_text(rest, per_second)}{suffix}"

    def quick(column: Any) -> list[Any] | None:
        per_day = 86_400 * per_second
        limits = pc.min_max(column.cast(pa.int64())).as_py()
        if limits["min"] is None:
            return [None] * len(column)
        if limits["min"] < _FIRST_DAY * per_day or limits["max"] >= (_LAST_DAY + 1) * per_day:
            return None
        whole = column if limits["min"] >= 0 else pc.floor_temporal(column, unit="millisecond")
        moments = whole if whole.type.tz is not None else pc.assume_timezone(whole, "UTC")
        return pc.cast(moments, _UTC_MS, safe=False).to_pylist()  # type: ignore[no-any-return]

    return timestamp_builder(), to_timestamp, to_text, quick


def _day(days: int, path: str, target: str) -> int:
    if days > _LAST_DAY:
        raise OddValue(path, "a year after 9999", target)
    if days < _FIRST_DAY:
        raise OddValue(path, "a year before 1", target)
    return days


def _day_text(days: int) -> str:
    """Return a day of any year in ISO 8601, with a sign as in Java: `+10000-01-01`, `-0043-…`."""
    # The calendar repeats itself after 400 years.
    cycles, rest = divmod(days - date_to_days(date(2000, 1, 1)), _DAYS_OF_400_YEARS)
    day = date(2000, 1, 1) + timedelta(days=rest)
    year = day.year + 400 * cycles
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{day.month:02}-{day.day:02}"


def _time_text(value: int, per_second: int) -> str:
    """Return a time such as `25:30:00.000001`; hours may exceed 24, a negative time has a sign."""
    seconds, fraction = divmod(abs(value), per_second)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return ("-" if value < 0 else "") + text + _fraction_text(fraction, per_second)


def _fraction_text(fraction: int, per_second: int) -> str:
    digits = f"{fraction:0{len(str(per_second)) - 1}}".rstrip("0") if fraction else ""
    return f".{digits}" if digits else ""


# Nested types


def _array(kind: Any, place: _Place) -> _Reading:
    if not hasattr(kind, "value_field"):
        raise place.refuse(kind)
    element = kind.value_field
    inner = _reading(element.type, place.inner("", element))
    each = _or_none(inner.convert)
    stored = kind
    if inner.stored != element.type:
        # Arrow cannot cast the elements of a view.
        if _is_any(kind, pa.types.is_list_view, pa.types.is_large_list_view):
            raise place.refuse(kind)
        stored = pa.large_list(element.with_type(inner.stored))
    return _Reading(
        schema=place.schema(SchemaBuilder.array(inner.schema)),
        stored=stored,
        convert=lambda value: list(map(each, value)),
    )


def _map(kind: Any, place: _Place) -> _Reading:
    # A map's key is never null: an odd key is the row's fault.
    policy = OddValues.FAIL if place.policy is OddValues.NULL else place.policy
    if pa.types.is_nested(kind.key_type):
        raise place.refuse(kind)
    keys = _reading(kind.key_type, _Place(f"{place.path}.key", False, policy))
    values = _reading(kind.item_type, place.inner(".value", kind.item_field))
    key, each = _or_none(keys.convert), _or_none(values.convert)

    def to_map(value: Any) -> object:
        found = {key(k): each(v) for k, v in value}
        if len(found) < len(value):
            raise OddValue(place.path, "a map with a key twice", "MAP")
        return found

    return _Reading(
        schema=place.schema(SchemaBuilder.map(keys.schema, values.schema)),
        stored=pa.map_(keys.stored, kind.item_field.with_type(values.stored)),
        convert=to_map,
    )


def _struct(kind: Any, place: _Place) -> _Reading:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    readings = [_reading(f.type, place.inner(f".{f.name}", f)) for f in fields]
    builder = SchemaBuilder.struct()
    for field, reading in zip(fields, readings, strict=True):
        builder.field(field.name, reading.schema)
    schema = place.schema(builder)
    members = [
        (f.name, _or_none(reading.convert)) for f, reading in zip(fields, readings, strict=True)
    ]
    return _Reading(
        schema=schema,
        stored=pa.struct(
            [f.with_type(reading.stored) for f, reading in zip(fields, readings, strict=True)]
        ),
        convert=lambda value: Struct.of_checked(
            schema, [convert(value[name]) for name, convert in members]
        ),
    )


def _or_none(convert: Convert | None) -> Convert:
    if convert is None:
        return lambda value: value
    return lambda value: None if value is None else convert(value)
