"""Records that cannot be processed: the facts that errors show, and secrets that they must not."""

import json
import threading
from collections.abc import Callable

import pytest

from pyconnect_agent.tasks.plugins import stages_of
from pyconnect_agent.tasks.records import Chain, ErrorCounts, Tolerance, tolerance_of
from pyconnect_agent.tasks.sink import dead_letters
from pyconnect_agent.tasks.sink import pipeline as sink_pipeline
from pyconnect_agent.tasks.source import pipeline as source_pipeline
from pyconnect_agent.tasks.trace import format_trace
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    ConnectException,
    DataException,
    Schema,
    SchemaBuilder,
    SinkRecord,
    SourceRecord,
    Struct,
)
from tests.agent.tasks.parts import converters, json_values
from tests.support.cases import cases
from tests.support.fakes.fake_clients import FakeMessage
from tests.support.functions import ANY_MESSAGES

SECRET = "hunter2"
DIGITS = "41111111"
"""The first digits of every number that errors must not show."""
STRING = "org.apache.kafka.connect.storage.StringConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms."
WORKER = {
    "bootstrap.servers": "127.0.0.1:1",
    "key.converter": STRING,
    "value.converter": STRING,
    "offset.storage.file.filename": "offsets",
}
AN_OBJECT = json.dumps({"name": SECRET}).encode()


def tolerance(
    place_of: Callable[[object], str], counts: ErrorCounts | None = None, **config: str
) -> Tolerance:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return tolerance_of(
        {"name": "c", "connector.class": "C", **given},
        task_id="c-0",
        describe_record=dead_letters.describe_consumed,
        stop_requested=threading.Event(),
        place_of=place_of,
        counts=counts,
    )


def transformation(kind: str, **options: str) -> dict[str, str]:
    settings = {f"transforms.x.{name.replace('_', '.')}": text for name, text in options.items()}
    return {"transforms": "x", "transforms.x.type": f"{TRANSFORMS}{kind}", **settings}


def consume(
    value: bytes, config: dict[str, str], handling: Tolerance, *, schemas: bool = False
) -> list[SinkRecord]:
    """Take one consumed record through converter and transformations."""
    records, _ = sink_pipeline.compose_conversion(
        ANY_MESSAGES,
        converters=converters(json_values(schemas=schemas)),
        chain=Chain(stages_of(WorkerView(WORKER), config), handling),
        tolerance=handling,
        keep_consumed=True,
    )([FakeMessage("orders", 3, 7, value)], {})
    return list(records)


def logical(type_name: str, name: str, payload: str) -> bytes:
    schema = {"type": type_name, "name": f"org.apache.kafka.connect.data.{name}", "version": 1}
    return f'{{"schema":{json.dumps(schema)},"payload":{payload}}}'.encode()


BAD: dict[str, tuple[bytes, dict[str, str], bool]] = {
    "poison": (f"{SECRET} is no JSON".encode(), {}, False),
    "cut off": (f'{{"a": "{SECRET}'.encode(), {}, False),
    "text after the JSON": (f'{{"a": 1}} {SECRET}'.encode(), {}, False),
    "no text": (b"\xff" + SECRET.encode(), {}, False),
    "no schema": (AN_OBJECT, {}, True),
    "value of another type than its schema": (
        json.dumps({"schema": {"type": "int32"}, "payload": SECRET}).encode(), {}, True,
    ),
    "number out of the range of its schema": (
        f'{{"schema":{{"type":"int8"}},"payload":{DIGITS}}}'.encode(), {}, True,
    ),
    "number with an exponent out of every range": (
        f'{{"schema":{{"type":"int64"}},"payload":{DIGITS}e40}}'.encode(), {}, True,
    ),
    "date of no year": (logical("int32", "Date", DIGITS), {}, True),
    "time of no year": (logical("int64", "Timestamp", DIGITS * 2), {}, True),
    "converted time of no year": (
        f'{{"name":{DIGITS * 2}}}'.encode(),
        transformation("TimestampConverter$Value", field="name", target_type="Date"), False,
    ),
    "cast of no number": (AN_OBJECT, transformation("Cast$Value", spec="name:int32"), False),
    "no date": (
        AN_OBJECT, transformation(
            "TimestampConverter$Value", field="name", format="yyyy", target_type="Date"
        ), False,
    ),
    "no fields at all": (
        json.dumps(SECRET).encode(),
        transformation("InsertField$Value", static_field="f", static_value="v"), False,
    ),
    "missing field": (
        json.dumps({"schema": {"type": "struct", "fields": []}, "payload": {}}).encode(),
        transformation("ExtractField$Value", field="missing"), True,
    ),
}  # fmt: skip


@cases("value, config, schemas", *BAD.values(), ids=list(BAD))
def test_the_place_decides_on_records(value: bytes, config: dict[str, str], schemas: bool) -> None:
    """The trace has topic, partition and offset of the record, but not its value."""
    with pytest.raises(ConnectException) as raised:
        consume(value, config, tolerance(dead_letters.place_of), schemas=schemas)
    trace = format_trace(raised.value)
    assert "Tolerance exceeded in error handler" in trace
    assert "for the record of topic 'orders', partition 3, offset 7\n" in trace
    assert SECRET not in trace
    assert DIGITS not in trace


@cases("value, config, schemas", *BAD.values(), ids=list(BAD))
def test_a_bad_record_is_left_out_when_errors_are_tolerated(
    caplog: pytest.LogCaptureFixture, value: bytes, config: dict[str, str], schemas: bool
) -> None:
    """The log has the record's place without its value, and the failure counts once."""
    counts = ErrorCounts()
    handling = tolerance(
        dead_letters.place_of,
        counts,
        errors_tolerance="all",
        errors_log_enable="true",
        errors_log_include_messages="true",
    )
    assert consume(value, config, handling, schemas=schemas) == []
    (message,) = caplog.messages
    assert "{topic='orders', partition=3, offset=7" in message
    assert SECRET not in caplog.text
    assert DIGITS not in caplog.text
    assert (counts.record_failures, counts.record_errors, counts.records_skipped) == (1, 1, 1)


def test_a_struct_refuses_a_value_of_another_type() -> None:
    """A struct names the field whose value has a wrong type, before a record is made of it."""
    schema = SchemaBuilder.struct().field("amount", INT32_SCHEMA).build()
    with pytest.raises(DataException) as raised:
        Struct(schema).put("amount", SECRET)
    assert "amount" in str(raised.value)


def produce(schema: Schema | None, value: object, handling: Tolerance) -> bytes | None:
    convert = source_pipeline.compose(
        converters=converters(json_values()), chain=None, tolerance=handling
    ).convert
    record = SourceRecord({"table": "t"}, {"id": 9}, "orders", value_schema=schema, value=value)
    return convert(record, record)[1]


def test_a_source_record_of_a_wrong_type_is_named_by_its_source() -> None:
    """The trace has topic, source partition and source offset, which the worker stores anyway."""
    handling = tolerance(source_pipeline.place_of)
    with pytest.raises(ConnectException) as raised:
        produce(INT32_SCHEMA, SECRET, handling)
    trace = format_trace(raised.value)
    place = "topic 'orders', source partition {'table': 't'}, source offset {'id': 9}\n"
    assert f"for the record of {place}" in trace
    assert SECRET not in trace


def test_a_schema_may_change_from_record_to_record() -> None:
    """Each record is written with its own schema, also when an earlier schema returns."""
    handling = tolerance(source_pipeline.place_of)
    old = SchemaBuilder.struct().field("a", INT32_SCHEMA).version(1).build()
    new = SchemaBuilder.struct().field("a", INT32_SCHEMA).field("b", STRING_SCHEMA).version(2)
    newer = new.build()
    first = produce(old, Struct(old).put("a", 1), handling)
    second = produce(newer, Struct(newer).put("a", 1).put("b", "x"), handling)
    assert [field["field"] for field in json.loads(second or b"")["schema"]["fields"]] == ["a", "b"]
    assert produce(old, Struct(old).put("a", 1), handling) == first
