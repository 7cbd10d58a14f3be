"""Checks of what a transformation is given.

Layer: builtin. Corresponds to `org.apache.kafka.connect.transforms.util.Requirements`; the texts
are Kafka's, with Python's names of classes. `purpose` says what the value was needed for.
"""

from __future__ import annotations

from typing import Any

from pyconnect_api import ConnectRecord, DataException, Schema, SinkRecord, Struct


def require_schema(schema: Schema | None, purpose: str) -> Schema:
    """Return the schema; DataException if there is none."""
    if schema is None:
        raise DataException(f"Schema required for [{purpose}]")
    return schema


def require_map(value: object, purpose: str) -> dict[Any, Any]:
    """Return the value; DataException unless it is a dict."""
    if not isinstance(value, dict):
        raise DataException(
            f"Only Map objects supported in absence of schema for [{purpose}], "
            f"found: {class_name(value)}"
        )
    return value


def require_struct(value: object, purpose: str) -> Struct:
    """Return the value; DataException unless it is a Struct."""
    if not isinstance(value, Struct):
        raise DataException(
            f"Only Struct objects supported for [{purpose}], found: {class_name(value)}"
        )
    return value


def require_sink_record(record: ConnectRecord, purpose: str) -> SinkRecord:
    """Return the record; DataException unless it comes from Kafka."""
    if not isinstance(record, SinkRecord):
        raise DataException(
            f"Only SinkRecord supported for [{purpose}], found: {class_name(record)}"
        )
    return record


def class_name(value: object) -> str:
    """Return how messages name the class of a value."""
    return "null" if value is None else type(value).__qualname__
