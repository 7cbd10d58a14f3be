"""The extra of this package that each format needs, checked when a connector is validated.

Layer: builtin. The libraries are imported, not only looked for: one that is there may lack another.
"""

from __future__ import annotations

from importlib import import_module

from pyconnect_api import ConfigException
from pyconnect_clients.installation import install_command

_MODULES = {
    "avro": ("fastavro",),
    "json-schema": ("jsonschema",),
    "protobuf": ("google.protobuf.descriptor_pb2", "google.type.date_pb2", "grpc_tools.protoc"),
}


def require_extra(extra: str, converter: str) -> None:
    """Raise ConfigException, with the command that installs it, when a library is missing."""
    try:
        for module in ("confluent_kafka.schema_registry", *_MODULES[extra]):
            import_module(module)
    except ImportError as error:
        raise ConfigException(
            f"{converter} needs {error.name}, which is not installed; "
            f"install the extra `{extra}`: {install_command(extra)}"
        ) from error
