"""`org.apache.kafka.connect.transforms.InsertField`: what is known about a record, as fields.

A name that ends in `!` makes a required field, one that ends in `?` or neither an optional one.
Partition and offset are those the record has at this place of the chain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    both_sides,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_sink_record,
    require_struct,
    struct_like,
)
from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    TIMESTAMP_SCHEMA,
    ConfigException,
    ConnectRecord,
    Schema,
    Struct,
    validate_value,
)
from pyconnect_api.configdef import invalid_value
from pyconnect_api.logical import timestamp_builder, timestamp_from_milliseconds

TOPIC_FIELD = "topic.field"
PARTITION_FIELD = "partition.field"
OFFSET_FIELD = "offset.field"
TIMESTAMP_FIELD = "timestamp.field"
STATIC_FIELD = "static.field"
STATIC_VALUE = "static.value"
_PURPOSE = "field insertion"
_OPTIONAL_TIMESTAMP_SCHEMA = timestamp_builder().optional().build()
_DESCRIPTIONS = {
    TOPIC_FIELD: "the topic",
    PARTITION_FIELD: "the partition",
    OFFSET_FIELD: "the offset, known in sinks only",
    TIMESTAMP_FIELD: "the record's timestamp",
    STATIC_FIELD: "the value of static.value",
}


@dataclass(frozen=True, slots=True)
class _Insertion:
    """A field to add: its schema, and its value without and with schemas, None if unknown."""

    name: str
    schema: Schema
    plain: Callable[[ConnectRecord], object]
    value: Callable[[ConnectRecord], object]
    even_none: bool = False


class InsertField(OneSideTransformation):
    """Adds the configured fields after those there are; a map's own of that name is replaced."""

    KEEPS_NONE = True
    CONFIG_DEF = with_null_key(
        "\n".join(
            f"{name}  STRING  MEDIUM  ~\n    Name of the field for {description}. With a ! at its"
            " end the field is required, with a ? or neither optional."
            for name, description in _DESCRIPTIONS.items()
        )
        + f"\n{STATIC_VALUE}  STRING  MEDIUM  ~\n    Value of the field static.field."
    )

    _insertions: tuple[_Insertion, ...]
    _copies: SchemaCache[StructCopy]

    def configured(self, options: Options) -> None:
        static_value = options.optional_text(STATIC_VALUE)
        self._insertions = tuple(
            _insertion(option, name, static_value)
            for option in _DESCRIPTIONS
            if (name := options.optional_text(option)) is not None
        )
        if not self._insertions:
            raise ConfigException("No field insertion configured")
        self._copies = SchemaCache(self._copy_for)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        updated = dict(require_map(value, _PURPOSE))
        for insertion in self._insertions:
            found = insertion.plain(record)
            if found is not None or insertion.even_none:
                updated[insertion.name] = found
        return updated

    def with_schema(
        self, record: ConnectRecord, schema: Schema, value: object
    ) -> tuple[Schema, object]:
        struct = require_struct(value, _PURPOSE)
        copy = self._copies.of(struct.schema)
        values = copy.values(struct)
        for insertion in self._insertions:
            found = insertion.value(record)
            # Unknown ones are left out; a required field then fails when the struct is checked.
            if found is None and insertion.even_none:
                validate_value(insertion.schema, None, insertion.name)
            values.append(found)
        return copy.target, Struct.of_checked(copy.target, values)

    def _copy_for(self, schema: Schema) -> StructCopy:
        builder = struct_like(schema, [(field.name, field.schema) for field in schema.fields])
        for insertion in self._insertions:
            builder.field(insertion.name, insertion.schema)
        return StructCopy(
            builder.build(), schema.fields, replace_null_with_default=self.with_default
        )


def _insertion(option: str, name: str, static_value: str | None) -> _Insertion:
    """Return what the option of that value asks for."""
    optional = not name.endswith("!")
    if name.endswith(("!", "?")):
        name = name[:-1]
    match option:
        case "topic.field":
            schema = OPTIONAL_STRING_SCHEMA if optional else STRING_SCHEMA
            return _Insertion(name, schema, _topic, _topic, even_none=True)
        case "partition.field":
            schema = OPTIONAL_INT32_SCHEMA if optional else INT32_SCHEMA
            return _Insertion(name, schema, _partition, _partition)
        case "offset.field":
            schema = OPTIONAL_INT64_SCHEMA if optional else INT64_SCHEMA
            return _Insertion(name, schema, _offset, _offset)
        case "timestamp.field":
            schema = _OPTIONAL_TIMESTAMP_SCHEMA if optional else TIMESTAMP_SCHEMA
            return _Insertion(
                name,
                schema,
                plain=attrgetter("timestamp"),
                value=lambda record: (
                    None
                    if record.timestamp is None
                    else timestamp_from_milliseconds(record.timestamp)
                ),
            )
    if static_value is None:
        raise invalid_value(STATIC_VALUE, None, f"No value specified for static field: {name}")
    schema = OPTIONAL_STRING_SCHEMA if optional else STRING_SCHEMA
    return _Insertion(name, schema, lambda _: static_value, lambda _: static_value)


def _topic(record: ConnectRecord) -> object:
    return record.topic


def _partition(record: ConnectRecord) -> object:
    return record.kafka_partition


def _offset(record: ConnectRecord) -> object:
    return require_sink_record(record, _PURPOSE).kafka_offset


InsertFieldKey, InsertFieldValue = both_sides(InsertField)
