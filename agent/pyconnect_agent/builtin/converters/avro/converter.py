"""`io.confluent.connect.avro.AvroConverter`: Avro whose schemas a registry keeps.

`writing` and `reading` map schemas and values, `fastavro` makes the bytes. Needs the extra `avro`.
Unlike Confluent's converter, this one refuses schemaless maps and lists, and records that contain
themselves.

Writing corresponds to `AvroData.fromConnectData`: a Connect schema is compiled into a function that
makes the library's values. Logical values become their base values. Records in
unions are pairs of full name and members, which spares the library a search.
"""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

from pyconnect_agent.builtin.converters.avro import reading, writing
from pyconnect_agent.builtin.converters.avro.writing import (
    AvroOptions,
    RecordNames,
    avro_name,
    is_string_map,
)
from pyconnect_agent.builtin.converters.registry import (
    Decode,
    DerivedSchema,
    Encode,
    Frame,
    RegistryConverter,
)
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import (
    DataException,
    Schema,
    SchemaAndValue,
    Type,
    from_logical,
    is_logical,
    validate_value,
)
from pyconnect_api.schema import StructValue

Datum = Callable[[object], object]
"""Returns the library's form of a Connect value; raises DataException if it does not fit."""


def datum_of(schema: Schema, options: AvroOptions) -> Datum:
    """Return the function that converts values of `schema`."""
    return _Compilation(options).of(schema)


class _Compilation:
    """A compilation that names records in the order of the schema's derivation."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options
        self._names = RecordNames(options)

    def of(self, schema: Schema) -> Datum:
        if schema.name == writing.UNION:
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
                element = self.of(schema.value_schema)

                def elements(value: object) -> object:
                    if not isinstance(value, list | tuple):
                        raise _unfit(schema, value)
                    return [element(item) for item in value]

                return elements
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


def _entries(schema: Schema, value: object) -> list[tuple[object, object]]:
    if not isinstance(value, dict):
        raise _unfit(schema, value)
    return list(value.items())


def _unfit(schema: Schema, value: object) -> DataException:
    return DataException(f"Invalid type for {schema.type}: class {type(value).__qualname__}")


_TABLE = """
enhanced.avro.schema.support  BOOLEAN  LOW  false
    Enums are written back as enums.
connect.meta.data  BOOLEAN  LOW  true
    Connect's own metadata is written into the Avro schema.
scrub.invalid.names  BOOLEAN  LOW  false
    Names that Avro does not allow are changed, not refused.
allow.optional.map.keys  BOOLEAN  LOW  false
    Maps with optional string keys are maps in Avro too.
"""


class AvroConverter(RegistryConverter):
    """The converter for Avro; configure it before use."""

    KIND, FORMAT, EXTRA = "AVRO", "Avro", "avro"
    TABLE = _TABLE

    def __init__(self) -> None:
        super().__init__()
        self._avro = AvroOptions()

    def configured(self, config: Mapping[str, object]) -> None:
        self._avro = AvroOptions(
            enhanced=config["enhanced.avro.schema.support"] is True,
            connect_meta_data=config["connect.meta.data"] is True,
            scrub_invalid_names=config["scrub.invalid.names"] is True,
            allow_optional_map_keys=config["allow.optional.map.keys"] is True,
        )

    def derived(self, schema: Schema) -> DerivedSchema:
        text = json.dumps(writing.avro_schema(schema, self._avro), separators=(",", ":"))
        name = schema.name if schema.type is Type.STRUCT else None
        return DerivedSchema(RegistrySchema(None, text, self.KIND), name)

    def encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        parsed, _ = self._parsed(target)
        datum, write = datum_of(schema, self._avro), _library().schemaless_writer

        def encode(value: object) -> bytes:
            buffer = io.BytesIO()
            made = datum(value)
            try:
                write(buffer, parsed, made)
            # The library raises errors of its parts: ValueError, TypeError, KeyError, … Their texts
            # quote the value, which must not be in the trace.
            except Exception as error:  # noqa: BLE001
                raise DataException(
                    f"Failed to serialize Avro data with schema {schema}: {type(error).__name__}"
                ) from None
            return buffer.getvalue()

        return encode

    def decoder(self, source: RegistrySchema) -> Decode:
        parsed, named = self._parsed(source)
        schema, read = reading.connect_schema(parsed, named, self._avro)
        read_datum = _library().schemaless_reader

        def decode(frame: Frame) -> SchemaAndValue:
            body = io.BytesIO(frame.body)
            try:
                found = read_datum(body, parsed, None, return_record_name=True)
            # The same errors as in writing, and EOFError and UnicodeDecodeError of damaged
            # messages.
            except Exception as error:  # noqa: BLE001
                raise DataException(
                    f"Failed to deserialize Avro data with schema {frame.schema}: "
                    f"{type(error).__name__}"
                ) from None
            return SchemaAndValue(schema, read(found))

        return decode

    def _parsed(self, source: RegistrySchema) -> tuple[Any, dict[str, Any]]:
        """Return a schema as the library parses it, and all its named types."""
        named: dict[str, Any] = {}
        for reference in source.references:
            imported = self.registry.by_version(reference.subject, reference.version)
            named |= self._parsed(imported)[1]
        plain = reading.without_logical_types(reading.parse_json(source.text))
        try:
            parsed = _library().parse_schema(plain, named_schemas=named)
        # The library has no common class for the errors of a schema.
        except Exception as error:
            raise DataException(f"The Avro schema is not valid: {error}") from error
        return parsed, named


def _library() -> Any:
    import fastavro

    return fastavro
