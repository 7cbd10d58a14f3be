"""`io.confluent.connect.protobuf.ProtobufConverter`: Protobuf whose schemas a registry keeps.

Schemas are registered as the text of a .proto file, from which protoc makes message types in a
separate process. Needs the extra `protobuf`. Google's and Confluent's common files need not be
references: their descriptors come from installed packages. Unlike Confluent's converter, this one
wraps a value that is not a struct in a message with a field `value`, and unwraps it in reading. It
refuses nulls in lists and maps, lists of lists, and messages that contain themselves.
"""

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyconnect_agent.builtin.converters.protobuf import writing
from pyconnect_agent.builtin.converters.protobuf.reading import Read, connect_schema
from pyconnect_agent.builtin.converters.protobuf.writing import ProtobufOptions, filler
from pyconnect_agent.builtin.converters.registry import (
    Decode,
    DerivedSchema,
    Encode,
    Frame,
    RegistryConverter,
    read_indexes,
    write_indexes,
)
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import DataException, RetriableException, Schema, SchemaAndValue, Struct, Type

MAIN_FILE = "schema.proto"
TIMEOUT_S = 60.0
_COMMON = (
    "google.protobuf.any_pb2", "google.protobuf.descriptor_pb2", "google.protobuf.duration_pb2",
    "google.protobuf.empty_pb2", "google.protobuf.field_mask_pb2", "google.protobuf.struct_pb2",
    "google.protobuf.timestamp_pb2", "google.protobuf.wrappers_pb2", "google.type.date_pb2",
    "google.type.timeofday_pb2", "google.type.money_pb2",
)  # fmt: skip


def file_descriptor(text: str, references: Mapping[str, str]) -> Any:  # the library has no types
    """Return the descriptor of a .proto file that may import `references` by name.

    Raises DataException if the file is not valid.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool

    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for name, content in {**references, MAIN_FILE: text}.items():
            path = (directory / name).resolve()
            if not path.is_relative_to(directory.resolve()):
                raise DataException(f"A Protobuf schema imports {name}, which is not a file name")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        (directory / "common.binpb").write_bytes(common_descriptors())
        command = (
            "-m grpc_tools.protoc --descriptor_set_in=common.binpb --proto_path=."
            f" --descriptor_set_out=out.binpb --include_imports {MAIN_FILE}"
        )
        try:
            done = subprocess.run(
                [sys.executable, *command.split()],
                cwd=directory,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired as error:
            raise RetriableException(f"protoc took longer than {TIMEOUT_S:.0f} s") from error
        if done.returncode != 0:
            raise DataException(f"The Protobuf schema is not valid: {done.stderr.strip()}")
        found = descriptor_pb2.FileDescriptorSet.FromString((directory / "out.binpb").read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    return pool.FindFileByName(MAIN_FILE)


def common_descriptors() -> bytes:
    """Return the serialized descriptors of the files that every schema may import."""
    from importlib import import_module

    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    from pyconnect_agent.kafka.schema_registry import confluent_descriptors

    files = FileDescriptorSet()
    modules = [import_module(name).DESCRIPTOR for name in _COMMON]
    for descriptor in (*modules, *confluent_descriptors()):
        descriptor.CopyToProto(files.file.add())
    return bytes(files.SerializeToString())


_TABLE = """
enhanced.protobuf.schema.support  BOOLEAN  LOW  false
    Schemas are named with their package.
optional.for.nullables  BOOLEAN  LOW  false
    Optional fields have the label optional.
wrapper.for.nullables  BOOLEAN  LOW  false
    Optional scalars are wrapper messages.
generate.index.for.unions  BOOLEAN  LOW  true
    Fields of unions have a number in their name.
"""


class ProtobufConverter(RegistryConverter):
    """The converter for Protobuf; configure it before use."""

    KIND, FORMAT, EXTRA = "PROTOBUF", "Protobuf", "protobuf"
    TABLE = _TABLE

    def __init__(self) -> None:
        super().__init__()
        self._protobuf = ProtobufOptions()

    def configured(self, config: Mapping[str, object]) -> None:
        self._protobuf = ProtobufOptions(
            enhanced=config["enhanced.protobuf.schema.support"] is True,
            optional_for_nullables=config["optional.for.nullables"] is True,
            wrapper_for_nullables=config["wrapper.for.nullables"] is True,
            index_for_unions=config["generate.index.for.unions"] is True,
        )

    def derived(self, schema: Schema) -> DerivedSchema:
        full_name, text = writing.proto_text(schema, self._protobuf)
        return DerivedSchema(RegistrySchema(None, text, self.KIND), full_name)

    def encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        file = self._file(target)
        message_schema = writing.as_message(schema)
        wrapped = schema.type is not Type.STRUCT
        messages = _top_level(file)
        # The message with the schema's name, else the first of the file.
        simple_name = (message_schema.name or "").rpartition(".")[2]
        named = (at for at, message in enumerate(messages) if message.name == simple_name)
        index = next(named, 0)
        fill, make = filler(message_schema, messages[index]), _message_class(messages[index])
        path = write_indexes([index])

        def encode(value: object) -> bytes:
            message = make()
            if wrapped:
                value = Struct(message_schema).put(writing.WRAPPED_FIELD, value)
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

    def decoder(self, source: RegistrySchema) -> Decode:
        file = self._file(source)
        by_path: dict[tuple[int, ...], tuple[Any, Schema, Read]] = {}

        def decode(frame: Frame) -> SchemaAndValue:
            if frame.header_rest is None:
                path, body = read_indexes(frame.body)
            else:
                path, body = read_indexes(frame.header_rest)[0], frame.body
            known = by_path.get(path)
            if known is None:
                level, descriptor = _top_level(file), None
                for index in path:
                    if index >= len(level):
                        raise DataException(f"The Protobuf schema has no message at {list(path)}")
                    descriptor = level[index]
                    level = list(descriptor.nested_types)
                known = (_message_class(descriptor), *connect_schema(descriptor, self._protobuf))
                by_path[path] = known
            make, schema, read = known
            message = make()
            try:
                message.ParseFromString(body)
            # This is the library's DecodeError, which cannot be imported from a stable place.
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
