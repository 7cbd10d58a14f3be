"""Keys of tables by which rows would be lost: validation reports them, and tasks refuse them."""

import sqlite3
from collections.abc import Mapping
from pathlib import Path

import pytest

from pyconnect_api import ConnectException, SchemaBuilder, Struct, TopicPartition
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.sql.sink import SqlSinkConnector, SqlSinkTask
from tests.connectors.schemas import fields
from tests.support.cases import cases
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

UPSERT = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "k"}
BY_RECORD_KEY = {"insert.mode": "upsert", "pk.mode": "record_key"}
SCHEMA = fields(k=SchemaBuilder.string())


def errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    found = SqlSinkConnector().validate(config)
    return {v.name: list(v.error_messages) for v in found.config_values if v.error_messages}


def refused(config: Mapping[str, str], setting: str = "pk.folding.keys") -> str:
    """Return validation's error, which is also the task's."""
    (text,) = errors(config)[setting]
    sink = SinkHarness(SqlSinkTask, config)
    sink.start()
    sink.send(Struct.of_checked(SCHEMA, ["a"]), value_schema=SCHEMA)
    with pytest.raises(ConnectException) as failure:
        sink.deliver()
    assert str(failure.value) == text
    sink.task.stop()
    return text


def config(settings: Mapping[str, str], **others: str) -> dict[str, str]:
    named = {name.replace("_", "."): value for name, value in others.items()}
    return {"name": "s", "topics": "none,topic", **settings, **UPSERT, **named}


def test_a_key_of_sqlite_that_ignores_case_is_refused(
    file: Path, database: sqlite3.Connection
) -> None:
    """A key of SQLite that ignores case is refused, unless allowed or not used to replace rows."""
    database.execute("CREATE TABLE topic (k TEXT COLLATE NOCASE PRIMARY KEY)")
    props = config({"connection.url": f"sqlite:///{file}"})
    assert "Key column k of table topic takes different texts for equal (NOCASE)" in refused(props)
    assert errors({**props, **BY_RECORD_KEY, "pk.fields": ""}).keys() == {"pk.folding.keys"}
    assert errors({**props, "pk.folding.keys": "allow"}) == {}
    assert errors({**props, "insert.mode": "insert"}) == {}
    database.execute("DROP TABLE topic")
    database.execute("CREATE TABLE topic (k TEXT PRIMARY KEY)")
    assert errors(props) == {}


@pytest.mark.wire
@cases(
    "collation, folds",
    ("utf8mb4_general_ci", True),
    ("utf8mb4_bin", True),
    ("utf8mb4_nopad_bin", False),
)
def test_a_key_of_mariadb_that_folds_texts_is_refused(
    mariadb: MariaDbServer, collation: str, folds: bool
) -> None:
    """utf8mb4_bin is refused too, because it ignores spaces at the end."""
    database = mariadb.new_database()
    statement = f"CREATE TABLE topic (k varchar(20) COLLATE {collation} PRIMARY KEY)"
    mariadb.execute(database, statement)
    props = config(mariadb.settings(database))
    if folds:
        assert f"({collation})" in refused(props)
    else:
        assert errors(props) == {}


@pytest.mark.wire
@cases(
    "type_, collation",
    ("text COLLATE anycase", "anycase"),
    ("citext", "citext"),
    ("mail", "citext"),
    ("text", ""),
)
def test_a_key_of_postgresql_that_folds_texts_is_refused(
    postgres: PostgresServer, type_: str, collation: str
) -> None:
    """Nondeterministic collations and case-insensitive types are refused, below a domain too."""
    database = postgres.new_database()
    with postgres.connect(database) as connection:
        connection.execute("CREATE EXTENSION citext")
        connection.execute("CREATE DOMAIN mail AS citext")
        connection.execute(
            "CREATE COLLATION anycase (provider=icu, locale='und-u-ks-level2', deterministic=false)"
        )
        connection.execute(f"CREATE TABLE topic (k {type_} PRIMARY KEY)".encode())
    props = config(postgres.settings(database))
    if collation:
        assert f"({collation})" in refused(props)
    else:
        assert errors(props) == {}


@pytest.mark.wire
def test_an_upsert_of_mariadb_needs_a_key_of_its_columns(mariadb: MariaDbServer) -> None:
    """Without a key each upsert would add the row again; a key of prefixes does not count."""
    database = mariadb.new_database()
    props = config(mariadb.settings(database), pk_folding_keys="allow")
    for keys in ("", ", UNIQUE (v)", ", UNIQUE (k(3))", ", UNIQUE (k, v)", ", KEY (k)"):
        mariadb.execute(database, "DROP TABLE IF EXISTS topic")
        mariadb.execute(database, f"CREATE TABLE topic (k varchar(20), v int{keys})")
        assert "no primary or unique key of the columns k" in refused(props, "pk.fields")
        assert errors({**props, "insert.mode": "insert"}) == {}
    mariadb.execute(database, "ALTER TABLE topic ADD UNIQUE (k)")
    assert errors(props) == {}


@pytest.mark.wire
def test_an_upsert_of_mariadb_never_changes_the_row_of_another_key(mariadb: MariaDbServer) -> None:
    """A record is in error if its row has another row's value in a further unique key."""
    database = mariadb.new_database()
    schema = SchemaBuilder.struct()
    for name in ("k", "mail"):
        schema.field(name, SchemaBuilder.string())
    built = schema.build()
    further = "id int AUTO_INCREMENT PRIMARY KEY, UNIQUE (k)"
    for table, keys in (("topic", "PRIMARY KEY (k), UNIQUE (mail)"), ("numbered", further)):
        texts = "k varchar(9), mail varchar(9)"
        mariadb.execute(
            database, f"CREATE TABLE {table} ({texts}, {keys}) COLLATE=utf8mb4_nopad_bin"
        )
        reporter = RecordingReporter()
        sink = SinkHarness(
            SqlSinkTask,
            config(mariadb.settings(database), name=table, table_name_format=table),
            reporter=reporter,
        )
        sink.start()
        for row in (("1", "a"), ("2", "b"), ("3", "a"), ("2", "c"), ("1", "a"), ("1", "d")):
            sink.send(Struct.of_checked(built, list(row)), value_schema=built)
        sink.deliver()
        sink.stop()
        rows = mariadb.execute(database, f"SELECT k, mail FROM {table} ORDER BY k")
        if table == "topic":
            assert rows == [("1", "d"), ("2", "c")]
            assert [record.kafka_offset for record, _ in reporter.reports] == [2]
            assert "for key 'mail'" in str(reporter.reports[0][1])
        else:
            assert rows == [("1", "d"), ("2", "c"), ("3", "a")]


@cases("deletes", False, True)
def test_null_in_a_key_is_an_error_of_its_record(
    file: Path, database: sqlite3.Connection, deletes: bool
) -> None:
    """Null is equal to nothing: an upsert would add the row again, a delete would delete none."""
    database.execute("CREATE TABLE topic (k TEXT, v TEXT, UNIQUE (k))")
    key = fields(k=SchemaBuilder.string().optional().build())
    value = fields(v=SchemaBuilder.string())
    reporter = RecordingReporter()
    props = {**config({"connection.url": f"sqlite:///{file}"}, pk_fields=""), **BY_RECORD_KEY}
    sink = SinkHarness(SqlSinkTask, {**props, "delete.enabled": "true"}, reporter=reporter)
    sink.start()
    for text in (None, "a"):
        row = Struct.of_checked(value, ["x"])
        record = (None, None) if deletes else (row, value)
        sink.send(
            record[0], value_schema=record[1], key=Struct.of_checked(key, [text]), key_schema=key
        )
    sink.deliver()
    sink.stop()
    assert [record.kafka_offset for record, _ in reporter.reports] == [0]
    assert "Column k of table topic, record topic-0@0: null" in str(reporter.reports[0][1])
    assert database.execute("SELECT k FROM topic").fetchall() == ([] if deletes else [("a",)])


def test_topics_that_differ_by_case_are_not_one_table_of_sqlite(file: Path) -> None:
    """SQLite ignores case in names of tables, but topics may share a table on purpose."""
    props = config({"connection.url": f"sqlite:///{file}"}, topics="t,T", auto_create="true")
    assert "The tables t and T are one" in errors(props)["table.name.format"][0]
    assert errors({**props, "table.name.format": "all"}) == {}
    places = [TopicPartition("T", 0), TopicPartition("t", 0)]
    sink = SinkHarness(SqlSinkTask, props, partitions=places)
    sink.start()
    for place in places:
        sink.send(Struct.of_checked(SCHEMA, ["a"]), value_schema=SCHEMA, partition=place)
    with pytest.raises(ConnectException, match="The tables T and t are one"):
        sink.deliver()
    sink.task.stop()
