"""`io.confluent.connect.avro.AvroConverter`: Avro whose schemas a registry keeps.

Layer: builtin. `writing` and `reading` map schemas and values, `fastavro` makes the bytes. Needs
the extra `avro`. Differences from Confluent's: schemaless maps and lists are refused, so are
records that contain themselves.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

from pyconnect_agent.builtin.converters.avro import reading, writing
from pyconnect_agent.builtin.converters.avro.names import AvroOptions
from pyconnect_agent.builtin.converters.avro.values_out import datum_of
from pyconnect_agent.builtin.converters.registry.converter import (
    Decode,
    DerivedSchema,
    Encode,
    RegistryConverter,
)
from pyconnect_agent.builtin.converters.registry.framing import Frame
from pyconnect_agent.builtin.converters.registry.options import (
    define_flags,
    registry_config_def,
    require_extra,
)
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import (
    ConfigDef,
    DataException,
    Schema,
    SchemaAndValue,
    Type,
)

KIND = "AVRO"
_FLAGS = (
    ("enhanced.avro.schema.support", False, "Enums are written back as enums."),
    ("connect.meta.data", True, "Connect's own metadata is written into the Avro schema."),
    ("scrub.invalid.names", False, "Names that Avro does not allow are changed, not refused."),
    ("allow.optional.map.keys", False, "Maps with optional string keys are maps in Avro too."),
)


class AvroConverter(RegistryConverter):
    """Reads and writes Avro; configure it before use."""

    def __init__(self) -> None:
        super().__init__()
        self._avro = AvroOptions()

    def config(self) -> ConfigDef:
        require_extra("avro", type(self).__name__)
        return define_flags(registry_config_def(), _FLAGS)

    def _configured(self, config: Mapping[str, object]) -> None:
        self._avro = AvroOptions(
            enhanced=config["enhanced.avro.schema.support"] is True,
            connect_meta_data=config["connect.meta.data"] is True,
            scrub_invalid_names=config["scrub.invalid.names"] is True,
            allow_optional_map_keys=config["allow.optional.map.keys"] is True,
        )

    def _derived(self, schema: Schema) -> DerivedSchema:
        text = json.dumps(writing.avro_schema(schema, self._avro), separators=(",", ":"))
        name = schema.name if schema.type is Type.STRUCT else None
        return DerivedSchema(RegistrySchema(None, text, KIND), name)

    def _encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        parsed, _ = self._parsed(target)
        datum, write = datum_of(schema, self._avro), _library().schemaless_writer

        def encode(value: object) -> bytes:
            buffer = io.BytesIO()
            made = datum(value)
            try:
                write(buffer, parsed, made)
            # The library raises what its parts raise: ValueError, TypeError, KeyError, … They quote
            # the value, which must not stand in the trace.
            except Exception as error:  # noqa: BLE001
                raise DataException(
                    f"Failed to serialize Avro data with schema {schema}: {type(error).__name__}"
                ) from None
            return buffer.getvalue()

        return encode

    def _decoder(self, source: RegistrySchema) -> Decode:
        if source.kind != KIND:
            raise DataException(f"The message's schema is not Avro but {source.kind}")
        parsed, named = self._parsed(source)
        schema, read = reading.connect_schema(parsed, named, self._avro)
        read_datum = _library().schemaless_reader

        def decode(frame: Frame) -> SchemaAndValue:
            body = io.BytesIO(frame.body)
            try:
                found = read_datum(body, parsed, None, return_record_name=True)
            # As for writing; also EOFError and UnicodeDecodeError of damaged messages.
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
        # The library has no common class for what can be wrong with a schema.
        except Exception as error:
            raise DataException(f"The Avro schema is not valid: {error}") from error
        return parsed, named


def _library() -> Any:
    import fastavro

    return fastavro
