"""The reference of a message to its schema: Confluent's wire format.

Layer: builtin. Pure.

    00 | schema id, 4 bytes unsigned big-endian | body          written and read
    header __key_schema_id or __value_schema_id = 01 | GUID, 16 bytes | message indexes       read
    header … = 00 | schema id, 4 bytes | message indexes                                      read

Message indexes are Protobuf's: the path of the message type in its file, as zigzag varints after
their count; the common path [0] is the single byte 00. Elsewhere there are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from pyconnect_api import DataException, KafkaHeaders

KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"

_BY_ID, _BY_GUID = 0, 1
_ID_BYTES, _GUID_BYTES = 4, 16


@dataclass(frozen=True, slots=True)
class Frame:
    """A message taken apart: its schema's id or GUID, and what follows.

    `header_rest` is what follows in the header that names the schema, None when the message does.
    """

    schema: int | str
    body: bytes
    header_rest: bytes | None = None


def prefix(schema_id: int) -> bytes:
    """Return what precedes the body."""
    return bytes((_BY_ID,)) + schema_id.to_bytes(_ID_BYTES, "big")


def parse(data: bytes, headers: KafkaHeaders, *, is_key: bool) -> Frame:
    """Take a message apart; DataException when it does not name a schema."""
    name = KEY_HEADER if is_key else VALUE_HEADER
    for header, value in reversed(headers):
        if header == name and value:
            schema, rest = _schema_of(value)
            return Frame(schema, data, rest)
    schema, body = _schema_of(data)
    return Frame(schema, body)


def _schema_of(data: bytes) -> tuple[int | str, bytes]:
    magic = data[0] if data else None
    if magic == _BY_ID and len(data) > _ID_BYTES:
        return int.from_bytes(data[1 : 1 + _ID_BYTES], "big"), data[1 + _ID_BYTES :]
    if magic == _BY_GUID and len(data) > _GUID_BYTES:
        return str(UUID(bytes=data[1 : 1 + _GUID_BYTES])), data[1 + _GUID_BYTES :]
    raise DataException(
        "Unknown magic byte! The message does not begin with the id of a schema; was it written "
        "by another converter or serializer?"
    )


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Return the bytes of a path of message types."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(map(_zigzag, (len(indexes), *indexes)))


def read_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of message types that `data` begins with, and what follows it."""
    count, position = _read_zigzag(data, 0)
    if count == 0:
        return (0,), data[position:]
    indexes = []
    for _ in range(count):
        index, position = _read_zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), data[position:]


def _zigzag(number: int) -> bytes:
    rest = number << 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            number = (result >> 1) ^ -(result & 1)
            if number < 0:
                break
            return number, position
        shift += 7
    raise DataException("The message's path to its Protobuf type is damaged")
