"""Rows that the tests of a lake write."""

from collections.abc import Iterable

from pyconnect_api import (
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    SchemaBuilder,
    Struct,
    TopicPartition,
)
from pyconnect_api.testing import SinkHarness

TOPIC = TopicPartition("topic", 0)
ROW = (
    SchemaBuilder.struct()
    .name("row")
    .version(1)
    .field("id", INT64_SCHEMA)
    .field("city", OPTIONAL_STRING_SCHEMA)
    .build()
)


def row(number: int) -> Struct:
    return Struct(ROW).put("id", number).put("city", ("Ulm", "Bonn", None)[number % 3])


def send(
    sink: SinkHarness,
    numbers: Iterable[int],
    *,
    partition: TopicPartition = TOPIC,
    first_ms: int = 1_700_000_000_000,
) -> None:
    """Append rows to a topic, with timestamps one second apart."""
    for number in numbers:
        sink.send(
            row(number), value_schema=ROW, partition=partition, timestamp=first_ms + number * 1000
        )
