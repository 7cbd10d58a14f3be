"""Kafka's ExtractField, HoistField and ValueToKey, and the names of fields as configured.

`FieldPath` corresponds to `SingleFieldPath` and `FieldSyntaxVersion` (KIP-821). ExtractField
refuses an unknown field of a schema (DataException; Kafka: IllegalArgumentException); without a
schema the result is None.

ValueToKey makes a new key from fields of the value. In a struct every field must exist; in a map a
missing one becomes None. Kafka 4.4 reads a field's name as a path (KIP-821); the key has the whole
path as the name of the field.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyconnect_agent.builtin.transforms.base import (
    FIELD_SYNTAX_KEY,
    FIELD_SYNTAX_VERSION,
    NON_EMPTY_UNIQUE_LIST,
    SYNTAX_VERSION,
    OneSideTransformation,
    Options,
    SchemaWithValue,
    ShippedTransformation,
    both_sides,
    with_null_key,
)
from pyconnect_agent.builtin.transforms.schemas import (
    SchemaCache,
    StructCopy,
    require_map,
    require_struct,
)
from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConnectRecord,
    DataException,
    Field,
    Schema,
    SchemaBuilder,
    Struct,
)
from pyconnect_api.configdef import define_table

_PATH_PURPOSE = "nested field access"


class FieldPath:
    """The path of a field in a schema, a struct or a map."""

    __slots__ = ("_last", "_outer", "steps")

    def __init__(self, text: str, syntax_version: str) -> None:
        """Parse the text; `syntax_version` is V1 or V2. ConfigException for a lone backtick."""
        self.steps: tuple[str, ...] = (text,) if syntax_version == "V1" else tuple(_steps(text))
        self._outer, self._last = self.steps[:-1], self.steps[-1]

    def field_of(self, schema: Schema) -> Field | None:
        """Return the field, None if a step is missing; DataException if one is not a struct."""
        for step in self._outer:
            field = schema.field(step)
            if field is None:
                return None
            schema = field.schema
        return schema.field(self._last)

    def value_of_struct(self, struct: Struct, *, with_default: bool) -> object:
        """Return the value, None if a step is missing or None.

        Structs on the way are always read with their defaults.
        """
        for step in self._outer:
            if struct.schema.field(step) is None:
                return None
            inner = struct.get(step)
            if inner is None:
                return None
            struct = require_struct(inner, _PATH_PURPOSE)
        if struct.schema.field(self._last) is None:
            return None
        return struct.get(self._last) if with_default else struct.get_without_default(self._last)

    def value_of_map(self, value: dict[Any, Any]) -> object:
        """Return the value, None if a step is missing or None."""
        for step in self._outer:
            inner = value.get(step)
            if inner is None:
                return None
            value = require_map(inner, _PATH_PURPOSE)
        return value.get(self._last)


def _steps(path: str) -> Iterator[str]:
    """Yield the steps of a path in the syntax V2."""
    position = 0
    while position < len(path):
        if path[position] == "`":
            step, position = _quoted_step(path, position)
            yield step
        else:
            end = path.find(".", position)
            yield path[position : end if end >= 0 else len(path)]
            position = end + 1 if end >= 0 else len(path)
    if not path or path.endswith("."):
        yield ""


def _quoted_step(path: str, opening: int) -> tuple[str, int]:
    """Return the step in backticks that starts at `opening`, and the start of the next one."""
    step = ""
    start = search_from = opening + 1
    while True:
        closing = path.find("`", search_from)
        at_end = closing == len(path) - 1
        escaped = closing > 0 and path[closing - 1] == "\\"
        if closing < 0 or (at_end and escaped):
            raise ConfigException(
                f"Incomplete backtick pair in path: [{path}], consider adding a backslash before "
                f"backtick at position {opening} to escape it"
            )
        if at_end or (path[closing + 1] == "." and not escaped):
            return step + path[start:closing], closing + 2
        if path[closing + 1] == ".":
            step += path[start : closing - 1] + "`"
            start = closing + 1
        search_from = closing + 1


FIELD = "field"
_PURPOSE = "field extraction"


class ExtractField(OneSideTransformation):
    """Replaces schema and value by those of one of its fields; None stays None."""

    CONFIG_DEF = define_table(
        with_null_key(f"{FIELD}  STRING  MEDIUM  !\n    The field to extract."),
        FIELD_SYNTAX_KEY,
        {FIELD_SYNTAX_VERSION: SYNTAX_VERSION},
    )

    _field: str
    _path: FieldPath

    def configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        self._path = FieldPath(self._field, options.text(FIELD_SYNTAX_VERSION).upper())

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        return None if value is None else self._path.value_of_map(require_map(value, _PURPOSE))

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        struct = None if value is None else require_struct(value, _PURPOSE)
        field = self._path.field_of(schema)
        if field is None:
            raise DataException(f"Unknown field: {self._field}")
        if struct is None:
            return field.schema, None
        return field.schema, self._path.value_of_struct(struct, with_default=self.with_default)


ExtractFieldKey, ExtractFieldValue = both_sides(ExtractField)


class HoistField(OneSideTransformation):
    """Wraps the value, even None, into a struct or map of one field."""

    CONFIG_DEF = define_table(
        ConfigDef(),
        f"{FIELD}  STRING  MEDIUM  !\n    Name of the one field of the resulting struct or map.",
    )

    _field: str
    _schemas: SchemaCache[Schema]

    def configured(self, options: Options) -> None:
        self._field = options.text(FIELD)
        self._schemas = SchemaCache(
            lambda schema: SchemaBuilder.struct().field(self._field, schema).build()
        )

    def schemaless(self, record: ConnectRecord, value: object) -> object:
        return {self._field: value}

    def with_schema(self, record: ConnectRecord, schema: Schema, value: object) -> SchemaWithValue:
        wrapping = self._schemas.of(schema)
        return wrapping, Struct(wrapping).put(self._field, value)


HoistFieldKey, HoistFieldValue = both_sides(HoistField)

FIELDS = "fields"
_TO_KEY = "copying fields from value to key"


class ValueToKey(ShippedTransformation):
    CONFIG_DEF = with_null_key(
        f"{FIELDS}  LIST  HIGH  !\n    Fields of the value that make the key, in this order.",
        {FIELDS: NON_EMPTY_UNIQUE_LIST},
    )

    _paths: Mapping[str, FieldPath]
    _copies: SchemaCache[Callable[[Struct], Struct]]

    def configured(self, options: Options) -> None:
        syntax = str(options.values.get(FIELD_SYNTAX_VERSION, "V1")).upper()
        self._paths = {name: FieldPath(name, syntax) for name in options.texts(FIELDS)}
        self._copies = SchemaCache(self._copy_for)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        value = record.value
        key_schema: Schema | None = None
        key: object
        if record.value_schema is None:
            fields = require_map(value, _TO_KEY)
            key = {name: path.value_of_map(fields) for name, path in self._paths.items()}
        else:
            struct = require_struct(value, _TO_KEY)
            key = self._copies.of(struct.schema)(struct)
            key_schema = key.schema
        topic, partition, schema = record.topic, record.kafka_partition, record.value_schema
        return record.new_record(topic, partition, key_schema, key, schema, value, record.timestamp)

    def _copy_for(self, schema: Schema) -> Callable[[Struct], Struct]:
        fields: list[Field] = []
        builder = SchemaBuilder.struct()
        for name, path in self._paths.items():
            field = path.field_of(schema)
            if field is None:
                raise DataException(f"Field does not exist: {name}")
            builder.field(name, field.schema)
            fields.append(field)
        target = builder.build()
        if all(len(path.steps) == 1 for path in self._paths.values()):
            return StructCopy(target, fields, replace_null_with_default=self.with_default).struct

        def nested(struct: Struct) -> Struct:
            key = Struct(target)
            for name, path in self._paths.items():
                key.put(name, path.value_of_struct(struct, with_default=self.with_default))
            return key

        return nested


class NestedValueToKey(ValueToKey):
    """ValueToKey of Kafka 4.4, which reads names as paths."""

    CONFIG_DEF = define_table(
        ConfigDef(ValueToKey.CONFIG_DEF), FIELD_SYNTAX_KEY, {FIELD_SYNTAX_VERSION: SYNTAX_VERSION}
    )
