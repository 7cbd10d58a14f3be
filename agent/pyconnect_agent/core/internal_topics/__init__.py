"""The logs of the three internal topics: bytes of records, and reducers. Pure.

A reducer takes records and returns notices about those that it could not use; the stores write the
notices into the worker's log.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple


class LogRecord(NamedTuple):
    """Bytes to write: a `value` of None is a tombstone."""

    key: bytes
    value: bytes | None


class NoticeLevel(Enum):
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """An ignored record, or an ignored part of one.

    `event` is constant text that starts a log line; `key` is the record's key; `detail` describes
    the fault and never holds a member's value. `offset` is None in a log with several partitions.
    """

    severity: NoticeLevel
    event: str
    key: str
    detail: str = ""
    offset: int | None = None


def json_type(value: object) -> str:
    """Name the JSON type of a decoded value, for a `detail`."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def key_text(key: bytes) -> str:
    """Decode a key as Kafka's StringDeserializer does: malformed bytes become U+FFFD."""
    return key.decode("utf-8", "replace")
