"""`org.apache.kafka.connect.transforms.ValueToKey`: a new key made of fields of the value.

Layer: builtin. Of a struct every field must exist, of a map a missing one becomes None. Kafka 4.4
reads a field's name as a path (KIP-821); the key has the whole path as the name of the field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pyconnect_agent.builtin.transforms.base import (
    FIELD_SYNTAX_KEY,
    FIELD_SYNTAX_VERSION,
    NON_EMPTY_UNIQUE_LIST,
    REPLACE_NULL_WITH_DEFAULT,
    SYNTAX_VERSION,
    Options,
    ShippedTransformation,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.fields import FieldPath
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
)
from pyconnect_api import (
    ConfigDef,
    ConnectRecord,
    DataException,
    Field,
    Schema,
    SchemaBuilder,
    Struct,
)
from pyconnect_api.key_table import define_table

FIELDS = "fields"
_PURPOSE = "copying fields from value to key"


class ValueToKey(ShippedTransformation):
    CONFIG_DEF = with_null_key(
        f"{FIELDS}  LIST  HIGH  !\n    Fields of the value that make the key, in this order.",
        {FIELDS: NON_EMPTY_UNIQUE_LIST},
    )

    _paths: Mapping[str, FieldPath]
    _with_default: bool
    _copies: SchemaCache[Callable[[Struct], Struct]]

    def _configured(self, options: Options) -> None:
        syntax = str(options.values.get(FIELD_SYNTAX_VERSION, "V1")).upper()
        self._paths = {name: FieldPath(name, syntax) for name in options.texts(FIELDS)}
        self._with_default = options.flag(REPLACE_NULL_WITH_DEFAULT)
        self._copies = SchemaCache(self._copy_for)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        value = record.value
        key_schema: Schema | None = None
        key: object
        if record.value_schema is None:
            fields = require_map(value, _PURPOSE)
            key = {name: path.value_of_map(fields) for name, path in self._paths.items()}
        else:
            struct = require_struct(value, _PURPOSE)
            key = self._copies.of(struct.schema)(struct)
            key_schema = key.schema
        topic, partition, schema = record.topic, record.kafka_partition, record.value_schema
        return record.new_record(topic, partition, key_schema, key, schema, value, record.timestamp)

    def _copy_for(self, schema: Schema) -> Callable[[Struct], Struct]:
        sources = {name: _existing(schema, name, path) for name, path in self._paths.items()}
        builder = SchemaBuilder.struct()
        for name, field in sources.items():
            builder.field(name, field.schema)
        target = builder.build()
        if any(len(path.steps) > 1 for path in self._paths.values()):
            return partial(self._nested, target)
        fields = list(sources.values())
        return StructCopy(target, fields, replace_null_with_default=self._with_default).struct

    def _nested(self, target: Schema, struct: Struct) -> Struct:
        key = Struct(target)
        for name, path in self._paths.items():
            key.put(name, path.value_of_struct(struct, with_default=self._with_default))
        return key


class NestedValueToKey(ValueToKey):
    """As of Kafka 4.4."""

    CONFIG_DEF = define_table(
        ConfigDef(ValueToKey.CONFIG_DEF),
        FIELD_SYNTAX_KEY,
        {FIELD_SYNTAX_VERSION: SYNTAX_VERSION},
    )


def _existing(schema: Schema, name: str, path: FieldPath) -> Field:
    field = path.field_of(schema)
    if field is None:
        raise DataException(f"Field does not exist: {name}")
    return field
