"""`org.apache.kafka.connect.transforms.SetSchemaMetadata`: another schema name or version.

Unlike Kafka's, schemas of every type can be renamed, not only structs.
"""

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    SchemaWithValue,
    both_sides,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import SchemaCache, StructCopy, require_schema
from pyconnect_api import ConfigException, ConnectRecord, Schema, Struct, Type
from pyconnect_api.schema import renamed_schema

SCHEMA_NAME = "schema.name"
SCHEMA_VERSION = "schema.version"

_TABLE = """
schema.name  STRING  HIGH  ~
    The schema's new name.
schema.version  INT  HIGH  ~
    The schema's new version.
"""


class SetSchemaMetadata(OneSideTransformation):
    """Changes name or version of the schema only; a struct is copied to the new schema."""

    CONFIG_DEF = with_null_key(_TABLE)

    _name: str | None
    _version: int | None
    _copies: SchemaCache[StructCopy]

    def configured(self, options: Options) -> None:
        self._name = options.optional_text(SCHEMA_NAME)
        self._version = options.optional_integer(SCHEMA_VERSION)
        if self._name is None and self._version is None:
            raise ConfigException("Neither schema name nor version configured")
        self._copies = SchemaCache(
            lambda schema: StructCopy(
                self._renamed(schema), schema.fields, replace_null_with_default=self.with_default
            )
        )

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        schema, value = self.operated(record)
        if schema is None and value is None:
            return record
        schema = require_schema(schema, "updating schema metadata")
        return self.replaced(record, *self.with_schema(record, schema, value))

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        if schema.type is not Type.STRUCT:
            return self._renamed(schema), value
        copy = self._copies.of(schema)
        return copy.target, copy.struct(value) if isinstance(value, Struct) else value

    def _renamed(self, schema: Schema) -> Schema:
        return renamed_schema(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
            default=schema.default,
        )


SetSchemaMetadataKey, SetSchemaMetadataValue = both_sides(SetSchemaMetadata)
