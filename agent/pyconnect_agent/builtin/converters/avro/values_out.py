"""Compiles a Connect schema into a function that makes what the Avro library writes.

Layer: builtin. Corresponds to `AvroData.fromConnectData`. Logical values become their base values.
Records in unions are pairs of full name and members, which spares the library a search.
"""

from __future__ import annotations

from collections.abc import Callable

from pyconnect_agent.builtin.converters.avro import names
from pyconnect_agent.builtin.converters.avro.names import AvroOptions, avro_name
from pyconnect_agent.builtin.converters.avro.writing import RecordNames, is_string_map
from pyconnect_api import DataException, Schema, Type, from_logical, is_logical, validate_value
from pyconnect_api.schema import StructValue

Datum = Callable[[object], object]
"""Makes the library's form of a Connect value; DataException if it does not fit."""


def datum_of(schema: Schema, options: AvroOptions) -> Datum:
    """Return the function for values of `schema`."""
    return _Compilation(options).of(schema)


class _Compilation:
    """Names records in the same order as the schema's derivation does."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._names = RecordNames(options)

    def of(self, schema: Schema) -> Datum:
        if schema.name == names.UNION:
            return self._union(schema)
        make = self._of_value(schema)
        default, optional = schema.default, schema.optional

        def datum(value: object) -> object:
            if value is not None:
                return make(value)
            if default is not None:
                return make(default)
            if optional:
                return None
            raise DataException(f"Invalid value: null used for required value, schema {schema}")

        return datum

    def _of_value(self, schema: Schema) -> Datum:
        if is_logical(schema):
            return lambda value: from_logical(schema, value)
        match schema.type:
            case Type.STRUCT:
                return self._struct(schema)
            case Type.ARRAY:
                assert schema.value_schema is not None
                return _array(schema, self.of(schema.value_schema))
            case Type.MAP:
                return self._map(schema)
        return lambda value: validate_value(schema, value)

    def _map(self, schema: Schema) -> Datum:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        is_map = is_string_map(schema, self._options)
        if not is_map:
            self._names.of_entry(schema)
        key, element = self.of(schema.key_schema), self.of(schema.value_schema)

        def as_map(value: object) -> object:
            return {key(name): element(item) for name, item in _entries(schema, value)}

        def as_entries(value: object) -> object:
            return [
                {"key": key(name), "value": element(item)} for name, item in _entries(schema, value)
            ]

        return as_map if is_map else as_entries

    def _struct(self, schema: Schema) -> Datum:
        full_name = self._names.of_struct(schema)
        members = [
            (avro_name(field.name, self._options), self.of(field.schema)) for field in schema.fields
        ]

        def record(value: object) -> dict[str, object]:
            if not isinstance(value, StructValue):
                raise _unfit(schema, value)
            if value.schema is not schema and value.schema != schema:
                raise DataException("Mismatching schema.")
            return {
                name: member(stored)
                for (name, member), stored in zip(members, value.stored_values(), strict=True)
            }

        return (lambda value: (full_name, record(value))) if schema.optional else record

    def _union(self, schema: Schema) -> Datum:
        branches = [self._of_value(field.schema) for field in schema.fields]
        optional = schema.optional

        def datum(value: object) -> object:
            if value is None and optional:
                return None
            if not isinstance(value, StructValue):
                raise _unfit(schema, value)
            for branch, stored in zip(branches, value.stored_values(), strict=True):
                if stored is not None:
                    return branch(stored)
            raise DataException(f"No field of the union {schema} has a value")

        return datum


def _array(schema: Schema, element: Datum) -> Datum:
    def datum(value: object) -> object:
        if not isinstance(value, list | tuple):
            raise _unfit(schema, value)
        return [element(item) for item in value]

    return datum


def _entries(schema: Schema, value: object) -> list[tuple[object, object]]:
    if not isinstance(value, dict):
        raise _unfit(schema, value)
    return list(value.items())


def _unfit(schema: Schema, value: object) -> DataException:
    return DataException(f"Invalid type for {schema.type}: class {type(value).__qualname__}")
