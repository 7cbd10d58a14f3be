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
from typing import Any, TypeAlias

import pyarrow as pa

from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    SinkRecord,
    Struct,
    Type,
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
