"""Names that the parts of the Protobuf mapping share. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyconnect_api import DataException

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
    """Return a name; DataException when Protobuf does not allow it."""
    if not _VALID.fullmatch(name):
        raise DataException(
            f"'{name}' is not a name in Protobuf: letters, digits and underscores, no digit first"
        )
    return name
