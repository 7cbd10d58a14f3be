"""`org.apache.kafka.connect.converters.ByteArrayConverter`: bytes as they are.

Layer: builtin. Does no conversion at all; use it to copy data untouched.
"""

from collections.abc import Sequence
from types import NoneType

from pyconnect_agent.builtin.converters.base import DataConverter
from pyconnect_api import (
    OPTIONAL_BYTES_SCHEMA,
    DataException,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
    Type,
    pair_of,
)


class ByteArrayConverter(DataConverter):
    """Writes bytes-like values, reads OPTIONAL_BYTES."""

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if schema is not None and schema.type is not Type.BYTES:
            raise DataException(f"Invalid schema type for ByteArrayConverter: {schema.type}")
        if value is None or value.__class__ is bytes:
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise DataException(
            "ByteArrayConverter is not compatible with objects of type "
            f"class {type(value).__qualname__}"
        )

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[object]
    ) -> list[bytes | None]:
        if set(map(type, values)) <= {bytes, NoneType} and values:
            self.from_connect_data(topic, [], schema, None)
            return list(values)  # type: ignore[arg-type]  # looked at
        return super().from_connect_many(topic, schema, values)

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[list[Schema | None], list[object]]:
        return [OPTIONAL_BYTES_SCHEMA] * len(data), list(data)

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        return pair_of((OPTIONAL_BYTES_SCHEMA, data))
