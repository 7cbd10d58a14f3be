"""The text of a .proto file for a Connect schema, and the functions that fill its messages.

Corresponds to `ProtobufData.fromConnectSchema`. Pure. Structs are messages of one file, in the
package of the first. Confluent's options `field_meta` and `message_meta` keep facts that Protobuf
lacks. Defaults, versions and docs are not kept: Protobuf has no place for them.

A filler corresponds to `ProtobufData.fromConnectData`. Its message type may be another than the
schema's own (`use.latest.version`): fields are found by name, and one it lacks is refused.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from pyconnect_api import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    DataException,
    Field,
    Schema,
    SchemaBuilder,
    Type,
    validate_value,
)
from pyconnect_api.logical import decimal_to_bytes, scale_of
from pyconnect_api.schema import StructValue

DEFAULT_MESSAGE = "ConnectDefault"
UNION_PREFIX = "io.confluent.connect.protobuf.Union."
TYPE = "connect.type"
NAME = "connect.name"
WRAPPED = "connect.wrapped"
SCALE, PRECISION = "scale", "precision"
DEFAULT_PRECISION = 64
MAP_TYPE = "map"
WRAPPED_FIELD = "value"

DECIMAL_MESSAGE = "confluent.type.Decimal"
DATE_MESSAGE = "google.type.Date"
TIME_MESSAGE = "google.type.TimeOfDay"
TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"

UNNAMED = re.compile(f"{DEFAULT_MESSAGE}[0-9]*")
_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufOptions:
    """The format's own options.

    `enhanced`: schemas are named in full. `optional_for_nullables`: optional fields have the label
    `optional`, and only such are optional when read; without it every field read is.
    `wrapper_for_nullables`: optional scalars are written as google.protobuf's wrapper messages.
    `index_for_unions`: a union's field has its number in its name.
    """

    enhanced: bool = False
    optional_for_nullables: bool = False
    wrapper_for_nullables: bool = False
    index_for_unions: bool = True


def checked(name: str) -> str:
    """Return a name; raise DataException if Protobuf does not allow it."""
    if not _VALID.fullmatch(name):
        raise DataException(
            f"'{name}' is not a name in Protobuf: letters, digits and underscores, no digit first"
        )
    return name


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
_LOGICAL = {
    DECIMAL_NAME: (DECIMAL_MESSAGE, "confluent/type/decimal.proto"),
    DATE_NAME: (DATE_MESSAGE, "google/type/date.proto"),
    TIME_NAME: (TIME_MESSAGE, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (TIMESTAMP_MESSAGE, "google/protobuf/timestamp.proto"),
}
_MAP_KEYS = (Type.INT32, Type.INT64, Type.BOOLEAN, Type.STRING)
_META = "confluent/meta.proto"
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"


def as_message(schema: Schema) -> Schema:
    """Return a struct schema: the schema itself, or one that holds it in its only field."""
    if schema.type is Type.STRUCT:
        return schema
    return SchemaBuilder.struct().field(WRAPPED_FIELD, schema).build()


def proto_text(schema: Schema, options: ProtobufOptions) -> tuple[str, str]:
    """Return the full name of the first message, and the file; DataException if none exists."""
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
        # Messages name the first message by the index path [0].
        return full_name, "\n".join([*lines, *reversed(self._messages)]) + "\n"

    def _message(self, schema: Schema, *, wrapped: bool = False) -> str:
        """Write the message of a struct and return its name in this file."""
        namespace, _, simple = (schema.name or "").rpartition(".")
        if not simple:
            self._unnamed += 1
            simple = f"{DEFAULT_MESSAGE}{self._unnamed}"
        known = self._schema_by_name.get(simple)
        if known is not None:
            if known.fields != schema.fields:
                raise DataException(f"Two different structs would be the message {simple}")
            return simple
        self._schema_by_name[checked(simple)] = schema
        meta = {WRAPPED: "true"} if wrapped else {}
        if schema.name is not None and namespace != self._package:
            meta[NAME] = schema.name
        lines = [f"message {simple} {{"]
        if meta:
            lines.append(f"  option (confluent.message_meta) = {self._meta(meta)};")
        number = 0
        for field in schema.fields:
            if (field.schema.name or "").startswith(UNION_PREFIX):
                union = (field.schema.name or "").removeprefix(UNION_PREFIX)
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
        """Return the type of a field or of an array's elements, and facts that the type lacks."""
        if schema.name in _LOGICAL:
            message, path = _LOGICAL[schema.name]
            self._imports.add(path)
            if schema.name != DECIMAL_NAME:
                return message, {}
            parameters = schema.parameters or {}
            precision = parameters.get("connect.decimal.precision", DEFAULT_PRECISION)
            return message, {PRECISION: str(precision), SCALE: str(scale_of(schema))}
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
        hint = {TYPE: schema.type.value} if schema.type in (Type.INT8, Type.INT16) else {}
        if schema.optional and self._options.wrapper_for_nullables:
            self._imports.add(_WRAPPERS_FILE)
            return f"google.protobuf.{_SCALARS[schema.type].title()}Value", hint
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
        return self._message(message), {TYPE: MAP_TYPE}

    def _meta(self, params: Mapping[str, str]) -> str:
        self._imports.add(_META)
        entries = ", ".join(f'{{key: "{key}", value: "{value}"}}' for key, value in params.items())
        return f"{{params: [{entries}]}}"


Fill = Callable[[Any, Any], None]
"""Puts a value other than None into a message."""


def filler(schema: Schema, descriptor: Any) -> Fill:
    """Return the function that fills messages of `descriptor` with structs of `schema`."""
    members: list[tuple[str, bool, Fill]] = []
    for field in schema.fields:
        if (field.schema.name or "").startswith(UNION_PREFIX):
            members.append((field.name, True, filler(field.schema, descriptor)))
        else:
            required = not field.schema.optional and field.schema.default is None
            members.append((field.name, not required, _setter(field, descriptor)))

    def fill(message: Any, value: Any) -> None:
        if not isinstance(value, StructValue):
            raise DataException(f"Invalid type for STRUCT: class {type(value).__qualname__}")
        if value.schema is not schema and value.schema != schema:
            raise DataException("Mismatching schema.")
        for field, (name, may_be_missing, put), stored in zip(
            schema.fields, members, value.stored_values(), strict=True
        ):
            found = field.schema.default if stored is None else stored
            if found is not None:
                put(message, found)
            elif not may_be_missing:
                raise DataException(f"Invalid value: null used for required field: {name}")

    return fill


def _setter(field: Field, descriptor: Any) -> Fill:
    target = descriptor.fields_by_name.get(field.name)
    if target is None:
        raise DataException(f"The message {descriptor.full_name} has no field {field.name}")
    name, schema = field.name, field.schema
    if schema.type is Type.ARRAY:
        return _array(name, schema, target)
    if schema.type is Type.MAP:
        return _map(name, schema, target)
    if target.message_type is not None:
        fill = _message(schema, target.message_type)

        def put_message(message: Any, value: Any) -> None:
            # A message that is not set differs from an empty one.
            part = getattr(message, name)
            part.SetInParent()
            fill(part, value)

        return put_message

    def put(message: Any, value: Any) -> None:
        setattr(message, name, validate_value(schema, value, name))

    return put


def _message(schema: Schema, descriptor: Any) -> Fill:
    logical = _LOGICAL_FILLS.get(schema.name or "")
    if logical is not None:
        return lambda message, value: logical(schema, message, value)
    if schema.type is Type.STRUCT:
        return filler(schema, descriptor)

    def wrap(message: Any, value: Any) -> None:
        message.value = validate_value(schema, value)

    return wrap


def _array(name: str, schema: Schema, target: Any) -> Fill:
    element = schema.value_schema
    assert element is not None
    fill = None if target.message_type is None else _message(element, target.message_type)

    def put(message: Any, value: Any) -> None:
        repeated = getattr(message, name)
        for item in value:
            if item is None:
                raise DataException(f"Protobuf has no nulls in lists, as in field {name}")
            if fill is None:
                repeated.append(validate_value(element, item, name))
            else:
                fill(repeated.add(), item)

    return put


def _map(name: str, schema: Schema, target: Any) -> Fill:
    entry = target.message_type
    key, value_schema = schema.key_schema, schema.value_schema
    assert key is not None
    assert value_schema is not None
    if not is_map_field(schema):
        set_key = _setter(Field("key", 0, key), entry)
        set_value = _setter(Field("value", 1, value_schema), entry)

        def put_entries(message: Any, value: Any) -> None:
            for entry_key, item in value.items():
                added = getattr(message, name).add()
                for put_part, part in ((set_key, entry_key), (set_value, item)):
                    if part is not None:
                        put_part(added, part)

        return put_entries
    value_type = entry.fields_by_name["value"].message_type
    fill = None if value_type is None else _message(value_schema, value_type)

    def put(message: Any, value: Any) -> None:
        entries = getattr(message, name)
        for entry_key, item in value.items():
            if item is None:
                raise DataException(f"Protobuf has no nulls in maps, as in field {name}")
            validate_value(key, entry_key, name)
            if fill is None:
                entries[entry_key] = validate_value(value_schema, item, name)
            else:
                fill(entries[entry_key], item)

    return put


def _decimal(schema: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, Decimal):
        raise DataException(f"Invalid type for Decimal: class {type(value).__qualname__}")
    message.value = decimal_to_bytes(schema, value)
    parameters = schema.parameters or {}
    precision = parameters.get("connect.decimal.precision", DEFAULT_PRECISION)
    message.precision = int(precision)
    message.scale = int(parameters["scale"])


def _date(_: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, date):
        raise DataException(f"Invalid type for Date: class {type(value).__qualname__}")
    message.year, message.month, message.day = value.year, value.month, value.day


def _time(_: Schema, message: Any, value: Any) -> None:
    if not isinstance(value, time):
        raise DataException(f"Invalid type for Time: class {type(value).__qualname__}")
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond // 1000 * 1_000_000


def _timestamp(schema: Schema, message: Any, value: Any) -> None:
    moment = validate_value(schema, value)
    assert isinstance(moment, datetime)
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    message.seconds = delta.days * 86_400 + delta.seconds
    message.nanos = delta.microseconds // 1000 * 1_000_000


_LOGICAL_FILLS: dict[str, Callable[[Schema, Any, Any], None]] = {
    DECIMAL_NAME: _decimal,
    DATE_NAME: _date,
    TIME_NAME: _time,
    TIMESTAMP_NAME: _timestamp,
}
