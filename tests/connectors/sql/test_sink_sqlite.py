"""SqlSink on SQLite: modes of writing, tables, offsets, fencing."""

import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pyconnect_api import (
    INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    SchemaBuilder,
    Struct,
    TopicPartition,
    date_builder,
    decimal_builder,
    timestamp_builder,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.sql import database as database_module
from pyconnect_connectors.sql.sink import SqlSinkConnector, SqlSinkTask
from tests.connectors.schemas import fields
from tests.support.cases import cases

PARTITION = TopicPartition("topic", 0)
KEY = fields(id=INT32_SCHEMA)
ORDER = fields(item=OPTIONAL_STRING_SCHEMA)


def started(config: dict[str, str]) -> SinkHarness:
    harness = SinkHarness(SqlSinkTask, config)
    harness.start()
    return harness


def props(file: Path, **settings: str) -> dict[str, str]:
    return {
        "name": "to-sql",
        "connection.url": f"sqlite:///{file}",
        "auto.create": "true",
        "retry.backoff.ms": "0",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def by_key(file: Path, **settings: str) -> dict[str, str]:
    keyed = {"insert_mode": "upsert", "pk_mode": "record_key", "delete_enabled": "true"}
    return props(file, **{**keyed, **settings})


def order(item: str | None) -> Struct:
    return Struct(ORDER).put("item", item)


def key(number: int) -> Struct:
    return Struct(KEY).put("id", number)


def send(sink: SinkHarness, number: int, item: str | None, schema: Schema = ORDER) -> None:
    sink.send(order(item), value_schema=schema, key=key(number), key_schema=KEY)


def rows(database: sqlite3.Connection, table: str = "topic") -> list[tuple[object, ...]]:
    return database.execute(f'SELECT * FROM "{table}" ORDER BY 1').fetchall()


def stored(database: sqlite3.Connection) -> list[tuple[object, ...]]:
    return database.execute(
        "SELECT topic, kafka_partition, epoch, next_offset FROM pyconnect_offsets"
    ).fetchall()


def test_rows_and_offsets_are_stored_together(file: Path, database: sqlite3.Connection) -> None:
    """The offset committed to Kafka equals the offset in the database."""
    sink = started(props(file))
    for item in "abc":
        sink.send(order(item), value_schema=ORDER)
    sink.deliver()
    assert rows(database) == [("a",), ("b",), ("c",)]
    assert stored(database) == [("topic", 0, 1, 3)]
    assert sink.commit() == {PARTITION: 3}
    sink.stop()


def test_a_new_task_continues_at_the_stored_offset(
    file: Path, database: sqlite3.Connection
) -> None:
    """A new task continues at the database's offset, even without a committed offset in Kafka."""
    sink = started(props(file))
    for item in "abcd":
        sink.send(order(item), value_schema=ORDER)
    sink.deliver(2)
    assert sink.committed == {}
    sink.crash()
    sink.deliver()
    assert rows(database) == [("a",), ("b",), ("c",), ("d",)]
    sink.stop()


def test_a_zombie_cannot_write_after_its_successor_opened(
    file: Path, database: sqlite3.Connection
) -> None:
    """A zombie's transaction finds another epoch, and stores nothing."""
    zombie, successor = (SinkHarness(SqlSinkTask, props(file)) for _ in range(2))
    zombie.start()
    for sink in (zombie, successor):
        for item in "ab":
            sink.send(order(item), value_schema=ORDER)
    zombie.deliver(1)
    successor.start()
    with pytest.raises(ConnectException, match="taken over by another task"):
        zombie.deliver()
    successor.deliver()
    assert rows(database) == [("a",), ("b",)]
    successor.stop()


def test_a_batch_without_known_outcome_is_not_written_twice(
    file: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is repeated after an unknown outcome is found to be stored."""
    sink = SinkHarness(SqlSinkTask, props(file))
    task = sink.start()
    assert isinstance(task, SqlSinkTask)
    sink.send(order("a"), value_schema=ORDER)
    failures = [sqlite3.OperationalError("the connection broke")]
    failures[0].sqlite_errorcode = sqlite3.SQLITE_BUSY

    def committed(dbapi_connection: sqlite3.Connection) -> None:
        dbapi_connection.commit()
        if failures and stored(database) == [("topic", 0, 1, 1)]:
            raise failures.pop()

    assert task._engine is not None
    monkeypatch.setattr(task._engine.dialect, "do_commit", committed)
    assert sink.deliver() == []
    assert failures == []
    assert rows(database) == [("a",)]
    sink.deliver()
    assert rows(database) == [("a",)]
    assert stored(database) == [("topic", 0, 1, 1)]
    sink.stop()


def test_without_the_guarantee_offsets_are_kafkas(file: Path, database: sqlite3.Connection) -> None:
    """With at-least-once delivery there is no table of offsets, and no fencing."""
    sink = started(props(file, delivery_guarantee="at-least-once"))
    sink.send(order("a"), value_schema=ORDER)
    sink.deliver()
    assert sink.commit() == {PARTITION: 1}
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert tables == [("topic",)]
    sink.stop()


def test_upserts_and_deletes_are_applied_in_order(file: Path, database: sqlite3.Connection) -> None:
    """The last record of a key counts, also within a batch."""
    sink = started(by_key(file))
    send(sink, 1, "a")
    send(sink, 2, "b")
    send(sink, 1, "c")
    sink.send(None, key=key(2), key_schema=KEY)
    send(sink, 3, "d")
    sink.send(None, key=key(3), key_schema=KEY)
    send(sink, 3, "e")
    sink.deliver()
    assert rows(database) == [(1, "c"), (3, "e")]
    sink.stop()


def test_an_update_changes_rows_that_are_there(file: Path, database: sqlite3.Connection) -> None:
    """An update of a missing row does nothing."""
    database.execute("CREATE TABLE topic (id INTEGER PRIMARY KEY, item TEXT)")
    database.execute("INSERT INTO topic VALUES (1, 'a')")
    sink = started(by_key(file, insert_mode="update"))
    send(sink, 1, "b")
    send(sink, 2, "c")
    sink.deliver()
    assert rows(database) == [(1, "b")]
    sink.stop()


def test_a_column_may_have_any_name_beside_those_of_parameters(
    file: Path, database: sqlite3.Connection
) -> None:
    """The names of parameters differ from those of all columns."""
    database.execute("CREATE TABLE topic (p1 INTEGER PRIMARY KEY, p0 INTEGER)")
    database.execute("INSERT INTO topic VALUES (1, 2)")
    settings = {"pk_mode": "record_value", "pk_fields": "p1", "insert_mode": "update"}
    sink = started(props(file, **settings))
    schema = fields(p1=INT32_SCHEMA, p0=INT32_SCHEMA)
    sink.send(Struct(schema).put("p1", 1).put("p0", 3), value_schema=schema)
    sink.deliver()
    assert rows(database) == [(1, 3)]
    sink.stop()


def test_the_primary_key_can_be_the_records_place(file: Path, database: sqlite3.Connection) -> None:
    """Topic, partition and offset identify a record without a key."""
    sink = started(props(file, pk_mode="kafka", insert_mode="upsert"))
    for item in "ab":
        sink.send(order(item), value_schema=ORDER)
    sink.deliver()
    assert rows(database) == [("topic", 0, 0, "a"), ("topic", 0, 1, "b")]
    sink.stop()


def test_the_primary_key_can_be_fields_of_the_value(
    file: Path, database: sqlite3.Connection
) -> None:
    """With pk.mode=record_value, fields of the value are the key's columns."""
    settings = {"pk_mode": "record_value", "pk_fields": "item", "insert_mode": "upsert"}
    sink = started(props(file, **settings))
    for item in "aba":
        sink.send(order(item), value_schema=ORDER)
    sink.deliver()
    assert rows(database) == [("a",), ("b",)]
    sink.stop()


def test_a_missing_column_is_added_when_allowed(file: Path, database: sqlite3.Connection) -> None:
    """A column is added when allowed, and again if it, or the table, was dropped meanwhile."""
    wide = SchemaBuilder.struct().field("item", STRING_SCHEMA)
    wide.field("note", OPTIONAL_STRING_SCHEMA)
    sink = started(props(file, auto_evolve="true"))
    sink.send(order("a"), value_schema=ORDER)
    schema = wide.build()
    sink.send(Struct(schema).put("item", "b").put("note", "n"), value_schema=schema)
    sink.deliver()
    assert rows(database) == [("a", None), ("b", "n")]
    database.execute("ALTER TABLE topic DROP COLUMN note")
    sink.send(Struct(schema).put("item", "c").put("note", "m"), value_schema=schema)
    sink.deliver()
    assert rows(database) == [("a", None), ("b", None), ("c", "m")]
    database.execute("DROP TABLE topic")
    sink.send(order("d"), value_schema=ORDER)
    sink.deliver()
    assert rows(database) == [("d",)]
    sink.stop()


@cases("settings, text", ({"auto_create": "false"}, "auto.create=true"), ({}, "auto.evolve=true"))
def test_a_missing_table_or_column_names_the_setting(
    file: Path, database: sqlite3.Connection, settings: dict[str, str], text: str
) -> None:
    """The sink creates tables and columns only if a setting asks for it, which the error names."""
    if not settings:
        database.execute("CREATE TABLE topic (other TEXT)")
    sink = started(props(file, **settings))
    sink.send(order("a"), value_schema=ORDER)
    with pytest.raises(ConnectException, match=text):
        sink.deliver()


def test_values_keep_their_types(file: Path, database: sqlite3.Connection) -> None:
    """Decimals lose no digit, nested values are JSON, and null stays null beside a default."""
    schema = fields(
        price=decimal_builder(4),
        at=timestamp_builder(),
        day=date_builder(),
        tags=SchemaBuilder.array(STRING_SCHEMA),
        count=SchemaBuilder.int32().default(7).optional(),
    )
    value = Struct(schema)
    value.put("price", Decimal("12345678901234567890.1234"))
    value.put("at", datetime(2024, 6, 1, 10, tzinfo=UTC))
    value.put("day", date(2024, 6, 1)).put("tags", ["a", "b"])
    sink = started(props(file, db_timezone="Europe/Berlin"))
    sink.send(value, value_schema=schema)
    sink.deliver()
    assert rows(database) == [
        ("12345678901234567890.1234", "2024-06-01 12:00:00.000000", "2024-06-01", '["a","b"]', None)
    ]
    sink.stop()


def test_maps_without_schema_go_to_tables_that_are_there(
    file: Path, database: sqlite3.Connection
) -> None:
    """The keys of a map without schema are the columns, and the table has to exist."""
    database.execute("CREATE TABLE topic (a INTEGER, b TEXT)")
    sink = started(props(file))
    sink.send({"a": 1})
    sink.send({"b": {"c": [1]}, "a": 2})
    sink.deliver()
    assert rows(database) == [(1, None), (2, '{"c":[1]}')]
    sink.stop()


def test_a_record_that_has_no_row_is_reported_or_fails_the_task(
    file: Path, database: sqlite3.Connection
) -> None:
    """After a report the offset moves on; without a reporter the task fails."""
    reporter = RecordingReporter()
    tolerant = SinkHarness(SqlSinkTask, props(file), reporter=reporter)
    tolerant.start()
    tolerant.send("a text")
    tolerant.send(order("a"), value_schema=ORDER)
    tolerant.deliver()
    assert rows(database) == [("a",)]
    assert stored(database) == [("topic", 0, 1, 2)]
    assert len(reporter.reports) == 1
    tolerant.stop()
    strict = started(props(file, name="other"))
    strict.send("a text")
    with pytest.raises(DataException, match="neither a struct nor a map"):
        strict.deliver()


def test_changed_offsets_are_those_of_the_database(
    file: Path, database: sqlite3.Connection
) -> None:
    """Changed offsets also fence a task that may still run; None starts at Kafka's own position."""
    sink = started(props(file))
    sink.send(order("a"), value_schema=ORDER)
    sink.deliver()
    connector = SqlSinkConnector()
    assert connector.alter_offsets(props(file), {PARTITION: 0, TopicPartition("topic", 1): None})
    assert stored(database) == [("topic", 0, 2, 0), ("topic", 1, 1, None)]
    sink.send(order("b"), value_schema=ORDER)
    with pytest.raises(ConnectException, match="taken over"):
        sink.deliver()


def test_a_locked_database_is_tried_again_until_the_last_attempt(
    file: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A locked database is tried again; the last attempt fails with the database's own reason."""
    monkeypatch.setattr(database_module, "CONNECT_TIMEOUT_S", 0)
    sink = started(props(file, max_retries="1"))
    sink.send(order("a"), value_schema=ORDER)
    database.execute("BEGIN IMMEDIATE")
    assert sink.deliver() == []
    with pytest.raises(ConnectException, match=r"database is locked \(2 attempts\)"):
        sink.deliver()


def test_a_database_that_is_away_is_the_error_of_an_open(tmp_path: Path) -> None:
    """The worker shows the error in the status and opens again; the last attempt fails the task."""
    directory = tmp_path / "missing"
    sink = SinkHarness(SqlSinkTask, props(directory / "shop.db", max_retries="1"))
    with pytest.raises(RetriableException, match="unable to open database file"):
        sink.start()
    directory.mkdir()
    sink.task.open([TopicPartition("topic", 0)])
    sink.task.stop()
    sink = SinkHarness(SqlSinkTask, props(tmp_path / "none" / "shop.db", max_retries="0"))
    with pytest.raises(ConnectException, match=r"unable to open database file \(1 attempts\)"):
        sink.start()


@cases(
    "settings, name",
    ({"insert.mode": "upsert"}, "pk.mode"),
    ({"delete.enabled": "true"}, "pk.mode"),
    ({"pk.mode": "record_value"}, "pk.fields"),
    ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields"),
    ({"delivery.guarantee": "maybe"}, "delivery.guarantee"),
)
def test_a_wrong_setting_is_found_by_validation(
    file: Path, settings: dict[str, str], name: str
) -> None:
    """Validation adds the error to the setting that has to be changed."""
    config = SqlSinkConnector().validate({**props(file), **settings})
    assert [value.name for value in config.config_values if value.error_messages] == [name]
