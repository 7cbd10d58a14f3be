"""Schemas and values of Connect as Arrow's, column by column; `arrow_rows` does the reverse.

| Connect | Arrow |
|---|---|
| Decimal of scale 0 to 38 | decimal128(38, scale); text for another scale |
| Date, Time, Timestamp | date32, time64 and timestamp of microseconds, the latter in UTC |
| map | map of entries |
| other types | the type of the same width |

For CSV, nested values are JSON and bytes are base64. In an optional field
null stays null, whatever the schema's default is; in a required field it means the default.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
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
    Type,
)
from pyconnect_api.logical import scale_of
from pyconnect_connectors.lake.json_values import json_of, plain
from pyconnect_connectors.odd_values import OddValue, OddValues, required_default

LONGEST_SCALE = 38
Convert: TypeAlias = Callable[[Any], Any]  # values are of any class
_TEXTS = (Type.ARRAY, Type.MAP, Type.STRUCT, Type.BYTES)
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


class Columns:
    """Maker of Arrow batches from values of one schema."""

    def __init__(
        self,
        schema: Schema,
        policy: OddValues = OddValues.FAIL,
        *,
        texts: bool = False,
        narrower: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """`texts`: whether nested values and bytes become texts; `narrower`: other types by column.

        Raise DataException for a schema that is not a struct's.
        """
        if schema.type is not Type.STRUCT:
            raise DataException("The value is not a struct with a schema, and has no columns")
        if not schema.fields:
            # A file without columns would lose the row.
            raise DataException("The value is a struct without fields, and has no columns")
        self.connect_schema = schema
        self._policy = policy
        self._texts = texts
        fields = [self._field(f.name, f.schema) for f in schema.fields]
        self.schema = pa.schema([f.with_type(narrower.get(f.name, f.type)) for f in fields])
        self._converts = [self._writing(field.schema) for field in schema.fields]

    def batch(self, records: Sequence[SinkRecord], place: str) -> Any:
        """Return the values of records as a batch; raise DataException if one does not fit.

        `place` names the file or table in errors.
        """
        values: Any = [record.value for record in records]
        columns = zip(*[value.stored_values() for value in values], strict=True)
        arrays = []
        for field, convert, column in zip(self.schema, self._converts, columns, strict=True):
            try:
                found = column if convert is None else list(map(convert, column))
                array = pa.array(found, field.type)
            except (OddValue, pa.ArrowException, TypeError, ValueError, OverflowError):
                change, found = convert or _same, []
                for record, value in zip(records, column, strict=True):
                    try:
                        found.append(_fitting(change(value), field.type, self._policy))
                    except OddValue as odd:
                        # The library's error would show the value.
                        raise odd.within(field.name).of(record, place) from None
                array = pa.array(found, field.type)
            if array.null_count and not field.nullable:
                index = array.is_null().index(True).as_py()
                raise OddValue(field.name, "null", "NOT NULL").of(records[index], place)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _field(self, name: str, schema: Schema) -> Any:
        is_odd = schema.type is Type.STRING or schema.name == DECIMAL_NAME
        nullable = schema.optional or (is_odd and self._policy is OddValues.NULL)
        return pa.field(name, self._type(schema), nullable=nullable)

    def _type(self, schema: Schema) -> Any:
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
        if self._texts and schema.type in _TEXTS:
            return pa.string()
        match schema.type:
            case Type.ARRAY:
                return pa.list_(self._field("element", _inner(schema.value_schema)))
            case Type.MAP:
                return pa.map_(
                    self._type(_inner(schema.key_schema)),
                    self._field("value", _inner(schema.value_schema)),
                )
            case Type.STRUCT if not schema.fields:
                raise DataException("A struct within the value has no fields, and so no columns")
            case Type.STRUCT:
                return pa.struct([self._field(f.name, f.schema) for f in schema.fields])
        return _PLAIN[schema.type]

    def _writing(self, schema: Schema) -> Convert | None:
        """Return the conversion to what Arrow takes, None if Arrow takes the value as it is."""
        convert, default = self._writing_value(schema), required_default(schema)
        if convert is None and default is None:
            return None
        change = convert or _same

        def written(value: Any) -> Any:
            found = default if value is None else value
            return None if found is None else change(found)

        return written

    def _writing_value(self, schema: Schema) -> Convert | None:
        if schema.name == DECIMAL_NAME:
            is_number = 0 <= scale_of(schema) <= LONGEST_SCALE
            return None if is_number else lambda value: f"{value:f}"
        if self._texts and schema.type in _TEXTS:
            return lambda value: (
                b64encode(value)
                if isinstance(value, bytes)
                else json_of(plain(value, self._policy))
            ).decode()
        match schema.type:
            case Type.ARRAY:
                inner = self._writing(_inner(schema.value_schema))
                return None if inner is None else lambda value: list(map(inner, value))
            case Type.MAP:
                keys = self._writing(_inner(schema.key_schema)) or _same
                values = self._writing(_inner(schema.value_schema)) or _same
                return lambda value: [(keys(k), values(v)) for k, v in value.items()]
            case Type.STRUCT:
                names = [field.name for field in schema.fields]
                converts = [self._writing(field.schema) or _same for field in schema.fields]
                return lambda value: {
                    name: convert(each)
                    for name, convert, each in zip(
                        names, converts, value.stored_values(), strict=True
                    )
                }
        return None


def _fitting(value: Any, kind: Any, policy: OddValues) -> Any:
    """Return the value in a form that Arrow can store in this type, or raise OddValue."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        found = {}
        for index in range(kind.num_fields):
            name = kind.field(index).name
            try:
                found[name] = _fitting(value[name], kind.field(index).type, policy)
            except OddValue as error:
                raise error.within(name) from None
        return found
    if pa.types.is_map(kind):
        # A map's key is never null: null would make one key of two.
        if any(k is None for k, _ in value):
            raise OddValue("", "a map with null as a key", str(kind))
        return [
            (_fitting(k, kind.key_type, OddValues.FAIL), _fitting(v, kind.item_type, policy))
            for k, v in value
        ]
    if pa.types.is_list(kind):
        return [_fitting(element, kind.value_type, policy) for element in value]
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if policy is OddValues.NULL:
            return None
        match value:
            case str() if pa.types.is_string(kind):
                odd = "a lone surrogate"
            case Decimal() if not value.is_finite():
                odd = "NaN or infinity"
            case Decimal():
                odd = f"a number of more than {kind.precision} digits, or of another scale"
            case int():
                odd = f"a whole number of more than {kind.bit_width} bits"
            case _:
                odd = f"a value of class {type(value).__name__}"
        raise OddValue("", odd, str(kind)) from None
    return value


def _inner(schema: Schema | None) -> Schema:
    assert schema is not None, "An array or map has schemas of its elements"
    return schema


def _same(value: Any) -> Any:
    return value
