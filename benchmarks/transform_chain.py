"""What a chain of ten transformations costs a schemaless sink record of ten fields.

    scripts/benchmark transform_chain [--records 20000] [--runs 5] [--schema] [--headers 0]
                                         [--each]

The chain: three InsertField, two ReplaceField, MaskField, Cast, TimestampConverter, ValueToKey and
RegexRouter, run as a task runs it. Prints microseconds of processor time a record: the best and the
median run.
"""

import argparse
import statistics
import threading
import time
from collections.abc import Callable

from pyconnect_agent.core.plugin_catalog import Catalog, PluginKind
from pyconnect_agent.core.retry import RetryPolicy
from pyconnect_agent.plugins.loading import builtin_plugins, load
from pyconnect_agent.tasks.records import Chain, Tolerance, TransformationStage
from pyconnect_api import (
    BOOLEAN_SCHEMA,
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Header,
    Schema,
    SchemaBuilder,
    SinkRecord,
    Struct,
    TimestampType,
)

CHAIN = (
    ("InsertField$Value", {"topic.field": "topic", "partition.field": "partition"}),
    ("InsertField$Value", {"offset.field": "offset", "timestamp.field": "written"}),
    ("InsertField$Value", {"static.field": "source", "static.value": "orders"}),
    ("ReplaceField$Value", {"exclude": "comment,internal"}),
    ("ReplaceField$Value", {"renames": "id:order_id,name:customer"}),
    ("MaskField$Value", {"fields": "card"}),
    ("Cast$Value", {"spec": "amount:float64,count:int32"}),
    (
        "TimestampConverter$Value",
        {"field": "created", "target.type": "string", "format": "yyyy-MM-dd'T'HH:mm:ss.SSSX"},
    ),
    ("ValueToKey", {"fields": "order_id"}),
    ("RegexRouter", {"regex": "(.*)-raw", "replacement": "$1-clean"}),
)
VALUE: dict[str, object] = {
    "id": 123456,
    "name": "A. Customer",
    "amount": "19.90",
    "count": 3,
    "card": "4111111111111111",
    "created": 1_700_000_000_123,
    "comment": "a longer text that nobody needs",
    "internal": True,
    "ratio": 0.25,
    "country": "de",
}
SCHEMAS = {int: INT64_SCHEMA, str: STRING_SCHEMA, bool: BOOLEAN_SCHEMA, float: FLOAT64_SCHEMA}


def stages() -> list[TransformationStage]:
    catalog = Catalog(builtin_plugins())
    made = []
    for number, (name, options) in enumerate(CHAIN):
        transformation = load(catalog.plugin(name, PluginKind.TRANSFORMATION))()
        transformation.configure(options)
        made.append(TransformationStage(alias=f"t{number}", transformation=transformation))
    return made


def sink_record(*, with_schema: bool, headers: int) -> SinkRecord:
    schema: Schema | None = None
    value: object = dict(VALUE)
    if with_schema:
        builder = SchemaBuilder.struct().name("order")
        for name, item in VALUE.items():
            builder.field(name, SCHEMAS[type(item)])
        schema = builder.build()
        value = Struct.of_checked(schema, list(VALUE.values()))
    kept = [Header(f"h{number}", STRING_SCHEMA, "x") for number in range(headers)]
    created = TimestampType.CREATE_TIME
    return SinkRecord(
        "orders-raw", 3, None, None, schema, value, 42, 1_700_000_000_123, created, kept or None
    )


def microseconds(
    transform: Callable[[SinkRecord], object], record: SinkRecord, count: int
) -> float:
    start_s = time.process_time()
    for _ in range(count):
        transform(record)
    return (time.process_time() - start_s) / count * 1e6


def report(
    title: str,
    transform: Callable[[SinkRecord], object],
    record: SinkRecord,
    arguments: argparse.Namespace,
) -> None:
    microseconds(transform, record, 1000)
    costs = [microseconds(transform, record, arguments.records) for _ in range(arguments.runs)]
    print(f"{title:28} best {min(costs):6.2f} µs  median {statistics.median(costs):6.2f} µs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--schema", action="store_true", help="give the record a schema")
    parser.add_argument("--headers", type=int, default=0, help="how many headers the record has")
    parser.add_argument("--each", action="store_true", help="also measure each one alone")
    arguments = parser.parse_args()
    policy = RetryPolicy(timeout_ms=0, delay_max_ms=60_000)
    tolerance = Tolerance(
        tolerate_all=False, policy=policy, reporters=(), stop_requested=threading.Event()
    )
    record = sink_record(with_schema=arguments.schema, headers=arguments.headers)
    made = stages()
    transform = Chain(made, tolerance)
    print(transform(record))
    if arguments.each:
        current = record
        for stage in made:
            report(type(stage.transformation).__name__, stage.apply, current, arguments)
            current = stage.apply(current)  # type: ignore[assignment]  # none of them drops it
    report("whole chain", transform, record, arguments)
