"""LakeSink reports records that a file or table cannot hold, and writes the others once."""

import csv
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.expressions import EqualTo

from pyconnect_api import (
    BYTES_SCHEMA,
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConnectException,
    DataException,
    Schema,
    SchemaBuilder,
    SinkRecord,
    Struct,
    TopicPartition,
    decimal_builder,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.sink import LakeSinkConnector, LakeSinkTask
from pyconnect_connectors.lake.storage import Storage
from pyconnect_connectors.odd_values import OddValueException
from tests.connectors.lake import test_files, test_tables
from tests.connectors.lake.rows import TOPIC, send
from tests.connectors.schemas import fields
from tests.support.cases import cases

FORMATS = ("parquet", "json", "csv", "iceberg")


def started(
    lake: Path,
    written: str,
    settings: Mapping[str, str] | None = None,
    partition: TopicPartition = TOPIC,
) -> SinkHarness:
    make = test_tables if written == "iceberg" else test_files
    props = make.props(lake, {"format.class": written, **(settings or {})})
    reporter = RecordingReporter()
    sink = SinkHarness(LakeSinkTask, props, reporter=reporter, partitions=[partition])
    sink.start()
    return sink


def rows(lake: Path, written: str) -> list[dict[str, Any]]:
    """Return the rows that a reader of the lake finds."""
    if written == "iceberg":
        return list(test_tables.table(lake).scan().to_arrow().to_pylist())
    found: list[dict[str, Any]] = []
    for path in test_files.files(lake).values():
        if written == "parquet":
            found += pq.read_table(path).to_pylist()
        elif written == "json":
            found += map(json.loads, path.read_text().splitlines())
        else:
            with path.open(newline="") as text:
                found += csv.DictReader(text)
    return found


def ids(lake: Path, written: str) -> list[int]:
    return sorted(int(row["id"]) for row in rows(lake, written))


def reports(sink: SinkHarness) -> list[tuple[SinkRecord, BaseException]]:
    reporter = sink.context.errant_record_reporter()
    assert isinstance(reporter, RecordingReporter)
    return list(reporter.reports)


ROW = fields(id=INT64_SCHEMA, text=OPTIONAL_STRING_SCHEMA, price=decimal_builder(2).optional())


def odd(number: int, **values: object) -> Struct:
    members = {"text": "x", "price": Decimal("1.50"), **values}
    return Struct.of_checked(ROW, [number, members["text"], members["price"]])


@cases("written", *FORMATS)
@cases(
    "values, column, kind",
    ({"text": "secret\ud800"}, "text", "a lone surrogate"),
    ({"price": Decimal("9" * 40 + ".99")}, "price", "a number of more than 38 digits"),
    ({"price": Decimal("NaN")}, "price", "NaN or infinity"),
)
def test_a_record_that_does_not_fit_is_reported_and_the_others_are_written_once(
    tmp_path: Path, written: str, values: dict[str, object], column: str, kind: str
) -> None:
    """Records that fit are written once, even if the task dies between a report and a commit."""
    if written == "json" and kind.startswith("a number"):
        pytest.skip("JSON has numbers of any length")
    sink = started(tmp_path, written, {"flush.size": "2"})
    for number in range(5):
        value = odd(number, **values) if number in (1, 2) else odd(number)
        sink.send(value, value_schema=ROW)
    sink.deliver()
    found = reports(sink)
    assert [record.kafka_offset for record, _ in found] == [1, 2]
    error = found[0][1]
    assert isinstance(error, OddValueException)
    assert (error.column, error.row) == (column, "topic-0@1")
    assert error.kind.startswith(kind)
    assert error.place.startswith("table lake.topic" if written == "iceberg" else "file topics/")
    assert "secret" not in str(error)
    assert "999" not in str(error)
    sink.crash()
    sink.deliver()
    sink.stop()
    assert ids(tmp_path, written) == [0, 3, 4]
    assert sink.committed == {TOPIC: 5}


@cases("written", *FORMATS)
def test_a_value_that_does_not_fit_may_be_null(tmp_path: Path, written: str) -> None:
    """With the policy `null` the rest of the record is written, and nothing is reported."""
    sink = started(tmp_path, written, {"values.out.of.range": "null"})
    sink.send(odd(1, text="\udfff", price=Decimal("Infinity")), value_schema=ROW)
    sink.send(odd(2), value_schema=ROW)
    sink.deliver()
    sink.stop()
    assert not reports(sink)
    first, second = rows(tmp_path, written)
    assert (first["text"] or None, first["price"] or None) == (None, None)
    assert second["text"] == "x"


@cases(
    "value",
    float("nan"),
    {"a": [1.5, float("inf")]},
    {"a": {"b": Decimal("NaN")}},
    "\ud800",
    {"\ud800": 1},
    {1: "a", "1": "b"},
    {(1, 2): "a"},
    object(),
)
def test_json_refuses_what_it_has_not(tmp_path: Path, value: object) -> None:
    """A value is reported if JSON would change it: infinity, a Python object, a double name."""
    sink = started(tmp_path, "json")
    sink.send(value)
    sink.send(5)
    sink.deliver()
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 0
    assert isinstance(error, OddValueException)
    (path,) = test_files.files(tmp_path).values()
    assert path.read_text() == "5\n"


def test_json_has_a_form_for_every_number_and_key(tmp_path: Path) -> None:
    """Numbers keep their digits in JSON, and keys of maps become texts."""
    number = Decimal("12345678901234567890.123456789")
    value = {
        "n": [number, Decimal("1E+400"), 2**70, 1e300],
        True: 1,
        7: 2,
        date(2024, 6, 1): 3,
        b"\xff": 4,
        Decimal("1E+2"): 5,
        datetime(2024, 6, 1, tzinfo=UTC): 6,
    }
    sink = started(tmp_path, "json")
    sink.send(value)
    sink.deliver()
    sink.stop()
    assert not reports(sink)
    (path,) = test_files.files(tmp_path).values()
    assert path.read_text() == (
        '{"n":[12345678901234567890.123456789,1E+400,1180591620717411303424,1e300],"true":1,"7":2,'
        '"2024-06-01":3,"/w==":4,"100":5,"2024-06-01T00:00:00Z":6}\n'
    )


def test_a_float_of_a_struct_may_be_nan_in_parquet_only(tmp_path: Path) -> None:
    """NaN in a struct's float is written to Parquet, and refused for JSON."""
    schema = fields(id=SchemaBuilder.float64())
    for written in ("parquet", "json"):
        sink = started(tmp_path / written, written)
        sink.send(Struct(schema).put("id", float("nan")), value_schema=schema)
        sink.deliver()
        sink.stop()
        assert len(reports(sink)) == (written == "json")


NESTED = fields(
    id=INT64_SCHEMA,
    data=SchemaBuilder.array(SchemaBuilder.bytes()),
    days=SchemaBuilder.map(STRING_SCHEMA, decimal_builder(2)),
)


def test_nested_values_in_csv_are_those_of_json(tmp_path: Path) -> None:
    """Nested values in CSV are JSON, not Python's own texts."""
    sink = started(tmp_path, "csv")
    value = (
        Struct(NESTED).put("id", 1).put("data", [b"\x00\xff"]).put("days", {"a": Decimal("1.10")})
    )
    sink.send(value, value_schema=NESTED)
    sink.deliver()
    sink.stop()
    assert rows(tmp_path, "csv") == [{"id": "1", "data": '["AP8="]', "days": '{"a":1.10}'}]


def test_null_in_the_only_column_of_csv_is_a_row(tmp_path: Path) -> None:
    """A null in the only column of CSV is a row, although an empty line is not."""
    schema = fields(n=SchemaBuilder.int32().optional())
    sink = started(tmp_path, "csv")
    for value in (1, None, 3):
        sink.send(Struct(schema).put("n", value), value_schema=schema)
    sink.deliver()
    sink.stop()
    assert [row["n"] for row in rows(tmp_path, "csv")] == ["1", "", "3"]


def with_default(*, optional: bool) -> Schema:
    count = SchemaBuilder.int32().default(7)
    inner = fields(n=count.optional() if optional else count)
    builder = SchemaBuilder.struct().field("id", INT64_SCHEMA)
    return builder.field("n", inner.fields[0].schema).field("in", inner).build()


@cases("written", *FORMATS)
@cases("optional, expected", (True, None), (False, 7))
def test_null_stays_null_where_the_schema_allows_it(
    tmp_path: Path, written: str, *, optional: bool, expected: object
) -> None:
    """Null stays null in an optional field, since the converter has decided about defaults."""
    schema = with_default(optional=optional)
    inner = schema.fields[2].schema
    sink = started(tmp_path, written)
    sink.send(Struct.of_checked(schema, [1, None, Struct(inner)]), value_schema=schema)
    sink.deliver()
    sink.stop()
    (row,) = rows(tmp_path, written)
    text = "" if expected is None else str(expected)
    if written == "csv":
        assert row == {
            "id": "1",
            "n": text,
            "in": json.dumps({"n": expected}, separators=(",", ":")),
        }
    else:
        assert row == {"id": 1, "n": expected, "in": {"n": expected}}


@cases("written", "parquet", "iceberg")
def test_a_list_or_map_of_structs_that_is_null_is_not_empty(tmp_path: Path, written: str) -> None:
    """A null list or map of structs stays null in the files, which pyiceberg would make empty."""
    item = SchemaBuilder.struct().field("p", OPTIONAL_INT32_SCHEMA).optional().build()
    items = SchemaBuilder.array(item).optional().build()
    by_name = SchemaBuilder.map(STRING_SCHEMA, item).optional().build()
    within = SchemaBuilder.struct().field("l", items).optional().build()
    schema = fields(l=items, m=by_name, s=within)
    one = Struct(item).put("p", 1)
    sink = started(tmp_path, written)
    for value in (
        [None, None, Struct(within)],
        [[], {}, None],
        [[None, one], {"a": None, "b": one}, Struct(within).put("l", [one])],
        [None, {}, Struct(within).put("l", [])],
    ):
        sink.send(Struct.of_checked(schema, value), value_schema=schema)
    sink.deliver()
    sink.stop()
    (file,) = tmp_path.rglob("*.parquet")
    assert pq.ParquetFile(file).read().to_pylist() == [
        {"l": None, "m": None, "s": {"l": None}},
        {"l": [], "m": [], "s": None},
        {"l": [None, {"p": 1}], "m": [("a", None), ("b", {"p": 1})], "s": {"l": [{"p": 1}]}},
        {"l": None, "m": [], "s": {"l": []}},
    ]
    if written == "iceberg":
        # Readers find columns by the ids in the file.
        assert test_tables.table(tmp_path).scan().to_arrow().num_rows == 4


def test_null_without_a_default_does_not_get_into_a_required_column(tmp_path: Path) -> None:
    """Null for a required field is reported early: a finished file would be refused as a whole."""
    schema = fields(id=INT64_SCHEMA, n=INT32_SCHEMA)
    sink = started(tmp_path, "parquet")
    sink.send(Struct(schema).put("id", 1).put("n", 1), value_schema=schema)
    sink.send(Struct(schema).put("id", 2), value_schema=schema)
    sink.deliver()
    sink.stop()
    ((_, error),) = reports(sink)
    assert str(error).startswith("Column n of file topics/topic/partition=0/topic+0+0000000000")
    assert ids(tmp_path, "parquet") == [1]


@cases(
    "text, problem",
    ("x" * 300, "a name of 305 bytes; the limit is 255"),
    ("ü" * 90, "a name of 545 bytes"),
    ("\ud800", "a lone surrogate"),
)
def test_a_row_whose_directory_cannot_be_made_is_reported(
    tmp_path: Path, text: str, problem: str
) -> None:
    """A row whose directory has no valid name is reported, and the rows around it are written."""
    settings = {"partitioner.class": "field", "partition.field.name": "text", "flush.size": "10"}
    sink = started(tmp_path, "json", settings)
    for number, each in enumerate(("a", text, "b")):
        sink.send(odd(number, text=each), value_schema=ROW)
    sink.deliver()
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 1
    assert isinstance(error, DataException)
    assert problem in str(error)
    assert ids(tmp_path, "json") == [0, 2]


TEXT_ID = fields(id=STRING_SCHEMA)
FLOAT_ID = fields(id=FLOAT64_SCHEMA)
MORE = fields(id=INT64_SCHEMA, more=STRING_SCHEMA)


@cases("is_buffered", True, False)
@cases(
    "value, evolves, problem",
    (Struct(TEXT_ID).put("id", "x"), "true", "do not fit table lake.topic"),
    (Struct(TEXT_ID).put("id", "x"), "false", "do not fit table lake.topic"),
    (Struct(FLOAT_ID).put("id", 0.5), "true", "do not fit table lake.topic"),
    (Struct(FLOAT_ID).put("id", 0.5), "false", "do not fit table lake.topic"),
    (Struct(MORE).put("id", 1).put("more", "x"), "false", "lacks the columns more"),
)
def test_a_record_whose_schema_does_not_fit_the_table_is_reported(
    tmp_path: Path, value: Struct, evolves: str, problem: str, *, is_buffered: bool
) -> None:
    """A record is reported before it is among rows that fit, which would be refused with it."""
    settings = {"iceberg.tables.evolve-schema-enabled": evolves}
    if is_buffered and problem.startswith("lacks"):
        pytest.skip("a table that is made later has all columns")
    sink = started(tmp_path, "iceberg", settings)
    send(sink, range(2))
    sink.deliver()
    if not is_buffered:
        sink.restart()
    sink.send(value, value_schema=value.schema)
    send(sink, range(3, 5))
    sink.deliver()
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 2
    assert problem in str(error)
    assert ids(tmp_path, "iceberg") == [0, 1, 3, 4]


@cases("nested", False, True)
@cases("is_buffered", True, False)
@cases("evolves", "true", "false")
def test_the_scale_of_a_decimal_never_changes(
    tmp_path: Path, evolves: str, *, is_buffered: bool, nested: bool
) -> None:
    """Iceberg cannot change a scale: stored rows would have other values."""

    def send_price(scale: int, text: str) -> None:
        price = decimal_builder(scale).build()
        kind = SchemaBuilder.array(price).build() if nested else price
        schema = fields(price=kind)
        value = [Decimal(text)] if nested else Decimal(text)
        sink.send(Struct.of_checked(schema, [value]), value_schema=schema)

    settings = {"iceberg.tables.evolve-schema-enabled": evolves}
    sink = started(tmp_path, "iceberg", settings)
    send_price(2, "1.25")
    sink.deliver()
    if not is_buffered:
        sink.restart()
    for scale, text in ((4, "1.2345"), (4, "1.2300"), (0, "7")):
        send_price(scale, text)
    sink.deliver()
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 1
    assert "Column price of table lake.topic, topic-0@1: a number of more" in str(error)
    found = [price for row in rows(tmp_path, "iceberg") for price in [row["price"]]]
    expected = [Decimal("1.23"), Decimal("1.25"), Decimal("7.00")]
    assert sorted(price[0] if nested else price for price in found) == expected
    assert "decimal(38, 2)" in str(test_tables.table(tmp_path).schema())


def test_bytes_and_floats_that_a_table_cannot_hold_are_reported(tmp_path: Path) -> None:
    """The library would take bytes for text, put NaN into no partition, and -0.0 into two."""
    settings = {"iceberg.tables.default-partition-by": "size"}
    sink = started(tmp_path, "iceberg", settings)
    kinds = {"size": FLOAT64_SCHEMA, "text": STRING_SCHEMA}
    for text, size in (("a", 1.5), ("b", float("nan")), (b"\xff", 1.5), (b"c", 1.5), ("d", -0.0)):
        kinds["text"] = BYTES_SCHEMA if isinstance(text, bytes) else STRING_SCHEMA
        builder = SchemaBuilder.struct()
        for name, kind in kinds.items():
            builder.field(name, kind)
        schema = builder.build()
        sink.send(Struct.of_checked(schema, [size, text]), value_schema=schema)
        sink.deliver()
        if text == "a":
            sink.restart()
    sink.stop()
    assert rows(tmp_path, "iceberg") == [{"size": 1.5, "text": "a"}]
    texts = [(record.kafka_offset, str(error)) for record, error in reports(sink)]
    assert [offset for offset, _ in texts] == [1, 2, 3, 4]
    assert "Field size of topic-0@4 is -0.0, which is no partition" in texts[3][1]
    assert "Field size of topic-0@1 is NaN" in texts[0][1]
    assert "column text is string, and the rows have binary" in texts[1][1]


@cases("odd", -0.0, float("nan"))
def test_files_that_do_not_have_each_row_once_are_not_committed(tmp_path: Path, odd: float) -> None:
    """Files are checked at the commit, because a table may get another partitioning at any time."""
    size = fields(size=FLOAT64_SCHEMA)
    schema = SchemaBuilder.struct().field("in", size).build()
    sink = started(tmp_path, "iceberg")

    def send_sizes(*numbers: float) -> None:
        for number in numbers:
            row = Struct.of_checked(schema, [Struct.of_checked(size, [number])])
            sink.send(row, value_schema=schema)
        sink.deliver()

    send_sizes(1.5)
    sink.restart()
    send_sizes(odd)
    # The task has loaded the table before.
    with test_tables.table(tmp_path).update_spec() as update:
        update.add_identity("in.size")
    send_sizes(0.0)
    with pytest.raises(ConnectException, match=r"2 rows became \d in the files of lake\.topic"):
        sink.task._target.finish([TOPIC])  # type: ignore[attr-defined]
    assert rows(tmp_path, "iceberg") == [{"in": {"size": 1.5}}]
    sink = started(tmp_path, "iceberg")
    send_sizes(1.5, odd, 2.5)
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 1
    assert "Field in.size of topic-0@1 is" in str(error)
    assert [row["in"]["size"] for row in rows(tmp_path, "iceberg")] == [2.5, 1.5]


@cases("text", "x" * 15 + "\ud7ff" + "y", "\ud7ff" * 17, "\U0010ffff" * 17)
def test_the_statistics_of_a_text_are_texts(tmp_path: Path, text: str) -> None:
    """The upper bound of a text's statistics is valid Unicode, also after U+D7FF."""
    sink = started(tmp_path, "iceberg")
    sink.send(odd(1, text=text), value_schema=ROW)
    sink.deliver()
    sink.stop()
    found = test_tables.table(tmp_path).scan(row_filter=EqualTo("text", text)).to_arrow()
    assert found.column("text").to_pylist() == [text]


@cases("written", "parquet", "csv", "iceberg")
def test_a_value_that_has_no_columns_is_reported(tmp_path: Path, written: str) -> None:
    """A value without columns is reported, because its row would be lost."""
    empty = SchemaBuilder.struct().build()
    texts = SchemaBuilder.map(OPTIONAL_STRING_SCHEMA, STRING_SCHEMA).build()
    inner = fields(id=INT64_SCHEMA, v=empty)
    keyed = fields(id=INT64_SCHEMA, v=texts)
    sink = started(tmp_path, written)
    send(sink, range(1))
    values = [Struct(empty), Struct.of_checked(keyed, [1, {None: "x"}])]
    if written != "csv":
        values.append(Struct.of_checked(inner, [2, Struct(empty)]))
    for value in values:
        sink.send(value, value_schema=value.schema)
    sink.deliver()
    sink.stop()
    assert len(reports(sink)) == len(values)
    assert ids(tmp_path, written) == [0]


@cases("exists", True, False)
def test_a_row_whose_partition_of_a_table_cannot_be_made_is_reported(
    tmp_path: Path, *, exists: bool
) -> None:
    """The name of an Iceberg partition's directory has a limit too."""
    settings = {"iceberg.tables.default-partition-by": "text"}
    sink = started(tmp_path, "iceberg", settings)
    sink.send(odd(0), value_schema=ROW)
    if exists:
        sink.deliver()
        sink.restart()
    sink.send(odd(1, text="ü" * 50), value_schema=ROW)
    sink.send(odd(2, text="ü/" * 20), value_schema=ROW)
    sink.send(odd(3, text=None), value_schema=ROW)
    sink.deliver()
    sink.stop()
    ((record, error),) = reports(sink)
    assert record.kafka_offset == 1
    assert "Field text of topic-0@1 would name a directory by 305 bytes" in str(error)
    assert ids(tmp_path, "iceberg") == [0, 2, 3]


@cases(
    "partition_by, names, problem",
    ("b", ("a",), "iceberg.tables.default-partition-by names b, which the rows lack"),
    ("day(b)", ("b",), "default-partition-by has day(b), and the field is string"),
    ("b", ("a b", "a_x20b", "b"), "multiple fields for name a_x20b"),
)
def test_a_record_that_a_new_table_cannot_have_is_reported(
    tmp_path: Path, partition_by: str, names: tuple[str, ...], problem: str
) -> None:
    """The record is reported before the table is created, since a later one may have the field."""
    sink = started(tmp_path, "iceberg", {"iceberg.tables.default-partition-by": partition_by})
    for each in (names, ("a", "b")):
        schema = fields(**dict.fromkeys(each, STRING_SCHEMA))
        sink.send(Struct.of_checked(schema, list(each)), value_schema=schema)
    sink.deliver()
    sink.stop()
    offsets = [record.kafka_offset for record, _ in reports(sink)]
    assert offsets == ([0, 1] if partition_by == "day(b)" else [0])
    assert problem in str(reports(sink)[0][1])


@cases("path", "../a", "topics/../a", "topics//a", "topics/./a", "topics/x\0")
def test_a_topic_is_not_a_way_out_of_the_lake(tmp_path: Path, path: str) -> None:
    """The name of a topic cannot lead out of the lake; a transformation can make any name."""
    settings = SinkSettings.parse(test_files.props(tmp_path))
    storage = Storage.open(settings.location, writes=True)
    storage.check_path("topics/a.json")
    with pytest.raises(DataException, match="not below the lake"):
        storage.check_path(path)


def test_a_path_that_is_too_long_is_not_tried_again(tmp_path: Path) -> None:
    """A path that is too long is reported, and not tried again."""
    name = "n" * 300
    config = LakeSinkConnector().validate(test_files.props(tmp_path, {"name": name}))
    (text,) = [m for value in config.config_values for m in value.error_messages]
    assert "too long" in text


def test_points_of_a_topic_are_not_namespaces(tmp_path: Path) -> None:
    """The default of `iceberg.tables` takes a topic's name with points as one name."""
    partition = TopicPartition("shop.orders.v1", 0)
    sink = started(tmp_path, "iceberg", {"iceberg.tables": "default.${topic}"}, partition)
    send(sink, range(3), partition=partition)
    sink.deliver()
    sink.stop()
    assert len(test_tables.table(tmp_path, "default.shop_orders_v1").scan().to_arrow()) == 3
    assert LakeSinkConnector().alter_offsets(sink.props, {partition: None})


@cases(
    "tables, kind, is_refused",
    ("a.b.${topic}", "sql", True),
    ("${topic}", "sql", True),
    ("a.", "sql", True),
    (".a", "sql", True),
    ("a.b.${topic}", "rest", False),
    ("a.${topic}", "sql", False),
)
def test_tables_that_a_catalog_cannot_have_are_refused_at_creation(
    tmp_path: Path, tables: str, kind: str, *, is_refused: bool
) -> None:
    """Validation refuses namespaces of several levels for a catalog in a database."""
    settings = {
        "iceberg.tables": tables,
        "iceberg.catalog.type": kind,
        "iceberg.catalog.uri": f"sqlite:///{tmp_path}/catalog.db" if kind == "sql" else "http://[",
    }
    config = LakeSinkConnector().validate(test_tables.props(tmp_path, settings))
    wrong = [value.name for value in config.config_values if value.error_messages]
    assert ("iceberg.tables" in wrong) == is_refused


def test_without_a_reporter_the_task_fails_with_the_name_of_the_column(tmp_path: Path) -> None:
    """Without a reporter the task fails with the column's name, and writes the rows before."""
    sink = SinkHarness(LakeSinkTask, test_files.props(tmp_path, {"flush.size": "1"}))
    sink.start()
    sink.send(odd(1), value_schema=ROW)
    sink.send(odd(2, text="\ud800"), value_schema=ROW)
    with pytest.raises(ConnectException, match=r"^Column text of file .*, topic-0@1: a lone"):
        sink.deliver()
