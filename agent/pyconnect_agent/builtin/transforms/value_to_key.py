"""`org.apache.kafka.connect.transforms.ValueToKey`: a new key made of fields of the value.

Layer: builtin. Of a struct every field must exist, of a map a missing one becomes None.
"""

from __future__ import annotations

from pyconnect_agent.builtin.options import Options
from pyconnect_agent.builtin.transforms.base import ShippedTransformation
from pyconnect_agent.builtin.transforms.definitions import (
    NON_EMPTY_UNIQUE_LIST,
    REPLACE_NULL_WITH_DEFAULT,
    define_replace_null_with_default,
)
from pyconnect_agent.builtin.transforms.requirements import require_map, require_struct
from pyconnect_agent.builtin.transforms.schema_cache import SchemaCache
from pyconnect_agent.builtin.transforms.schema_copy import StructCopy
from pyconnect_api import (
    ConfigDef,
    ConfigType,
    ConnectRecord,
    DataException,
    Field,
    Importance,
    Schema,
    SchemaBuilder,
)

FIELDS = "fields"
_PURPOSE = "copying fields from value to key"


class ValueToKey(ShippedTransformation):
    CONFIG_DEF = define_replace_null_with_default(
        ConfigDef().define(
            FIELDS,
            ConfigType.LIST,
            validator=NON_EMPTY_UNIQUE_LIST,
            importance=Importance.HIGH,
            documentation="Fields of the value that make the key, in this order.",
        )
    )

    _fields: tuple[str, ...]
    _with_default: bool
    _copies: SchemaCache[StructCopy]

    def _configured(self, options: Options) -> None:
        self._fields = options.texts(FIELDS)
        self._with_default = options.flag(REPLACE_NULL_WITH_DEFAULT)
        self._copies = SchemaCache(self._copy_for)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        value = record.value
        key_schema: Schema | None = None
        key: object
        if record.value_schema is None:
            fields = require_map(value, _PURPOSE)
            key = {name: fields.get(name) for name in self._fields}
        else:
            struct = require_struct(value, _PURPOSE)
            copy = self._copies.of(struct.schema)
            key_schema, key = copy.target, copy.struct(struct)
        return record.new_record(
            record.topic,
            record.kafka_partition,
            key_schema,
            key,
            record.value_schema,
            value,
            record.timestamp,
        )

    def _copy_for(self, schema: Schema) -> StructCopy:
        sources = [_existing(schema, name) for name in self._fields]
        builder = SchemaBuilder.struct()
        for field in sources:
            builder.field(field.name, field.schema)
        return StructCopy(builder.build(), sources, replace_null_with_default=self._with_default)


def _existing(schema: Schema, name: str) -> Field:
    field = schema.field(name)
    if field is None:
        raise DataException(f"Field does not exist: {name}")
    return field
