"""Message types of .proto texts, by protoc in a process of its own.

Layer: builtin. Needs the extra `protobuf`. Google's and Confluent's common files need not be
references: their descriptors come from installed packages.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyconnect_api import DataException, RetriableException

MAIN_FILE = "schema.proto"
TIMEOUT_S = 60.0
_COMMON = (
    "google.protobuf.any_pb2",
    "google.protobuf.descriptor_pb2",
    "google.protobuf.duration_pb2",
    "google.protobuf.empty_pb2",
    "google.protobuf.field_mask_pb2",
    "google.protobuf.struct_pb2",
    "google.protobuf.timestamp_pb2",
    "google.protobuf.wrappers_pb2",
    "google.type.date_pb2",
    "google.type.timeofday_pb2",
    "google.type.money_pb2",
)


def file_descriptor(text: str, references: Mapping[str, str]) -> Any:  # the library has no types
    """Return the descriptor of a .proto file that may import `references` by name.

    DataException when it is not valid.
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
        _compile(directory)
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


def _compile(directory: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        "--descriptor_set_in=common.binpb",
        "--proto_path=.",
        "--descriptor_set_out=out.binpb",
        "--include_imports",
        MAIN_FILE,
    ]
    try:
        done = subprocess.run(
            command,
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
