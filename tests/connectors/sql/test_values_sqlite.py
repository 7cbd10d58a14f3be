"""Odd values of SQLite, which stores any value in any column, and times in any form."""

import logging
import sqlite3
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from pyconnect_api import (
    OPTIONAL_INT32_SCHEMA,
    ConnectException,
    DataException,
    SchemaBuilder,
    SourceRecord,
    Struct,
    decimal_builder,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness, SourceHarness
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_connectors.sql.source import SqlSourceTask
from tests.connectors.schemas import fields
from tests.support.cases import cases


def source(file: Path, **settings: str) -> SourceHarness:
    config = {
        "connection.url": f"sqlite:///{file}",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "poll.interval.ms": "1",
        "tables": "odd",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    harness = SourceHarness(SqlSourceTask, config)
    harness.start()
    return harness


def sink(file: Path, *reporters: RecordingReporter, **settings: str) -> SinkHarness:
    config = {
        "name": "to-sqlite",
        "connection.url": f"sqlite:///{file}",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    harness = SinkHarness(SqlSinkTask, config, reporter=next(iter(reporters), None))
    harness.start()
    return harness


def field(records: list[SourceRecord], name: str) -> list[object]:
    return [record.value.get(name) for record in records if isinstance(record.value, Struct)]


ODD: list[tuple[str, object, object, str]] = [
    ("INTEGER", 1, "many", "a text of another form"),
    ("INTEGER", 1, 1.5, "a number"),
    ("INTEGER", 1, b"x", "a value of bytes"),
    ("BOOLEAN", 1, 2, "a whole number"),
    ("BOOLEAN", 0, "true", "a text"),
    ("DOUBLE", 1.5, "x", "a text"),
    ("DECIMAL(10, 2)", 1.5, "x", "a text"),
    ("DECIMAL(10, 2)", 1.5, 1.239, "a number"),
    ("DECIMAL(10, 2)", 1.5, float("inf"), "a number"),
    ("DATE", "2024-01-01", "2024-02-30", "a date that does not exist"),
    ("DATE", "2024-01-01", "2024-01-01 10:00:00", "a date"),
    ("DATE", "2024-01-01", 20240101, "a whole number"),
    ("TIME", "10:00:00", "25:30:00", "a time that is negative or longer than a day"),
    ("TIME", "10:00:00", "24:00:00", "the end of a day"),
    ("TIMESTAMP", "2024-01-01 00:00:00", "soon", "a text"),
    ("TIMESTAMP", "2024-01-01 00:00:00", 1700000000, "a whole number"),
    ("TEXT", "a", b"\xff", "a value of bytes"),
    ("BLOB", b"a", "a", "a text"),
    ("", "a", b"a", "a value of bytes"),
]


@cases("kind, plain, odd, text", *ODD)
def test_an_odd_value_follows_the_policy(
    file: Path,
    database: sqlite3.Connection,
    kind: str,
    plain: object,
    odd: object,
    text: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An odd value fails after earlier rows, is left out and logged, is null, or is a text."""
    database.execute(f"CREATE TABLE odd (id INTEGER PRIMARY KEY, v {kind})")
    for value in (plain, odd, plain):
        database.execute("INSERT INTO odd (v) VALUES (?)", [value])
    harness = source(file)
    assert field(harness.poll(), "id") == [1]
    with pytest.raises(OddValueException, match=f"Column v of table odd, row id=2: {text}"):
        harness.poll()
    harness.stop()
    harness = source(file, errors_tolerance="all")
    with caplog.at_level(logging.WARNING):
        assert field(harness.run(2), "id") == [1, 3]
    assert any("row id=2" in getattr(entry, "reason", "") for entry in caplog.records)
    harness.stop()
    harness = source(file, values_out_of_range="null")
    first, none, last = field(harness.run(3), "v")
    assert none is None
    assert first == last is not None
    harness.stop()
    if kind != "BLOB":
        harness = source(file, values_out_of_range="text")
        found = field(harness.run(3), "v")
        expected = [plain, f"X'{odd.hex().upper()}'" if isinstance(odd, bytes) else odd, plain]
        assert found == [value if isinstance(value, str) else repr(value) for value in expected]
        harness.stop()


@cases("data", b"\xff", b"\xed\xa0\x80")
def test_a_text_that_is_not_utf_8_is_the_fault_of_its_row(
    file: Path, database: sqlite3.Connection, data: bytes
) -> None:
    """A text that is not UTF-8, surrogates included, fails its row; the other rows arrive."""
    database.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, v TEXT)")
    for value in (b"a", data, b"b"):
        database.execute("INSERT INTO odd (v) VALUES (CAST(? AS TEXT))", [value])
    harness = source(file, errors_tolerance="all")
    assert field(harness.run(2), "v") == ["a", "b"]
    harness.stop()
    harness = source(file)
    harness.poll()
    with pytest.raises(OddValueException, match="row id=2: a text that is not valid Unicode"):
        harness.poll()
    harness.stop()


def ago(form: str, **age: float) -> str:
    return (datetime.now(UTC) - timedelta(**age)).strftime(form)


def test_times_of_all_forms_are_compared_as_instants(
    file: Path, database: sqlite3.Connection
) -> None:
    """Times with a T, a zone, a fraction or none of them are in one order, and future ones wait."""
    later = (datetime.now(UTC) + timedelta(minutes=30)).strftime
    database.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, at DATETIME)")
    times = [
        ago("%Y-%m-%dT%H:%M:%SZ", days=2),
        ago("%Y-%m-%d %H:%M:%S", minutes=50),
        ago("%Y-%m-%dT%H:%M:%SZ", minutes=40),
        ago("%Y-%m-%dT%H:%M:%S.5+00:00", minutes=30),
        (datetime.now(UTC) - timedelta(minutes=20)).astimezone().isoformat(),
        ago("%Y-%m-%d %H:%M:%S.25", minutes=10),
        ago("%Y%m%dT%H%M%S+0000", minutes=5),
        later("%Y-%m-%dT%H:%M:%SZ"),
        later("%Y-%m-%d %H:%M:%S"),
    ]
    for time in reversed(times):
        database.execute("INSERT INTO odd (at) VALUES (?)", [time])
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = source(file, batch_max_rows="2", **both)
    seen: list[object] = []
    while len(seen) < 7:
        seen += field(harness.run(1), "id")
        harness.commit()
        harness.restart()
    assert seen == [9, 8, 7, 6, 5, 4, 3]
    assert all(harness.poll() == [] for _ in range(5))
    harness.stop()


def test_an_offset_between_zones_counts(file: Path, database: sqlite3.Connection) -> None:
    """10:00+02:00 is before 09:00Z, and a time without a zone is of `db.timezone`."""
    database.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, at TEXT)")
    times = ["2024-06-01T10:00:00+02:00", "2024-06-01T09:00:00Z", "2024-06-01 10:30:00"]
    database.executemany("INSERT INTO odd (at) VALUES (?)", [[time] for time in times])
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = source(file, db_timezone="Europe/Berlin", **both)
    assert field(harness.run(3), "id") == [1, 3, 2]
    harness.stop()
    harness = source(file, mode="timestamp", timestamp_column_name="at")
    assert field(harness.run(3), "id") == [1, 2, 3]
    harness.stop()


def test_times_of_other_forms_that_come_later_are_found(
    file: Path, database: sqlite3.Connection
) -> None:
    """After times of other forms appear, the position stays, and no row comes twice."""
    database.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, at DATETIME)")
    database.execute("INSERT INTO odd (at) VALUES (?)", [ago("%Y-%m-%d %H:%M:%S", minutes=30)])
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = source(file, **both)
    assert field(harness.run(1), "id") == [1]
    database.execute("INSERT INTO odd (at) VALUES (?)", [ago("%Y-%m-%dT%H:%M:%SZ", minutes=20)])
    database.execute("INSERT INTO odd (at) VALUES (?)", [ago("%Y-%m-%d %H:%M:%S", minutes=10)])
    assert field(harness.run(2), "id") == [2, 3]
    database.execute("DELETE FROM odd WHERE id = 2")
    database.execute("INSERT INTO odd (at) VALUES (?)", [ago("%Y-%m-%d %H:%M:%S", minutes=5)])
    assert field(harness.run(1), "id") == [4]
    harness.commit()
    harness.restart()
    assert all(harness.poll() == [] for _ in range(5))
    harness.stop()


@cases("odd", "yesterday", 1700000000, b"x")
def test_a_time_without_an_order_is_an_error_or_logged(
    file: Path, database: sqlite3.Connection, odd: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A row whose time is not valid is an error, or logged: it has no place among the others."""
    database.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, at DATETIME)")
    for value in ("2024-01-01 00:00:00", odd):
        database.execute("INSERT INTO odd (at) VALUES (?)", [value])
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = source(file, **both)
    with pytest.raises(OddValueException, match="Column at of table odd, row id=2"):
        harness.poll()
    harness = source(file, errors_tolerance="all", **both)
    with caplog.at_level(logging.WARNING):
        assert field(harness.run(1), "id") == [1]
    assert any("row id=2" in getattr(entry, "reason", "") for entry in caplog.records)
    harness.stop()


@cases(
    "column, builder, value, text",
    ("DOUBLE", SchemaBuilder.float64(), float("nan"), "NaN"),
    ("", SchemaBuilder.float64(), float("nan"), "NaN"),
    ("INTEGER", SchemaBuilder.string(), "five", "not a whole number"),
    ("INTEGER", SchemaBuilder.float64(), 1.5, "fraction"),
    ("INTEGER", decimal_builder(0), Decimal(2**63), "more than 64 bits"),
    ("BOOLEAN", SchemaBuilder.int32(), 2, "neither true nor false"),
    ("DECIMAL(38, 10)", decimal_builder(4), Decimal("12345678901234567890.1234"), "more digits"),
    ("TEXT", SchemaBuilder.string(), "\ud800", "not valid Unicode"),
    ("TEXT", SchemaBuilder.bytes(), b"a", "not a text"),
    ("BLOB", SchemaBuilder.string(), "a", "not bytes"),
    ("DATE", SchemaBuilder.string(), "soon", "not a date"),
    ("TIMESTAMP", SchemaBuilder.int64(), 1000, "not a time"),
    ("JSON", SchemaBuilder.string(), "{", "another type|not JSON"),
    ("JSON", SchemaBuilder.string(), "12345678901234567890.123456789", "more digits"),
    ("TEXT", SchemaBuilder.array(SchemaBuilder.float64().build()), [float("nan")], "another type"),
)
def test_a_value_that_would_change_is_refused_and_reported(
    file: Path,
    database: sqlite3.Connection,
    column: str,
    builder: SchemaBuilder,
    value: object,
    text: str,
) -> None:
    """SQLite would change the value without an error; the other rows are written."""
    database.execute(f"CREATE TABLE topic (id INTEGER, v {column})")
    schema = SchemaBuilder.struct().field("id", SchemaBuilder.int32())
    schema.field("v", builder.optional().build())
    built = schema.build()
    for guarantee in ("exactly-once", "at-least-once"):
        database.execute("DELETE FROM topic")
        reporter = RecordingReporter()
        harness = sink(file, reporter, delivery_guarantee=guarantee, name=guarantee)
        for number in range(3):
            row = [number, value if number == 1 else None]
            harness.send(Struct.of_checked(built, row), value_schema=built)
        harness.deliver()
        ((record, error),) = reporter.reports
        assert record.kafka_offset == 1
        with pytest.raises(DataException, match=text):
            raise error
        assert "topic-0@1" in str(error)
        assert database.execute("SELECT id FROM topic ORDER BY id").fetchall() == [(0,), (2,)]
        harness.stop()


def test_what_was_read_can_be_written_into_a_table_of_the_same_types(
    file: Path, database: sqlite3.Connection
) -> None:
    """Each value keeps its storage class and its digits."""
    columns = (
        "id INTEGER PRIMARY KEY, flag BOOLEAN, weight DOUBLE, price DECIMAL(10, 2), free NUMERIC,"
        " day DATE, clock TIME, at TIMESTAMP, note TEXT, raw BLOB, doc JSON"
    )
    for table in ("odd", "topic"):
        database.execute(f"CREATE TABLE {table} ({columns})")
    database.execute(
        "INSERT INTO odd VALUES (1, 1, 9e999, 12.5, 9223372036854775807, '0001-01-01',"
        " '23:59:59.999000', '9999-12-31 23:59:59.999000', 'ü', x'00ff', '{\"a\": 1.10}')"
    )
    database.execute("INSERT INTO odd (id) VALUES (2)")
    harness = source(file)
    records = harness.run(2)
    writer = sink(file)
    for record in records:
        writer.send(record.value, value_schema=record.value_schema)
    writer.deliver()
    query = "SELECT * FROM {} ORDER BY id"
    assert (
        database.execute(query.format("topic")).fetchall()
        == database.execute(query.format("odd")).fetchall()
    )
    writer.stop()
    harness.stop()


@cases("kind, odd", ("integer", "x"), ("text", b"0"), ("numeric(5,2)", "x"))
def test_a_growing_column_never_hides_the_rows_behind_a_value_of_another_type(
    file: Path, database: sqlite3.Connection, kind: str, odd: object
) -> None:
    """SQLite sorts bytes after texts and texts after numbers: a task would find nothing more."""
    database.execute(f"CREATE TABLE odd (id {kind})")
    database.executemany("INSERT INTO odd VALUES (?)", [("1",), (odd,)])
    harness = source(file, errors_tolerance="all")
    assert len(harness.run(1)) == 1
    database.execute("INSERT INTO odd VALUES ('2')")
    with pytest.raises(ConnectException, match="Column id of table odd has NaN, infinity or a"):
        harness.run(1)


@cases("kind, offset", ("integer", "x"), ("integer", "5x"), ("text", 5))
def test_an_offset_of_another_type_than_the_column_is_refused(
    file: Path, database: sqlite3.Connection, kind: str, offset: object
) -> None:
    """After such an offset SQLite would find no row, and MariaDB all of them again."""
    database.execute(f"CREATE TABLE odd (id {kind})")
    database.execute("INSERT INTO odd VALUES ('7')")
    harness = source(file)
    harness.offsets.store({"table": "odd"}, {"incrementing": offset})
    with pytest.raises(ConnectException, match="or its offset is one: no row is found behind it"):
        harness.poll()


def test_null_never_becomes_the_next_number(file: Path, database: sqlite3.Connection) -> None:
    """Null is refused for an INTEGER PRIMARY KEY, which SQLite would number by itself."""
    database.execute("CREATE TABLE topic (id INTEGER PRIMARY KEY, v text)")
    schema = fields(id=OPTIONAL_INT32_SCHEMA)
    reporter = RecordingReporter()
    harness = sink(file, reporter)
    for number in (None, 1):
        harness.send(Struct(schema).put("id", number), value_schema=schema)
    harness.deliver()
    harness.stop()
    assert database.execute("SELECT id FROM topic").fetchall() == [(1,)]
    ((record, error),) = reporter.reports
    assert record.kafka_offset == 0
    assert "null, which would become the next number, does not fit INTEGER" in str(error)
