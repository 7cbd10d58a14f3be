"""Records as rows: Connect's JSON and a table's columns have the same tokens for every type."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import NoReturn, cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_api import (
    Schema,
    SchemaBuilder,
    Struct,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_reconcile.compares.columns import columns_of
from pyconnect_reconcile.data_sides import MARK, TOKENS, RowRule, TableSide
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.spec import ColumnRule
from pyconnect_reconcile.stores.sqlite import copied
from pyconnect_reconcile.values import rows
from pyconnect_reconcile.values.kinds import Compared
from pyconnect_reconcile.values.normal import Columns
from pyconnect_reconcile.values.rows import contents_of, record_content, row_plan
from pyconnect_reconcile.values.table_rows import table_content

pytestmark = pytest.mark.spark

RECORD = "topic string, partition int, offset bigint, key binary, value binary"


def topic(spark: SparkSession, *records: tuple[bytes | None, bytes | None]) -> DataFrame:
    rows = [("t", 0, offset, key, value) for offset, (key, value) in enumerate(records)]
    return spark.createDataFrame(rows, RECORD)


def compared(
    records: DataFrame, table: DataFrame, rule: RowRule, *, zone: str = "UTC", writes: bool = True
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]], Sequence[str]]:
    """Return the rows of tokens of both sides, and the columns that no record has."""
    plan = row_plan(records, rule, columns_of([table]), writes=writes)
    left, right = record_content(records, plan), table_content(table, plan, zone)
    rows = left.frame.select(*left.columns, left.unparsable.alias("wrong")).collect()
    assert not any(row[-1] for row in rows)
    others = right.frame.select(*right.columns).collect()
    return [tuple(row)[:-2] for row in rows], [tuple(row)[:-1] for row in others], plan.left_out


def number(digits: str) -> str:
    text = format(Decimal(digits), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MARK}{text}"


def written(schema: Schema, *values: object, enabled: bool = True) -> bytes:
    converter = JsonConverter()
    converter.configure({"schemas.enable": str(enabled).lower()}, False)
    content = converter.from_connect_data(
        "t", None, schema, Struct.of_checked(schema, list(values))
    )
    assert content is not None
    return bytes(content)


ROW = (
    SchemaBuilder.struct()
    .field("price", decimal_builder(2).optional().build())
    .field("at", timestamp_builder().optional().build())
    .field("day", date_builder().optional().build())
    .field("clock", time_builder().optional().build())
    .field("raw", SchemaBuilder.bytes().optional().build())
    .field("ratio", SchemaBuilder.float32().optional().build())
    .field("paid", SchemaBuilder.boolean().optional().build())
    .field("doc", SchemaBuilder.string().optional().build())
    .field("note", SchemaBuilder.string().optional().build())
    .build()
)
AT = datetime(2024, 3, 31, 1, 30, 0, 123_000, tzinfo=UTC)
VALUES = (
    Decimal("-123456789012345678901234567890.12"), AT, date(1969, 12, 31), AT.time(),
    b"\x00\xff", 1 / 3, False, '{"a":[1],"b":1.5}', 'ü "quoted" {',
)  # fmt: skip
NULLS = (None,) * len(VALUES)


def test_decimals_in_base64_have_their_sign(spark: SparkSession) -> None:
    """Base64 decimals are two's complement in as many bytes as they need."""
    texts = ("0.00", "1.27", "1.28", "-1.28", "-1.29", "327.67", "-327.68")
    schema = SchemaBuilder.struct().field("price", decimal_builder(2)).build()
    table = spark.createDataFrame([(Decimal(text),) for text in texts], "price decimal(12,2)")
    records = topic(spark, *((None, written(schema, Decimal(text))) for text in texts))
    left, right, _ = compared(records, table, RowRule())
    assert left == right == [(number(text),) for text in texts]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_columns_of_any_type_are_compared(spark: SparkSession, zone: str) -> None:
    """All types of a database match their records; the zone is that of the connector."""
    local = {"UTC": "2024-03-31 01:30:00.123", "Europe/Berlin": "2024-03-31 03:30:00.123"}
    table = spark.sql(
        "SELECT CAST('-123456789012345678901234567890.12' AS DECIMAL(38, 2)) AS price,"
        f" TIMESTAMP_NTZ'{local[zone]}' AS at, DATE'1969-12-31' AS day,"
        " TIMESTAMP_NTZ'1970-01-01 01:30:00.123' AS clock, X'00ff' AS raw,"
        ' CAST(1 / 3 AS FLOAT) AS ratio, false AS paid, \'{"a":[1],"b":1.5}\' AS doc,'
        " 'ü \"quoted\" {' AS note, 5 AS added"
        " UNION ALL SELECT null, null, null, null, null, null, null, null, null, 5"
    )
    records = topic(spark, (None, written(ROW, *VALUES)), (None, written(ROW, *NULLS)))
    left, right, left_out = compared(records, table, RowRule(), zone=zone)
    assert left == right
    assert left_out == ("added",)


def test_a_sink_has_no_more_of_an_instant_than_its_record(spark: SparkSession) -> None:
    """Microseconds are a difference in a sink's table, but are cut in a source's table."""
    schema = SchemaBuilder.struct().field("at", timestamp_builder()).build()
    records = topic(spark, (None, written(schema, AT)))
    for query in ("TIMESTAMP_NTZ'2024-03-31 01:30:00.123456'", "'2024-03-31 01:30:00.123000789'"):
        table = spark.sql(f"SELECT {query} AS at")
        left, right, _ = compared(records, table, RowRule(), writes=True)
        assert left != right, query
        left, right, _ = compared(records, table, RowRule(), writes=False)
        assert left == right, query


def test_a_field_of_several_types_is_not_compared_as_one_of_them(spark: SparkSession) -> None:
    """A field with several types or scales is refused, except for integers of several lengths."""

    def struct(kind: Schema) -> Schema:
        return SchemaBuilder.struct().field("price", kind).build()

    versions: list[tuple[Schema, object]] = [
        (struct(decimal_builder(2).build()), Decimal("2.50")),
        (struct(decimal_builder(3).build()), Decimal("2.500")),
        (struct(SchemaBuilder.string().build()), "2.50"),
    ]
    table = spark.createDataFrame([(Decimal("2.50"), 1)], "price decimal(12,2), n int")
    for one, other in ((0, 1), (0, 2)):
        both = [(None, written(*versions[each])) for each in (one, other)]
        with pytest.raises(NotAuditable, match="several types for the field price"):
            row_plan(topic(spark, *both), RowRule(), columns_of([table]), writes=True)
        keys = topic(spark, *((value, b'{"n":1}') for _, value in both))
        with pytest.raises(NotAuditable, match="several types for the field price"):
            row_plan(keys, RowRule(of="key"), columns_of([table]), writes=True)
    whole = [struct(kind.build()) for kind in (SchemaBuilder.int32(), SchemaBuilder.int64())]
    left, right, _ = compared(
        topic(spark, *((None, written(schema, 2)) for schema in whole)),
        spark.createDataFrame([(2,), (2,)], "price bigint"),
        RowRule(),
    )
    assert left == right


def test_every_member_is_known_however_many_shapes_records_have(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan knows every member of the records, even if only one record has it."""
    values = [{f"m{bit}": 1 for bit in range(11) if n >> bit & 1} for n in range(2048)]
    values[77]["rare"] = [1]
    records = topic(spark, *((None, json.dumps(each).encode()) for each in values))
    contents = contents_of(records, RowRule())
    fields = contents["value"].fields
    assert fields.keys() == {"rare", *(f"m{bit}" for bit in range(11))}
    assert fields["rare"].type == "struct"
    monkeypatch.setattr(rows, "MOST_SEEN", 11)
    with pytest.raises(NotAuditable, match="more than 11 different"):
        contents_of(records, RowRule())


def test_a_short_float_may_be_a_double_in_the_table(spark: SparkSession) -> None:
    """REAL is a double in MariaDB, and its digits beyond the record's float do not count."""
    schema = SchemaBuilder.struct().field("ratio", SchemaBuilder.float32()).build()
    table = spark.createDataFrame([(0.3333333432674408,)], "ratio double")
    left, right, _ = compared(topic(spark, (None, written(schema, 1 / 3))), table, RowRule())
    assert left == right


def test_a_boolean_may_be_a_number_in_the_table(spark: SparkSession) -> None:
    """A number stands for a boolean in MariaDB, which has no boolean type."""
    schema = SchemaBuilder.struct().field("paid", SchemaBuilder.boolean()).build()
    table = spark.sql("SELECT CAST(1 AS TINYINT) AS paid")
    left, right, _ = compared(topic(spark, (None, written(schema, True))), table, RowRule())
    assert left == right == [(f"{MARK}t",)]


def test_texts_of_sqlite_are_compared_by_their_meaning(spark: SparkSession) -> None:
    """The records' schemas give the meaning of decimals and times that SQLite has as texts."""
    table = spark.createDataFrame([("2.5", "01:30:00.123000")], "price string, clock string")
    schema = (
        SchemaBuilder.struct()
        .field("price", decimal_builder(2))
        .field("clock", time_builder())
        .build()
    )
    records = topic(spark, (None, written(schema, Decimal("2.50"), AT.time())))
    left, right, _ = compared(records, table, RowRule())
    assert left == right == [(number("2.5"), f"{MARK}c5400123000")]


@pytest.mark.parametrize("writes", [True, False])
def test_without_schemas_the_table_gives_the_types(spark: SparkSession, writes: bool) -> None:
    """Without schemas, decimals are Base64 in a source's records and numbers in a sink's."""
    schema = SchemaBuilder.struct().field("price", decimal_builder(2)).build()
    value = b'{"price": 2.5}' if writes else written(schema, Decimal("2.50"), enabled=False)
    table = spark.createDataFrame([(Decimal("2.50"),)], "price decimal(12,2)")
    left, right, _ = compared(topic(spark, (None, value)), table, RowRule(), writes=writes)
    assert left == right == [(number("2.5"),)]


def test_columns_of_the_key_come_from_where_the_sink_has_them(spark: SparkSession) -> None:
    """Columns of the key are compared with key fields, the whole key, or the record's place."""
    table = spark.createDataFrame([(7, "x")], "id int, note string")
    value = json.dumps({"id": 1, "note": "x"}).encode()
    struct = topic(spark, (b'{"id": 7}', value))
    left, right, _ = compared(struct, table, RowRule(of="key"))
    assert left == right == [(number("7"), "x")]
    single = topic(spark, (b"7", value))
    left, right, _ = compared(single, table, RowRule(of="key", keys=("id",)))
    assert left == right
    placed = table.selectExpr("'t' AS a", "0 AS b", "0L AS c", "note")
    left, right, _ = compared(single, placed, RowRule(of="kafka", keys=("a", "b", "c")))
    assert left == right == [("t", number("0"), number("0"), "x")]


def test_a_text_is_one_column(spark: SparkSession) -> None:
    """A whole text is one value, even if it looks like JSON."""
    table = spark.createDataFrame([('{"a": 1}',), ("b",)], "line string")
    records = topic(spark, (None, b'{"a": 1}'), (None, b"b"))
    left, right, _ = compared(records, table, RowRule(whole="line"))
    assert left == right == [(f'{MARK}s{{"a": 1}}',), ("b",)]


def test_a_copy_of_sqlite_has_the_declared_types(spark: SparkSession, tmp_path: Path) -> None:
    """A copy of SQLite has the declared types, whatever the classes of its values."""
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection, connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER, price DECIMAL(9, 2), at DATETIME, day DATE, raw BLOB,"
            " paid BOOLEAN, ratio REAL, `a ``b.c` TEXT)"
        )
        connection.execute(
            "INSERT INTO t VALUES (1, '2.5', '2024-01-01 10:00:00.123', '2024-01-02', x'00ff', 1,"
            " 0.5, 'x'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        )
    side = TableSide(url=f"jdbc:sqlite:{tmp_path / 'a.db'}", table="t")
    frame = copied(side, tmp_path / "rows").read(spark, tmp_path / "rows")
    at = datetime(2024, 1, 1, 10, 0, 0, 123_000, tzinfo=UTC).replace(tzinfo=None)
    raw = bytearray(b"\x00\xff")
    assert [tuple(row) for row in frame.collect()] == [
        (1, Decimal("2.50"), at, date(2024, 1, 2), raw, True, 0.5, "x", None),
        (None,) * 9,
    ]
    assert frame.columns[-2:] == ["a `b.c", TOKENS]


PLACE = ("topic", "partition", "offset")
COLUMNS = (*((name, "string") for name in PLACE), ("line", "string"))


class Unread:
    """Records that must not be read, as this would cost a pass over the topic."""

    def where(self, _condition: str) -> NoReturn:
        raise AssertionError("the topic was read")


@pytest.mark.parametrize("of", ["value", "kafka"])
def test_a_topic_of_texts_is_not_read_for_a_plan(of: str) -> None:
    """A plan does not read records if values are whole texts and no column comes from the key."""
    table = Columns(
        all=tuple(
            Compared(rule=ColumnRule(name=name, path=name), kind=kind) for name, kind in COLUMNS
        ),
        closed=True,
    )
    rule = RowRule(of=of, keys=PLACE if of == "kafka" else (), whole="line")
    plan = row_plan(cast("DataFrame", Unread()), rule, table, writes=True)
    compared = {column.name: (column.of, column.kind) for column in plan.columns}
    assert compared["line"] == ("value", "text")
    assert plan.left_out == (() if of == "kafka" else PLACE)
