"""`org.apache.kafka.connect.transforms.InsertField`: facts about a record as its fields.

A name that ends in `!` makes a required field, one that ends in `?` or neither an optional one.
Partition and offset are those of the record at this place of the chain.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from pyconnect_agent.builtin.transforms.base import (
    OneSideTransformation,
    Options,
    SchemaWithValue,
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
    """Adds the configured fields after the others; a map's own field of that name is replaced."""

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

        def copy(schema: Schema) -> StructCopy:
            fields = [(field.name, field.schema) for field in schema.fields]
            fields += [(insertion.name, insertion.schema) for insertion in self._insertions]
            target = struct_like(schema, fields).build()
            return StructCopy(target, schema.fields, replace_null_with_default=self.with_default)

        self._copies = SchemaCache(copy)

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        updated = dict(require_map(value, _PURPOSE))
        for insertion in self._insertions:
            found = insertion.plain(record)
            if found is not None or insertion.even_none:
                updated[insertion.name] = found
        return updated

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        struct = require_struct(value, _PURPOSE)
        copy = self._copies.of(struct.schema)
        values = copy.values(struct)
        for insertion in self._insertions:
            found = insertion.value(record)
            # Unknown values are left out; a required field then fails in the struct's check.
            if found is None and insertion.even_none:
                validate_value(insertion.schema, None, insertion.name)
            values.append(found)
        return copy.target, Struct.of_checked(copy.target, values)


def _insertion(option: str, name: str, static_value: str | None) -> _Insertion:
    """Return the insertion that an option's value asks for."""
    optional = not name.endswith("!")
    if name.endswith(("!", "?")):
        name = name[:-1]
    plain: Callable[[ConnectRecord], object]
    value: Callable[[ConnectRecord], object] | None = None
    match option:
        case "topic.field":
            schemas, plain = (STRING_SCHEMA, OPTIONAL_STRING_SCHEMA), attrgetter("topic")
        case "partition.field":
            schemas, plain = (INT32_SCHEMA, OPTIONAL_INT32_SCHEMA), attrgetter("kafka_partition")
        case "offset.field":
            schemas = (INT64_SCHEMA, OPTIONAL_INT64_SCHEMA)
            plain = lambda record: require_sink_record(record, _PURPOSE).kafka_offset  # noqa: E731
        case "timestamp.field":
            schemas, plain = (TIMESTAMP_SCHEMA, _OPTIONAL_TIMESTAMP_SCHEMA), attrgetter("timestamp")
            value = lambda record: (  # noqa: E731
                None if record.timestamp is None else timestamp_from_milliseconds(record.timestamp)
            )
        case _:
            if static_value is None:
                raise invalid_value(
                    STATIC_VALUE, None, f"No value specified for static field: {name}"
                )
            schemas, plain = (STRING_SCHEMA, OPTIONAL_STRING_SCHEMA), lambda _: static_value
    is_topic = option == TOPIC_FIELD
    return _Insertion(name, schemas[optional], plain, value or plain, even_none=is_topic)


InsertFieldKey, InsertFieldValue = both_sides(InsertField)
