"""Schemas and values of Connect as Arrow's, in both directions, a column at a time.

| Connect | Arrow |
|---|---|
| Decimal of scale 0 to 38 | decimal128(38, scale); text for another scale |
| Date, Time, Timestamp | date32, time64 and timestamp of microseconds, the latter in UTC |
| map | map of entries |
| other types | the type of the same width |

What Arrow has and Connect has not is read as the next type that holds it, or else as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    SchemaBuilder,
    SinkRecord,
    Struct,
    Type,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.logical import scale_of

LONGEST_SCALE = 38
Convert: TypeAlias = Callable[[Any], Any]  # values are of any class
TIMESTAMP = pa.timestamp("us", "UTC")
_PLAIN: Mapping[Type, Any] = {
    Type.INT8: pa.int8(),
    Type.INT16: pa.int16(),
    Type.INT32: pa.int32(),
    Type.INT64: pa.int64(),
    Type.FLOAT32: pa.float32(),
    Type.FLOAT64: pa.float64(),
    Type.BOOLEAN: pa.bool_(),
    Type.STRING: pa.string(),
    Type.BYTES: pa.binary(),
}


# From Connect to Arrow


class Columns:
    """Makes Arrow batches of values of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Raises DataException for a schema that is not a struct's."""
        self.connect_schema = schema
        self.schema = arrow_schema(schema)
        self._converts = [_writing(field.schema) for field in schema.fields]

    def batch(self, records: Sequence[SinkRecord]) -> Any:
        """Return the values of records as a batch; DataException if one does not fit."""
        values: Any = [record.value for record in records]
        columns = zip(*[value.stored_values() for value in values], strict=True)
        arrays = []
        for field, convert, column in zip(self.schema, self._converts, columns, strict=True):
            found = column if convert is None else list(map(convert, column))
            try:
                arrays.append(pa.array(found, field.type))
            except (pa.ArrowException, TypeError, OverflowError) as error:
                # The library's text would hold the value.
                raise DataException(
                    f"Field {field.name} has a value that does not fit {field.type}: "
                    f"{type(error).__name__}"
                ) from None
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def arrow_schema(schema: Schema) -> Any:
    """Return the Arrow schema of a struct's fields."""
    if schema.type is not Type.STRUCT:
        raise DataException("The value is not a struct with a schema, so that it has no columns")
    return pa.schema([_arrow_field(field.name, field.schema) for field in schema.fields])


def _arrow_field(name: str, schema: Schema) -> Any:
    return pa.field(name, _arrow_type(schema), nullable=schema.optional)


def _arrow_type(schema: Schema) -> Any:
    match schema.name:
        case str(name) if name == DECIMAL_NAME:
            scale = scale_of(schema)
            return pa.decimal128(38, scale) if 0 <= scale <= LONGEST_SCALE else pa.string()
        case str(name) if name == DATE_NAME:
            return pa.date32()
        case str(name) if name == TIME_NAME:
            return pa.time64("us")
        case str(name) if name == TIMESTAMP_NAME:
            return TIMESTAMP
    match schema.type:
        case Type.ARRAY:
            return pa.list_(_arrow_field("element", _inner(schema.value_schema)))
        case Type.MAP:
            return pa.map_(
                _arrow_type(_inner(schema.key_schema)),
                _arrow_field("value", _inner(schema.value_schema)),
            )
        case Type.STRUCT:
            return pa.struct([_arrow_field(f.name, f.schema) for f in schema.fields])
    return _PLAIN[schema.type]


def _writing(schema: Schema) -> Convert | None:
    """Return a conversion to a value that Arrow takes, None when it takes the value as it is."""
    convert, default = _writing_value(schema), schema.default
    if default is not None:
        replacement = default if convert is None else convert(default)

        def with_default(value: Any) -> Any:
            if value is None:
                return replacement
            return value if convert is None else convert(value)

        return with_default
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _writing_value(schema: Schema) -> Convert | None:
    if schema.name == DECIMAL_NAME:
        return None if 0 <= scale_of(schema) <= LONGEST_SCALE else str
    match schema.type:
        case Type.ARRAY:
            inner = _writing(_inner(schema.value_schema))
            return None if inner is None else lambda value: list(map(inner, value))
        case Type.MAP:
            keys = _writing(_inner(schema.key_schema)) or _same
            values = _writing(_inner(schema.value_schema)) or _same
            return lambda value: [(keys(k), values(v)) for k, v in value.items()]
        case Type.STRUCT:
            names = [field.name for field in schema.fields]
            converts = [_writing(field.schema) or _same for field in schema.fields]
            return lambda value: {
                name: convert(each)
                for name, convert, each in zip(names, converts, value.stored_values(), strict=True)
            }
    return None


def _inner(schema: Schema | None) -> Schema:
    assert schema is not None, "An array or map has schemas of its elements"
    return schema


def _same(value: Any) -> Any:
    return value


def plain(value: Any) -> Any:
    """Return a value with its structs as maps, as JSON has them."""
    if isinstance(value, Struct):
        names = [field.name for field in value.schema.fields]
        values = [value.get(field) for field in value.schema.fields]
        return dict(zip(names, map(plain, values), strict=True))
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(plain, value))
    return value


def flat_names(schema: Schema) -> Sequence[str] | None:
    """Return the names of a struct whose stored values are plain, None of another schema."""
    if schema.type is not Type.STRUCT:
        return None
    kinds = {field.schema.type for field in schema.fields}
    if kinds & {Type.ARRAY, Type.MAP, Type.STRUCT}:
        return None
    if any(field.schema.default is not None for field in schema.fields):
        return None
    return [field.name for field in schema.fields]


# From Arrow to Connect


class Rows:
    """Makes structs of Arrow batches of one schema."""

    def __init__(self, schema: Any, name: str) -> None:
        """`name` is that of the struct's schema."""
        builder = SchemaBuilder.struct().name(name)
        for field in schema:
            builder.field(field.name, _connect_schema(field))
        self.schema = builder.build()
        self._columns = [
            _reading(f.type, c.schema) for f, c in zip(schema, self.schema.fields, strict=True)
        ]

    def structs(self, batch: Any) -> list[Struct]:
        """Return a struct for each row."""
        columns = [read(column) for read, column in zip(self._columns, batch.columns, strict=True)]
        return Struct.all_of_checked(self.schema, map(list, zip(*columns, strict=True)))


def _connect_schema(field: Any) -> Schema:
    builder = _builder(field.type)
    return (builder.optional() if field.nullable else builder).build()


def _builder(kind: Any) -> SchemaBuilder:
    types = pa.types
    if types.is_dictionary(kind):
        return _builder(kind.value_type)
    if types.is_decimal(kind):
        return decimal_builder(kind.scale)
    if types.is_date(kind):
        return date_builder()
    if types.is_time(kind):
        return time_builder()
    if types.is_timestamp(kind):
        return timestamp_builder()
    if _is_list(kind):
        return SchemaBuilder.array(_connect_schema(kind.value_field))
    if types.is_map(kind):
        return SchemaBuilder.map(_builder(kind.key_type).build(), _connect_schema(kind.item_field))
    if types.is_struct(kind):
        builder = SchemaBuilder.struct()
        for index in range(kind.num_fields):
            builder.field(kind.field(index).name, _connect_schema(kind.field(index)))
        return builder
    for is_kind, make in _READ_AS:
        if is_kind(kind):
            return make()
    return SchemaBuilder.string()


def _is_list(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


_READ_AS: Sequence[tuple[Callable[[Any], bool], Callable[[], SchemaBuilder]]] = (
    (pa.types.is_boolean, SchemaBuilder.boolean),
    (pa.types.is_int8, SchemaBuilder.int8),
    (lambda kind: pa.types.is_int16(kind) or pa.types.is_uint8(kind), SchemaBuilder.int16),
    (lambda kind: pa.types.is_int32(kind) or pa.types.is_uint16(kind), SchemaBuilder.int32),
    (lambda kind: pa.types.is_int64(kind) or pa.types.is_uint32(kind), SchemaBuilder.int64),
    (lambda kind: pa.types.is_float16(kind) or pa.types.is_float32(kind), SchemaBuilder.float32),
    (pa.types.is_float64, SchemaBuilder.float64),
    (
        lambda kind: (
            pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or pa.types.is_fixed_size_binary(kind)
        ),
        SchemaBuilder.bytes,
    ),
)


def _reading(kind: Any, schema: Schema) -> Convert:
    """Return a conversion of an array to a list of Connect's values."""
    if pa.types.is_timestamp(kind):
        milliseconds = pa.timestamp("ms", "UTC")
        return lambda column: pc.cast(
            column if kind.tz is not None else pc.assume_timezone(column, "UTC"),
            milliseconds,
            safe=False,
        ).to_pylist()
    if pa.types.is_time(kind):
        return lambda column: pc.cast(column, pa.time32("ms"), safe=False).to_pylist()
    if pa.types.is_date64(kind):
        return lambda column: pc.cast(column, pa.date32()).to_pylist()
    nested = _is_list(kind) or pa.types.is_map(kind) or pa.types.is_struct(kind)
    if nested:
        convert = _reading_nested(schema)
        return lambda column: [None if v is None else convert(v) for v in column.to_pylist()]
    if schema.type is Type.STRING and not _is_text(kind):
        return lambda column: [None if v is None else str(v) for v in column.to_pylist()]
    return lambda column: column.to_pylist()


def _is_text(kind: Any) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner))


def _reading_nested(schema: Schema) -> Convert:
    """Return a conversion of Python's lists, pairs and dicts to a value of a nested schema."""
    match schema.type:
        case Type.ARRAY:
            inner = _optional(_reading_nested(_inner(schema.value_schema)))
            return lambda value: list(map(inner, value))
        case Type.MAP:
            keys = _reading_nested(_inner(schema.key_schema))
            values = _optional(_reading_nested(_inner(schema.value_schema)))
            return lambda value: {keys(k): values(v) for k, v in value}
        case Type.STRUCT:
            fields = [(f.name, _optional(_reading_nested(f.schema))) for f in schema.fields]
            return lambda value: Struct.of_checked(
                schema, [convert(value[name]) for name, convert in fields]
            )
    if schema.name == TIMESTAMP_NAME:
        return _timestamp
    return str if schema.type is Type.STRING else _same


def _optional(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _timestamp(value: Any) -> Any:
    return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)
