"""The text of a .proto file for a Connect schema.

Corresponds to `ProtobufData.fromConnectSchema`. Pure. Structs are messages of one file, in the
package of the first; what Protobuf lacks is kept in Confluent's options `field_meta` and
`message_meta`. Defaults, versions and docs are not kept: Protobuf has no place for them.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyconnect_agent.builtin.converters.protobuf import names
from pyconnect_agent.builtin.converters.protobuf.names import ProtobufOptions, checked
from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Schema,
    SchemaBuilder,
    Type,
)
from pyconnect_api.logical import scale_of

_SCALARS: Mapping[Type, str] = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_WRAPPERS: Mapping[Type, str] = {
    Type.INT8: "Int32Value",
    Type.INT16: "Int32Value",
    Type.INT32: "Int32Value",
    Type.INT64: "Int64Value",
    Type.FLOAT32: "FloatValue",
    Type.FLOAT64: "DoubleValue",
    Type.BOOLEAN: "BoolValue",
    Type.STRING: "StringValue",
    Type.BYTES: "BytesValue",
}
_LOGICAL = {
    DECIMAL_NAME: (names.DECIMAL_MESSAGE, "confluent/type/decimal.proto"),
    DATE_NAME: (names.DATE_MESSAGE, "google/type/date.proto"),
    TIME_NAME: (names.TIME_MESSAGE, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (names.TIMESTAMP_MESSAGE, "google/protobuf/timestamp.proto"),
}
_MAP_KEYS = (Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING)
_META = "confluent/meta.proto"
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"


def as_message(schema: Schema) -> Schema:
    """Return a struct schema: the schema itself, or one that holds it in its only field."""
    if schema.type is Type.STRUCT:
        return schema
    return SchemaBuilder.struct().field(names.WRAPPED_FIELD, schema).build()


def proto_text(schema: Schema, options: ProtobufOptions) -> tuple[str, str]:
    """Return the full name of the first message, and the file; DataException when there is none."""
    return _File(schema, options).text(wrapped=schema.type is not Type.STRUCT)


def is_map_field(schema: Schema) -> bool:
    """Return whether a MAP schema is a map in Protobuf too."""
    key = schema.key_schema
    return key is not None and key.type in _MAP_KEYS and not key.optional and key.name is None


class _File:
    def __init__(self, schema: Schema, options: ProtobufOptions) -> None:
        self._root = as_message(schema)
        self._options = options
        self._package = (self._root.name or "").rpartition(".")[0]
        self._imports: set[str] = set()
        self._messages: list[str] = []
        self._schema_by_name: dict[str, Schema] = {}
        self._unnamed = 0

    def text(self, *, wrapped: bool) -> tuple[str, str]:
        name = self._message(self._root, wrapped=wrapped)
        lines = ['syntax = "proto3";']
        if self._package:
            lines.append(f"package {'.'.join(map(checked, self._package.split('.')))};")
        lines += [f'import "{path}";' for path in sorted(self._imports)]
        full_name = f"{self._package}.{name}" if self._package else name
        # The first message is the one that messages name by the index path [0].
        return full_name, "\n".join([*lines, *reversed(self._messages)]) + "\n"

    def _message(self, schema: Schema, *, wrapped: bool = False) -> str:
        """Write the message of a struct and return its name in this file."""
        namespace, _, simple = (schema.name or "").rpartition(".")
        if not simple:
            self._unnamed += 1
            simple = f"{names.DEFAULT_MESSAGE}{self._unnamed}"
        known = self._schema_by_name.get(simple)
        if known is not None:
            if known.fields != schema.fields:
                raise DataException(f"Two different structs would be the message {simple}")
            return simple
        self._schema_by_name[checked(simple)] = schema
        meta = {names.WRAPPED: "true"} if wrapped else {}
        if schema.name is not None and namespace != self._package:
            meta[names.NAME] = schema.name
        lines = [f"message {simple} {{"]
        if meta:
            lines.append(f"  option (confluent.message_meta) = {self._meta(meta)};")
        number = 0
        for field in schema.fields:
            if (field.schema.name or "").startswith(names.UNION_PREFIX):
                union = (field.schema.name or "").removeprefix(names.UNION_PREFIX)
                lines.append(f"  oneof {checked(union)} {{")
                for branch in field.schema.fields:
                    number += 1
                    lines.append(f"  {self._field(branch.name, branch.schema, number, label='')}")
                lines.append("  }")
            else:
                number += 1
                lines.append(self._field(field.name, field.schema, number))
        self._messages.append("\n".join([*lines, "}"]))
        return simple

    def _field(self, name: str, schema: Schema, number: int, label: str | None = None) -> str:
        kind, meta = self._kind(name, schema)
        if label is None:
            label = ""
            is_map = schema.type is Type.MAP
            if schema.type is Type.ARRAY or (is_map and not kind.startswith("map<")):
                label = "repeated "
            elif schema.optional and not is_map and self._options.optional_for_nullables:
                label = "optional "
        options = f" [(confluent.field_meta) = {self._meta(meta)}]" if meta else ""
        return f"  {label}{kind} {checked(name)} = {number}{options};"

    def _kind(self, name: str, schema: Schema) -> tuple[str, dict[str, str]]:
        """Return a field's type, an array's that of its elements, and what it does not say."""
        if schema.name in _LOGICAL:
            message, path = _LOGICAL[schema.name]
            self._imports.add(path)
            if schema.name != DECIMAL_NAME:
                return message, {}
            parameters = schema.parameters or {}
            precision = parameters.get("connect.decimal.precision", names.DEFAULT_PRECISION)
            return message, {
                names.PRECISION: str(precision),
                names.SCALE: str(scale_of(schema)),
            }
        match schema.type:
            case Type.STRUCT:
                return self._message(schema), {}
            case Type.ARRAY:
                element = schema.value_schema
                if element is None or element.type in (Type.ARRAY, Type.MAP):
                    raise DataException(
                        f"Protobuf has no lists of lists or of maps, as field {name} is"
                    )
                return self._kind(name, element)
            case Type.MAP:
                return self._map(name, schema)
        hint = {names.TYPE: schema.type.value} if schema.type in (Type.INT8, Type.INT16) else {}
        if schema.optional and self._options.wrapper_for_nullables:
            self._imports.add(_WRAPPERS_FILE)
            return f"google.protobuf.{_WRAPPERS[schema.type]}", hint
        return _SCALARS[schema.type], hint

    def _map(self, name: str, schema: Schema) -> tuple[str, dict[str, str]]:
        key, value = schema.key_schema, schema.value_schema
        if key is None or value is None or value.type in (Type.ARRAY, Type.MAP):
            raise DataException(f"Protobuf has no maps of lists or of maps, as field {name} is")
        if is_map_field(schema):
            kind, meta = self._kind(name, value)
            return f"map<{_SCALARS[key.type]}, {kind}>", meta
        entry = f"{checked(name).title().replace('_', '')}Entry"
        fields = SchemaBuilder.struct().name(f"{self._package}.{entry}" if self._package else entry)
        message = fields.field("key", key).field("value", value).build()
        return self._message(message), {names.TYPE: names.MAP_TYPE}

    def _meta(self, params: Mapping[str, str]) -> str:
        self._imports.add(_META)
        entries = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in params.items())
        return f"{{params: [{entries}]}}"
