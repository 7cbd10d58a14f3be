"""`io.confluent.connect.protobuf.ProtobufConverter`: Protobuf whose schemas a registry keeps.

Layer: builtin. Schemas are registered as the text of a .proto file. Needs the extra `protobuf`.
Differences from Confluent's: what is no struct is wrapped in a message with a field `value` and
unwrapped again; nulls in lists and maps, lists of lists and messages that contain themselves are
refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyconnect_agent.builtin.converters.protobuf import names, writing
from pyconnect_agent.builtin.converters.protobuf.compiling import file_descriptor
from pyconnect_agent.builtin.converters.protobuf.names import ProtobufOptions
from pyconnect_agent.builtin.converters.protobuf.reading import Read, connect_schema
from pyconnect_agent.builtin.converters.protobuf.values_out import filler
from pyconnect_agent.builtin.converters.registry.converter import (
    Decode,
    DerivedSchema,
    Encode,
    RegistryConverter,
)
from pyconnect_agent.builtin.converters.registry.extras import require_extra
from pyconnect_agent.builtin.converters.registry.framing import (
    Frame,
    read_indexes,
    write_indexes,
)
from pyconnect_agent.builtin.converters.registry.options import define_flags, registry_config_def
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import (
    ConfigDef,
    DataException,
    Schema,
    SchemaAndValue,
    Struct,
    Type,
)

KIND = "PROTOBUF"
_FLAGS = (
    ("enhanced.protobuf.schema.support", False, "Schemas are named with their package."),
    ("optional.for.nullables", False, "Optional fields have the label optional."),
    ("wrapper.for.nullables", False, "Optional scalars are wrapper messages."),
    ("generate.index.for.unions", True, "Fields of unions have a number in their name."),
)


class ProtobufConverter(RegistryConverter):
    """Reads and writes Protobuf; configure it before use."""

    def __init__(self) -> None:
        super().__init__()
        self._protobuf = ProtobufOptions()

    def config(self) -> ConfigDef:
        require_extra("protobuf", type(self).__name__)
        return define_flags(registry_config_def(), _FLAGS)

    def _configured(self, config: Mapping[str, object]) -> None:
        self._protobuf = ProtobufOptions(
            enhanced=config["enhanced.protobuf.schema.support"] is True,
            optional_for_nullables=config["optional.for.nullables"] is True,
            wrapper_for_nullables=config["wrapper.for.nullables"] is True,
            index_for_unions=config["generate.index.for.unions"] is True,
        )

    def _derived(self, schema: Schema) -> DerivedSchema:
        full_name, text = writing.proto_text(schema, self._protobuf)
        return DerivedSchema(RegistrySchema(None, text, KIND), full_name)

    def _encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        file = self._file(target)
        message_schema = writing.as_message(schema)
        wrapped = schema.type is not Type.STRUCT
        index, descriptor = _message_of(file, message_schema)
        fill, make = filler(message_schema, descriptor), _message_class(descriptor)
        path = write_indexes([index])

        def encode(value: object) -> bytes:
            message = make()
            if wrapped:
                value = Struct(message_schema).put(names.WRAPPED_FIELD, value)
            try:
                fill(message, value)
            except (ValueError, TypeError, AttributeError) as error:
                # The library quotes the value.
                raise DataException(
                    f"Failed to serialize Protobuf data with schema {schema}: "
                    f"{type(error).__name__}"
                ) from None
            return path + bytes(message.SerializeToString())

        return encode

    def _decoder(self, source: RegistrySchema) -> Decode:
        if source.kind != KIND:
            raise DataException(f"The message's schema is not Protobuf but {source.kind}")
        file = self._file(source)
        by_path: dict[tuple[int, ...], tuple[Any, Schema, Read]] = {}

        def decode(frame: Frame) -> SchemaAndValue:
            if frame.header_rest is None:
                path, body = read_indexes(frame.body)
            else:
                path, body = read_indexes(frame.header_rest)[0], frame.body
            known = by_path.get(path)
            if known is None:
                descriptor = _message_at(file, path)
                known = (_message_class(descriptor), *connect_schema(descriptor, self._protobuf))
                by_path[path] = known
            make, schema, read = known
            message = make()
            try:
                message.ParseFromString(body)
            # The library's DecodeError, which has no stable place to be imported from.
            except Exception as error:
                raise DataException(
                    f"Failed to deserialize Protobuf data with schema {frame.schema}"
                ) from error
            return SchemaAndValue(schema, read(message))

        return decode

    def _file(self, source: RegistrySchema) -> Any:
        return file_descriptor(source.text, self._imported(source))

    def _imported(self, source: RegistrySchema) -> dict[str, str]:
        texts: dict[str, str] = {}
        for reference in source.references:
            imported = self.registry.by_version(reference.subject, reference.version)
            texts |= {reference.name: imported.text, **self._imported(imported)}
        return texts


def _message_class(descriptor: Any) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)


def _top_level(file: Any) -> list[Any]:
    """Return the file's message types in the order of the file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    content = FileDescriptorProto()
    file.CopyToProto(content)
    return [file.message_types_by_name[message.name] for message in content.message_type]


def _message_of(file: Any, schema: Schema) -> tuple[int, Any]:
    """Return the message type to write: that of the schema's name, else the file's first."""
    messages = _top_level(file)
    simple_name = (schema.name or "").rpartition(".")[2]
    for index, message in enumerate(messages):
        if message.name == simple_name:
            return index, message
    return 0, messages[0]


def _message_at(file: Any, path: tuple[int, ...]) -> Any:
    level, found = _top_level(file), None
    for index in path:
        if index >= len(level):
            raise DataException(f"The Protobuf schema has no message at {list(path)}")
        found = level[index]
        level = list(found.nested_types)
    return found
