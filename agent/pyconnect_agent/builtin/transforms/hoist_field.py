"""`org.apache.kafka.connect.transforms.HoistField`: the key or value as a field of a new one.

Layer: builtin.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import OneSideTransformation, both_sides
from pyconnect_agent.builtin.transforms.schema_cache import SchemaCache
from pyconnect_api import (
    ConfigDef,
    ConfigType,
    ConnectRecord,
    Importance,
    Schema,
    SchemaBuilder,
    Struct,
)

FIELD = "field"


class HoistField(OneSideTransformation):
    """Wraps the value, None too, into a struct or map of one field."""

    CONFIG_DEF = ConfigDef().define(
        FIELD,
        ConfigType.STRING,
        importance=Importance.MEDIUM,
        documentation="Name of the one field of the resulting struct or map.",
    )

    _field: str
    _schemas: SchemaCache[Schema]

    def _configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        self._schemas = SchemaCache(self._wrapping)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        return {self._field: value}

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        wrapping = self._schemas.of(schema)
        return wrapping, Struct(wrapping).put(self._field, value)

    def _wrapping(self, schema: Schema) -> Schema:
        return SchemaBuilder.struct().field(self._field, schema).build()


HoistFieldKey, HoistFieldValue = both_sides(HoistField)
