"""Values whose schemas a registry keeps: decoded, compared, and reported if they do not parse."""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema as RegistrySchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from pyarrow import parquet
from pyspark.sql import SparkSession

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_agent.builtin.converters.registry import RegistryConverter
from pyconnect_agent.builtin.converters.registry_json import JsonSchemaConverter
from pyconnect_api import (
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    SchemaBuilder,
    Struct,
    decimal_schema,
    timestamp_builder,
)
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Audit
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.names import unique_name

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

Make = Callable[[type[RegistryConverter]], RegistryConverter]

FIRST = (
    SchemaBuilder.struct()
    .name("com.example.Order")
    .field("id", INT64_SCHEMA)
    .field("note", OPTIONAL_STRING_SCHEMA)
    .build()
)
SECOND = (
    SchemaBuilder.struct()
    .name("com.example.Order")
    .field("id", INT64_SCHEMA)
    .field("price", decimal_schema(2))
    .field("at", timestamp_builder().optional().build())
    .field("note", OPTIONAL_STRING_SCHEMA)
    .build()
)
TEXTUAL = SchemaBuilder.struct().name("com.example.Text").field("id", STRING_SCHEMA).build()
MOMENT = datetime(2026, 3, 4, 5, 6, 7, 890_000, tzinfo=UTC)
COLUMNS = "id bigint, price decimal(12,2), at timestamp, note string"


@pytest.fixture
def converter(schema_registry_url: str) -> Iterator[Make]:
    made = ExitStack()

    def make(kind: type[RegistryConverter]) -> RegistryConverter:
        converter = kind()
        made.callback(converter.close)
        converter.configure({"schema.registry.url": schema_registry_url}, False)
        return converter

    with made:
        yield make


@pytest.fixture
def registries(schema_registry_url: str) -> dict[str, object]:
    return {"main": {"url": f"http://127.0.0.1:1/, {schema_registry_url}/"}}


def side(seed: Seed, value: str = "avro") -> dict[str, object]:
    return {"kind": "topic", "topics": [seed.topic], "value": value}


def old(number: int) -> Struct:
    return Struct(FIRST).put("id", number).put("note", None if number % 3 else f"n{number}")


def new(number: int) -> Struct:
    struct = Struct(SECOND).put("id", number).put("price", Decimal(number * 25).scaleb(-2))
    return struct.put("at", MOMENT if number % 2 else None).put("note", f"n{number}")


def row(struct: Struct) -> tuple[object, ...]:
    names = [field.name for field in struct.schema.fields]
    return tuple(
        struct.get(name) if name in names else None for name in ("id", "price", "at", "note")
    )


def test_avro_is_compared_with_parquet_of_the_same_data(
    audit: Audit,
    spark: SparkSession,
    converter: Make,
    registries: dict[str, object],
    tmp_path: Path,
) -> None:
    """Two versions of a schema are decoded; missing, changed and unparsable values are reported."""
    seed = seed_topic(audit.bootstrap)
    avro = converter(AvroConverter)
    structs = [old(n) for n in range(40)] + [new(n) for n in range(40, 100)]
    values = [avro.from_connect_data(seed.topic, [], each.schema, each) for each in structs]
    seed.write([Record(value) for value in values])
    kept = values[50]
    assert kept is not None
    strange = [
        kept[:-2], kept + b"x", b'{"id":1}', b"", kept[:5],
        b"\0" + (7_000_000).to_bytes(4, "big") + kept[5:],
    ]  # fmt: skip
    unparsed = seed.write([Record(value) for value in strange])
    rows = [row(each) for each in structs]
    rows[60] = (60, Decimal("0.01"), None, "n60")
    del rows[7]
    target = str(tmp_path / "orders")
    spark.createDataFrame(rows, COLUMNS).write.parquet(target)
    files = {"kind": "files", "paths": [target], "format": "parquet"}
    members = {"left": side(seed), "right": files, "registries": registries}
    answer = audit.run("topic-sink", **members)
    lost = {(0, 7), (0, 60), *unparsed}
    assert answer.places("missing") == {frozenset({place}) for place in lost}
    assert len(answer.of("extra")) == 1
    assert answer.places("unparsable") == {frozenset(unparsed)}
    [unknown] = answer.of("unknown-schema")
    assert answer.outcome.totals["unknown-schema"] == 1
    assert (unknown.first, unknown.count) == (7_000_000, 1)
    assert answer.kinds() == {"missing", "extra"}
    fatal = audit.run("topic-sink", **members, fail_unparsable=True)
    assert fatal.kinds() == {"missing", "extra", "unparsable"}
    with pytest.raises(ReconcileError, match="there is no column `prize`"):
        audit.run("topic-sink", **members, columns=["prize:string"])
    with pytest.raises(ReconcileError, match="no schema registry is known"):
        audit.run("topic-sink", left=side(seed), right=files)
    nobody = {"main": {"url": "http://127.0.0.1:1"}}
    with pytest.raises(ReconcileError, match="cannot be reached"):
        audit.run("topic-sink", left=side(seed), right=files, registries=nobody)


def test_names_of_directories_are_texts_beside_avro(
    audit: Audit, converter: Make, registries: dict[str, object], tmp_path: Path
) -> None:
    """The directory `note=07` is the text 07, although Spark would make the number 7."""
    seed = seed_topic(audit.bootstrap)
    struct = Struct(FIRST).put("id", 5).put("note", "07")
    avro = converter(AvroConverter)
    seed.write([Record(avro.from_connect_data(seed.topic, [], FIRST, struct))])
    directory = tmp_path / "files" / "note=07"
    directory.mkdir(parents=True)
    parquet.write_table(pa.table({"id": [5]}), str(directory / "1.parquet"))
    files = {"kind": "files", "paths": [str(directory.parent)], "format": "parquet"}
    answer = audit.run("topic-sink", left=side(seed), right=files, registries=registries)
    assert answer.verdict is Verdict.AGREE


def test_times_of_day_keep_their_unit(
    audit: Audit, schema_registry_url: str, registries: dict[str, object], tmp_path: Path
) -> None:
    """Times of day are compared by their unit: 1000 ms differ from 1000 µs."""
    seed = seed_topic(audit.bootstrap)
    fields: list[dict[str, object]] = [{"name": "id", "type": "long"}]
    for name, kind, unit in (("m", "int", "millis"), ("u", "long", "micros")):
        clock = {"type": kind, "logicalType": f"time-{unit}"}
        fields.append({"name": name, "type": ["null", clock]})
    schema: dict[str, object] = {"type": "record", "name": "Clocks", "fields": fields}
    with SchemaRegistryClient({"url": schema_registry_url}) as client:
        text = RegistrySchema(json.dumps(schema), "AVRO")
        number = client.register_schema(f"{seed.topic}-value", text)
    stream = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    stream.seek(5)
    fastavro.schemaless_writer(stream, schema, {"id": 7, "m": time(0, 0, 1), "u": time(0, 0, 1)})
    seed.write([Record(stream.getvalue())])
    for micros, verdict in ((1_000_000, Verdict.AGREE), (1000, Verdict.DIFFER)):
        clocks = {"m": pa.array([1000], pa.time32("ms")), "u": pa.array([micros], pa.time64("us"))}
        file = str(tmp_path / f"{micros}.parquet")
        parquet.write_table(pa.table({"id": [7], **clocks}), file)
        files = {"kind": "files", "paths": [file], "format": "parquet"}
        answer = audit.run("topic-sink", left=side(seed), right=files, registries=registries)
        assert answer.verdict is verdict


def test_members_of_avro_values_are_numbers_and_keys(
    audit: Audit, converter: Make, registries: dict[str, object]
) -> None:
    """A member of a value is found by its name in each version of the schema."""
    seed = seed_topic(audit.bootstrap)
    avro = converter(AvroConverter)
    structs = [old(n) for n in (1, 2, 3)] + [new(n) for n in (5, 6, 6)]
    values = [avro.from_connect_data(seed.topic, [], each.schema, each) for each in structs]
    [*_, twice] = seed.write([Record(value) for value in values])
    [strange] = seed.write([Record(b"no avro")])
    asked = {"topics": [seed.topic], "registries": registries}
    answer = audit.run("sequence", **asked, sequence="avro:id")
    assert answer.intervals("missing") == {(None, 4, 4)}
    assert answer.places("repeated") == {frozenset({(0, 4), twice})}
    assert answer.places("unparsable") == {frozenset({strange})}
    # The text "1" is another identity than the number 1.
    struct = Struct(TEXTUAL).put("id", "1")
    seed.write([Record(avro.from_connect_data(unique_name("text"), [], TEXTUAL, struct))])
    answer = audit.run("duplicates", **asked, identity="avro:id")
    assert answer.places("duplicate") == {frozenset({(0, 4), twice})}
    with pytest.raises(ReconcileError, match="a field for `avro:number`"):
        audit.run("sequence", **asked, sequence="avro:number")
    tiers = [
        {"name": name, "side": side(seed, form), "event_time": "avro:at"}
        for name, form in (("one", "avro"), ("same", "bytes"))
    ]
    answer = audit.run("completeness", tiers=tiers, registries=registries)
    [bucket] = answer.outcome.series["buckets"]
    assert (bucket["time"], list(bucket["rows"])) == ("2026-03-04 05:00", [1, 1])
    # In each tier six records without a time, and the one that does not parse.
    assert [each.count for each in answer.of("unparsable")] == [14]


def test_the_last_version_of_each_key_is_found_in_avro(
    audit: Audit, converter: Make, registries: dict[str, object], tmp_path: Path
) -> None:
    """Last versions in Avro are compared with JSON lines, also if the tail has another schema."""
    seed = seed_topic(audit.bootstrap)
    avro = converter(AvroConverter)
    structs = [old(n) for n in range(20)] + [old(3).put("note", "again"), old(5)]
    values = [avro.from_connect_data(seed.topic, [], FIRST, each) for each in structs]
    seed.write([Record(value) for value in values])
    later = new(99)
    seed.write([Record(avro.from_connect_data(seed.topic, [], SECOND, later))])
    lines = [{"note": each.get("note"), "id": each.get("id")} for each in structs[:20]]
    lines[9]["note"] = "changed"
    file = tmp_path / "lines.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = audit.run(
        "topic-sink",
        left=side(seed),
        right={"kind": "files", "paths": [str(file)], "format": "json", "value": "json"},
        mode="upsert",
        key="avro:id",
        registries=registries,
        until={seed.topic: {"0": len(values)}},
    )
    found = {copy.offset or copy.row for each in answer.of("different") for copy in each.copies}
    assert found == {20, 4, 9, 10}
    assert answer.kinds() == {"different"}


@pytest.mark.long(only=True)
def test_a_key_of_json_schema_may_be_a_member_that_is_not_compared(
    audit: Audit, converter: Make, registries: dict[str, object], tmp_path: Path
) -> None:
    """A key may be a member of JSON Schema values that is not among the compared columns."""
    seed = seed_topic(audit.bootstrap)
    framed = converter(JsonSchemaConverter)
    structs = [old(n) for n in range(20)] + [old(3).put("note", "again")]
    values = [framed.from_connect_data(seed.topic, [], FIRST, each) for each in structs]
    seed.write([Record(value) for value in values])
    lines = [{"id": each.get("id"), "note": each.get("note")} for each in structs[:20]]
    lines[3]["note"], lines[9]["note"] = "again", "changed"
    file = tmp_path / "lines.json"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = audit.run(
        "topic-sink",
        left=side(seed, "json-schema"),
        right={"kind": "files", "paths": [str(file)], "format": "json", "value": "json"},
        mode="upsert",
        key="json:id",
        columns=["note:string"],
        registries=registries,
    )
    found = {copy.offset or copy.row for each in answer.of("different") for copy in each.copies}
    assert found == {9, 10}
    assert answer.kinds() == {"different"}


def test_formats_of_the_registry_are_compared_with_each_other(
    audit: Audit, converter: Make, registries: dict[str, object]
) -> None:
    """Avro and JSON Schema values are compared by value, although ids and bytes differ."""
    one, other = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    avro, framed = converter(AvroConverter), converter(JsonSchemaConverter)
    for seed, kind, numbers in (
        (one, avro, range(30)),
        (other, framed, [*range(12), *range(13, 30)]),
    ):
        values = [kind.from_connect_data(seed.topic, [], FIRST, old(n)) for n in numbers]
        seed.write([Record(value, key=b"k") for value in values])
    [strange] = other.write([Record(b'{"id":12,"note":"n12"}', key=b"k")])
    answer = audit.run(
        "topic-topic", left=side(one), right=side(other, "json-schema"), registries=registries
    )
    assert answer.places("missing") == {frozenset({(0, 12)})}
    assert answer.places("unparsable") == answer.places("extra") == {frozenset({strange})}
    assert answer.kinds() == {"missing", "extra"}


def test_schemas_may_refer_to_others(
    audit: Audit, schema_registry_url: str, registries: dict[str, object], tmp_path: Path
) -> None:
    """A schema that refers to another one is decoded with it."""
    name = unique_name("place").replace("-", "_")
    place = {
        "type": "record", "name": name, "namespace": "com.example",
        "fields": [{"name": "city", "type": "string"}],
    }  # fmt: skip
    fields = [{"name": "id", "type": "long"}, {"name": "to", "type": f"com.example.{name}"}]
    visit = {"type": "record", "name": f"{name}_visit", "fields": fields}
    with SchemaRegistryClient({"url": schema_registry_url}) as client:
        client.register_schema(name, RegistrySchema(json.dumps(place), "AVRO"))
        used = SchemaReference(f"com.example.{name}", name, 1)
        text = RegistrySchema(json.dumps(visit), "AVRO", [used])
        number = client.register_schema(f"{name}-visit", text)
    named: dict[str, object] = {}
    fastavro.parse_schema(place, named_schemas=named)
    parsed = fastavro.parse_schema(visit, named_schemas=named)
    visits = [{"id": n, "to": {"city": f"c{n}"}} for n in range(10)]
    bodies = []
    for each in visits:
        stream = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
        stream.seek(5)
        fastavro.schemaless_writer(stream, parsed, each)
        bodies.append(stream.getvalue())
    seed = seed_topic(audit.bootstrap)
    seed.write([Record(body) for body in bodies])
    file = tmp_path / "visits.json"
    file.write_text("".join(json.dumps(each) + "\n" for each in visits))
    answer = audit.run(
        "topic-sink",
        left=side(seed),
        right={"kind": "files", "paths": [str(file)], "format": "json"},
        columns=["id:bigint", {"name": "city", "path": "to.city"}],
        registries=registries,
    )
    assert answer.outcome.findings == ()
    assert answer.verdict is Verdict.AGREE
    assert answer.outcome.counts["rows_right"] == 10
