"""Connect schemas of Protobuf message types, with the functions that read messages.

Corresponds to `ProtobufData.toConnectSchema` and `toConnectData`. Unsigned and fixed 32-bit numbers
are INT64, enums STRING, a `oneof` a struct with an optional field for each of its members. A
message that contains itself is refused, for schemas here are finite.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from pyconnect_agent.builtin.converters.protobuf import writing
from pyconnect_agent.builtin.converters.protobuf.writing import ProtobufOptions
from pyconnect_agent.kafka.schema_registry import confluent_meta
from pyconnect_api import (
    DataException,
    Schema,
    SchemaBuilder,
    Struct,
    Type,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.logical import decimal_of, scale_of
from pyconnect_api.validation import hashable_key

Read = Callable[[Any], object]
"""Returns the Connect value of a field's value or of a message."""

# Numbers of FieldDescriptorProto.Type.
_TYPES: Mapping[int, Type] = {
    1: Type.FLOAT64,
    2: Type.FLOAT32,
    3: Type.INT64,
    4: Type.INT64,
    5: Type.INT32,
    6: Type.INT64,
    7: Type.INT64,
    8: Type.BOOLEAN,
    9: Type.STRING,
    12: Type.BYTES,
    13: Type.INT64,
    15: Type.INT32,
    16: Type.INT64,
    17: Type.INT32,
    18: Type.INT64,
}
_ENUM = 14
_WRAPPER = "google.protobuf."
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def connect_schema(descriptor: Any, options: ProtobufOptions) -> tuple[Schema, Read]:
    """Return the Connect schema of a message type, and the function that reads its messages."""
    builder, read = _Walk(options).message(descriptor)
    schema = builder.build()
    reader = read(schema)
    if writing.WRAPPED in _message_params(descriptor):
        inner = schema.fields[0].schema

        def unwrap(message: Any) -> object:
            value = reader(message)
            assert isinstance(value, Struct)
            return value.stored_values()[0]

        return inner, unwrap
    return schema, reader


class _Walk:
    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._open: list[str] = []

    def message(self, descriptor: Any) -> tuple[SchemaBuilder, Callable[[Schema], Read]]:
        """Return a schema's builder, and the function that makes the reader of the built schema."""
        if descriptor.full_name in self._open:
            raise DataException(f"The message {descriptor.full_name} contains itself: unsupported")
        self._open.append(descriptor.full_name)
        builder = SchemaBuilder.struct()
        name = _message_params(descriptor).get(writing.NAME)
        if name is None and not writing.UNNAMED.fullmatch(descriptor.name):
            name = str(descriptor.full_name if self._options.enhanced else descriptor.name)
        if name is not None:
            builder.name(name)
        readers: list[Read] = []
        seen: set[str] = set()
        for field in descriptor.fields:
            union = field.containing_oneof
            if union is None or _is_synthetic(union):
                schema, read = self._field(field)
                builder.field(field.name, schema)
                readers.append(_member(field, schema, read))
            elif union.name not in seen:
                seen.add(union.name)
                index = f"_{union.index}" if self._options.index_for_unions else ""
                schema, read = self._union(union)
                builder.field(f"{union.name}{index}", schema)
                readers.append(read)
        self._open.pop()
        return (
            builder,
            lambda schema: (
                lambda message: Struct.of_checked(schema, [read(message) for read in readers])
            ),
        )

    def _union(self, union: Any) -> tuple[Schema, Read]:
        builder = SchemaBuilder.struct().name(f"{writing.UNION_PREFIX}{union.name}").optional()
        members: dict[str, tuple[int, Read]] = {}
        for index, field in enumerate(union.fields):
            schema, read = self._field(field, optional=True)
            builder.field(field.name, schema)
            members[field.name] = (index, read)
        schema = builder.build()

        def read_union(message: Any) -> object:
            chosen = message.WhichOneof(union.name)
            if chosen is None:
                return None
            values: list[object] = [None] * len(members)
            index, read = members[chosen]
            values[index] = read(getattr(message, chosen))
            return Struct.of_checked(schema, values)

        return schema, read_union

    def _field(self, field: Any, *, optional: bool | None = None) -> tuple[Schema, Read]:
        params = _field_params(field)
        if bool(field.is_repeated):
            return self._repeated(field, params)
        builder, make = self._single(field, params)
        if optional is None:
            optional = True
            if self._options.optional_for_nullables:
                union = field.containing_oneof
                optional = union is not None and _is_synthetic(union)
            elif self._options.wrapper_for_nullables:
                optional = _is_wrapper(field.message_type)
        if optional:
            builder.optional()
        schema = builder.build()
        return schema, make(schema)

    def _repeated(self, field: Any, params: Mapping[str, str]) -> tuple[Schema, Read]:
        message = field.message_type
        is_map = message is not None and message.GetOptions().map_entry
        if is_map or params.get(writing.TYPE) == writing.MAP_TYPE:
            key_schema, key = self._entry_part(message, "key", {})
            value_schema, value = self._entry_part(message, "value", params if is_map else {})
            builder = SchemaBuilder.map(key_schema, value_schema)
            read: Read = (
                (lambda entries: {key(name): value(item) for name, item in entries.items()})
                if is_map
                else lambda entries: {
                    hashable_key(key(entry.key)): value(entry.value) for entry in entries
                }
            )
        else:
            element_builder, make = self._single(field, params)
            if not self._options.optional_for_nullables:
                element_builder.optional()
            element = element_builder.build()
            read_element = make(element)
            builder, read = (
                SchemaBuilder.array(element),
                lambda repeated: [read_element(item) for item in repeated],
            )
        if not self._options.optional_for_nullables:
            builder.optional()
        return builder.build(), read

    def _entry_part(self, entry: Any, name: str, params: Mapping[str, str]) -> tuple[Schema, Read]:
        field = entry.fields_by_name[name]
        builder, make = self._single(field, params or _field_params(field))
        schema = builder.build()
        return schema, make(schema)

    def _single(
        self, field: Any, params: Mapping[str, str]
    ) -> tuple[SchemaBuilder, Callable[[Schema], Read]]:
        message = field.message_type
        if message is None:
            if field.type == _ENUM:
                numbers = {value.number: value.name for value in field.enum_type.values}
                return SchemaBuilder.string(), lambda _: lambda n: numbers.get(n, str(n))
            hint = params.get(writing.TYPE)
            kind = Type(hint) if hint in ("int8", "int16") else _TYPES.get(field.type)
            if kind is None:
                raise DataException(f"Protobuf's type {field.type} of {field.name} is unsupported")
            return SchemaBuilder(kind), lambda _: lambda value: value
        logical = _LOGICAL.get(message.full_name)
        if logical is not None:
            return logical(params)
        if self._options.wrapper_for_nullables and _is_wrapper(message):
            builder, _ = self._single(message.fields_by_name["value"], params)
            return builder, lambda _: lambda wrapper: wrapper.value
        return self.message(message)


def _member(field: Any, schema: Schema, read: Read) -> Read:
    """Return the reader of a field from its message."""
    name = field.name
    # In proto3 a scalar without a label always has a value, 0 by default.
    if field.has_presence and schema.optional:
        return lambda message: read(getattr(message, name)) if message.HasField(name) else None
    return lambda message: read(getattr(message, name))


def _is_synthetic(union: Any) -> bool:
    """Return whether a oneof only stands for the label `optional`."""
    return len(union.fields) == 1 and union.name == f"_{union.fields[0].name}"


def _is_wrapper(message: Any) -> bool:
    return (
        message is not None
        and message.full_name.startswith(_WRAPPER)
        and message.full_name.endswith("Value")
        and [field.name for field in message.fields] == ["value"]
    )


def _field_params(field: Any) -> Mapping[str, str]:
    options = field.GetOptions()
    return dict(options.Extensions[confluent_meta().field_meta].params)


def _message_params(descriptor: Any) -> Mapping[str, str]:
    options = descriptor.GetOptions()
    return dict(options.Extensions[confluent_meta().message_meta].params)


def _decimal(params: Mapping[str, str]) -> tuple[SchemaBuilder, Callable[[Schema], Read]]:
    builder = decimal_builder(int(params.get(writing.SCALE, "0")))
    precision = params.get(writing.PRECISION, str(writing.DEFAULT_PRECISION))
    if precision != str(writing.DEFAULT_PRECISION):
        builder.parameter("connect.decimal.precision", precision)

    def make(schema: Schema) -> Read:
        scale = scale_of(schema)
        return lambda message: decimal_of(int.from_bytes(message.value, "big", signed=True), scale)

    return builder, make


def _temporal(
    builder: Callable[[], SchemaBuilder], read: Read
) -> Callable[[Mapping[str, str]], tuple[SchemaBuilder, Callable[[Schema], Read]]]:
    def read_or_refuse(message: Any) -> object:
        try:
            return read(message)
        except (ValueError, OverflowError):
            # The errors' texts quote the value.
            raise DataException(f"Not a valid {message.DESCRIPTOR.full_name}") from None

    return lambda _params: (builder(), lambda _schema: read_or_refuse)


_LOGICAL = {
    writing.DECIMAL_MESSAGE: _decimal,
    writing.DATE_MESSAGE: _temporal(
        date_builder, lambda message: date(message.year, message.month, message.day)
    ),
    writing.TIME_MESSAGE: _temporal(
        time_builder,
        lambda message: time(
            message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000
        ),
    ),
    writing.TIMESTAMP_MESSAGE: _temporal(
        timestamp_builder,
        lambda message: (
            _EPOCH + timedelta(seconds=message.seconds, milliseconds=message.nanos // 1_000_000)
        ),
    ),
}
