"""Names and properties by which Avro schemas carry what Connect knows and Avro does not.

They are those of Confluent's `AvroData`. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote_plus

from pyconnect_api import DataException

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_RECORD = "ConnectDefault"
MAP_ENTRY = "MapEntry"
UNION = f"{NAMESPACE}.Union"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"

DOC = "connect.doc"
VERSION = "connect.version"
PARAMETERS = "connect.parameters"
DEFAULT = "connect.default"
NAME = "connect.name"
TYPE = "connect.type"
INTERNAL_TYPE = "connect.internal.type"
FIXED_SIZE = "connect.fixed.size"
DECIMAL_PRECISION = "connect.decimal.precision"
DEFAULT_PRECISION = 64

LOGICAL = "__logicalType"
"""The property where `reading.parse` keeps a logical type, so that the library ignores it."""

_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroOptions:
    """The format's own options.

    `connect_meta_data`: names, versions, docs and parameters are written as properties.
    `enhanced`: enums are written back as such, and union fields named in full.
    """

    connect_meta_data: bool = True
    enhanced: bool = False
    scrub_invalid_names: bool = False
    allow_optional_map_keys: bool = False


def avro_name(name: str, options: AvroOptions) -> str:
    """Return a simple name that Avro allows; DataException unless it may be changed."""
    if _VALID.fullmatch(name):
        return name
    if not options.scrub_invalid_names:
        raise DataException(
            f"'{name}' is not a name in Avro: letters, digits and underscores only, no digit "
            "first. Set 'scrub.invalid.names' to true to have it changed"
        )
    scrubbed = _INVALID_CHARACTER.sub("_", quote_plus(name))
    return scrubbed if _VALID.fullmatch(scrubbed) else f"x{scrubbed}"


def full_avro_name(name: str, options: AvroOptions) -> str:
    """Return a name with its namespace, each part as Avro allows it."""
    return ".".join(avro_name(part, options) for part in name.split("."))
