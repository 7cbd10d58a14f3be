"""Statements of SqlSink for databases that no test starts."""

import pytest
from sqlalchemy import Column, Dialect, Integer, MetaData, String, Table
from sqlalchemy.dialects import mssql, mysql, postgresql, sqlite
from sqlalchemy.dialects.mysql import pymysql

from pyconnect_api import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    DataException,
    SchemaBuilder,
    SinkRecord,
    Struct,
)
from pyconnect_connectors.sql.rows import Shape, runs, shape_of
from pyconnect_connectors.sql.settings import InsertMode, SinkSettings
from tests.support.cases import cases

SCHEMA = SchemaBuilder.struct().field("id", INT32_SCHEMA).field("item", STRING_SCHEMA).build()
TABLE = Table("t", MetaData(), Column("id", Integer, primary_key=True), Column("item", String))
SETTINGS = SinkSettings.parse(
    {
        "name": "s",
        "connection.url": "sqlite://",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
    }
)


def record(offset: int, value: object, topic: str = "t") -> SinkRecord:
    schema = SCHEMA if isinstance(value, Struct) else None
    return SinkRecord(topic, 0, None, None, schema, value, offset)


def shape() -> Shape:
    return shape_of(record(0, Struct(SCHEMA).put("id", 1).put("item", "a")), SETTINGS)


@cases(
    "dialect, text",
    (mysql.dialect(), "ON DUPLICATE KEY UPDATE item = VALUES(item)"),
    (postgresql.dialect(), "ON CONFLICT (id) DO UPDATE SET item = excluded.item"),
    (sqlite.dialect(), "ON CONFLICT (id) DO UPDATE SET item = excluded.item"),
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_upsert_is_the_databases_own(dialect: Dialect, text: str) -> None:
    """Each database has its own upsert, because standard SQL has none that all understand."""
    statement = shape().statement(TABLE, InsertMode.UPSERT, dialect.name)
    assert text in str(statement.compile(dialect=dialect))


def test_a_database_without_upsert_is_refused() -> None:
    """A database without upsert is refused: a replacement would not be atomic."""
    with pytest.raises(DataException, match="upsert is not supported for mssql"):
        shape().statement(TABLE, InsertMode.UPSERT, mssql.dialect().name)


def test_a_record_without_a_field_has_no_row() -> None:
    """Databases differ in their reading of a statement without columns."""
    empty = SinkRecord("t", 0, None, None, SchemaBuilder.struct().build(), {}, 0)
    with pytest.raises(DataException, match="no fields, and so no columns"):
        shape_of(empty, SinkSettings.parse({"name": "s", "connection.url": "sqlite://"}))


def test_runs_keep_the_order_of_records() -> None:
    """A tombstone, another topic or another shape ends a run."""
    struct = Struct(SCHEMA).put("id", 1).put("item", "a")
    records = [
        record(0, struct),
        record(1, struct),
        record(2, None),
        record(3, {"a": 1}),
        record(4, {"a": 2}),
        record(5, {"b": 2}),
        record(6, {"b": 2}, topic="u"),
    ]
    found = [[item.kafka_offset for item in run] for run in runs(records)]
    assert found == [[0, 1], [2], [3, 4], [5], [6]]


def test_an_upsert_of_mariadb_escapes_each_name_once() -> None:
    """Percent signs are doubled once for the driver, which halves them, and backticks once."""
    names = ("id%", "a%s`")
    table = Table("t%", MetaData(), *(Column(name, Integer) for name in names))
    shape = Shape(columns=dict.fromkeys(names), keys=names[:1], deletes=False, take=lambda _: ())
    statement = shape.statement(table, InsertMode.UPSERT, "mysql")
    compiled = str(statement.compile(dialect=pymysql.dialect()))  # type: ignore[no-untyped-call]
    assert compiled % (1, 2) == (
        "INSERT INTO `t%` (`id%`, `a%s```) VALUES (1, 2) "
        "ON DUPLICATE KEY UPDATE `a%s``` = VALUES(`a%s```)"
    )
