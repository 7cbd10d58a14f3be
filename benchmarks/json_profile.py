"""Processor time of the steps of a source with JSON and schemas, without Kafka.

    scripts/benchmark json_profile [--records N]

Measures a record's way through a task: making the record, JsonConverter with and without the
envelope, encoding. The producer's own threads are not included.
"""

import argparse
import time
from collections.abc import Callable

from pyconnect_agent.builtin.converters.base import StringConverter
from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_api import (
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Converter,
    Schema,
    SchemaBuilder,
    SourceRecord,
    Struct,
)

LINE = "x" * 97
ORDER = (
    SchemaBuilder.struct()
    .name("order")
    .field("id", INT64_SCHEMA)
    .field("name", STRING_SCHEMA)
    .field("amount", FLOAT64_SCHEMA)
    .build()
)


def cost_us(step: Callable[[], object], count: int) -> float:
    step()
    start_s = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - start_s) / count * 1e6


def converter(**options: str) -> Converter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in options.items()}, False)
    return made


def both_ways(title: str, used: Converter, schema: Schema | None, value: object, n: int) -> None:
    data = used.from_connect_data("t", [], schema, value)
    assert data is not None
    write = cost_us(lambda: used.from_connect_data("t", [], schema, value), n)
    read = cost_us(lambda: used.to_connect_data("t", [], data), n)
    print(f"| {title:28} | {len(data):5} | {write:5.2f} | {read:5.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=200_000)
    count = parser.parse_args().records
    offset = {"position": 1}
    partition = {"filename": "f"}

    def record() -> SourceRecord:
        return SourceRecord(partition, offset, "t", None, None, None, STRING_SCHEMA, LINE, 1)

    print(f"making a source record: {cost_us(record, count):.2f} µs\n")
    print(f"| {'CPU µs a record':28} | bytes | write |  read |")
    text = StringConverter()
    text.configure({}, False)
    struct = Struct(ORDER).put("id", 123456).put("name", "A. Customer").put("amount", 19.9)
    order = {"id": 123456, "name": "A. Customer", "amount": 19.9}
    plain = converter(schemas_enable="false")
    enveloped = converter(schemas_enable="true")
    both_ways("string, StringConverter", text, STRING_SCHEMA, LINE, count)
    both_ways("string, schemaless JSON", plain, None, LINE, count)
    both_ways("string, JSON with schema", enveloped, STRING_SCHEMA, LINE, count)
    both_ways("three fields, schemaless", plain, None, order, count)
    both_ways("three fields, with schema", enveloped, ORDER, struct, count)
