"""Rules that hold on both PostgreSQL and MariaDB."""

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from pyconnect_api import OPTIONAL_STRING_SCHEMA, ConnectException, Schema, SchemaBuilder, Struct
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.sink import SqlSinkConnector
from tests.connectors.schemas import fields
from tests.connectors.sql.served import BY_BOTH, Database, values
from tests.support.cases import cases
from tests.support.servers.postgres import PASSWORD

pytestmark = pytest.mark.wire

LAX = "?init_command=SET+SESSION+sql_mode%3D%27ANSI_QUOTES%27"
"""An argument of a URL of MariaDB that asks for a session without checks."""
KEYED = {"pk_mode": "record_value", "pk_fields": "id"}
both_servers = cases("server", "postgres", "mariadb")


@pytest.fixture
def database(request: pytest.FixtureRequest, server: str) -> Iterator[Database]:
    """A new database; MariaDB's session takes zero dates."""
    found = request.getfixturevalue(server)
    session = "SET sql_mode = 'ALLOW_INVALID_DATES'" if server == "mariadb" else ""
    writes = {"auto.create": "true"}
    name = found.new_database()
    made = Database(server=found, name=name, reads=BY_BOTH, writes=writes, session=session)
    with closing(made):
        yield made


def row_of(v: Schema | SchemaBuilder = OPTIONAL_STRING_SCHEMA) -> Schema:
    return fields(id=SchemaBuilder.int32(), v=v)


@cases(
    "server, kind, plain, odd, text",
    ("postgres", "timestamp", "2024-01-01", "infinity", "infinity"),
    ("postgres", "timestamp", "2024-01-01", "-infinity", "infinity"),
    ("postgres", "timestamptz", "2024-01-01", "infinity", "infinity"),
    ("postgres", "timestamp", "2024-01-01", "10000-01-01 12:00", "a year after 9999"),
    ("postgres", "timestamptz", "2024-01-01", "0044-03-15 12:00 BC", "a year before 1"),
    ("postgres", "date", "2024-01-01", "infinity", "infinity"),
    ("postgres", "date", "2024-01-01", "12024-01-01", "a year after 9999"),
    ("postgres", "date", "2024-01-01", "0044-03-15 BC", "a year before 1"),
    ("postgres", "time", "12:00", "24:00", "the end of a day"),
    ("postgres", "numeric(10,2)", "1", "NaN", "NaN"),
    ("mariadb", "datetime", "2024-01-01", "0000-00-00 00:00:00", "a zero date"),
    ("mariadb", "datetime(3)", "2024-01-01", "2024-02-00 10:00:00.5", "a zero date"),
    ("mariadb", "timestamp", "2024-01-01", "0000-00-00 00:00:00", "a zero date"),
    ("mariadb", "date", "2024-01-01", "2024-02-00", "a zero date"),
    ("mariadb", "date", "2024-01-01", "2024-02-30", "a date that does not exist"),
    ("mariadb", "time", "10:00", "25:30:00", "longer than a day"),
    ("mariadb", "time(6)", "10:00", "-01:00:00.000001", "negative"),
    ("mariadb", "time", "10:00", "24:00:00", "the end of a day"),
    ("mariadb", "time", "10:00", "838:59:59", "longer than a day"),
    ("mariadb", "bigint unsigned", "5", "18446744073709551615", "a whole number"),
)
def test_an_odd_value_follows_the_policy(
    database: Database, kind: str, plain: str, odd: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An odd value fails after the rows before it, is left out and logged, is null, or is a text.

    The column's type decides the schema: all of its values are texts, or may be null.
    """
    database.execute(
        f"CREATE TABLE odd (id int PRIMARY KEY, v {kind} NOT NULL)",
        f"INSERT INTO odd VALUES (1, '{plain}'), (2, '{odd}'), (3, '{plain}')",
    )
    by_id = {"mode": "incrementing", "tables": "odd"}
    harness = database.source(**by_id)
    assert values(harness.poll()) == [1]
    with pytest.raises(OddValueException, match=rf"Column v of table odd, row id=2: .*{text}") as e:
        harness.poll()
    assert "values.out.of.range" in str(e.value)
    assert "infinity" in odd or odd == "NaN" or odd not in str(e.value)
    harness = database.source(errors_tolerance="all", **by_id)
    with caplog.at_level(logging.WARNING):
        records = harness.run(2)
    assert values(records) == [1, 3]
    assert [record.source_offset for record in records] == [{"incrementing": n} for n in (1, 3)]
    reasons = [getattr(entry, "reason", "") for entry in caplog.records]
    assert any("row id=2" in reason and text in reason for reason in reasons)
    harness.stop()
    harness = database.source(values_out_of_range="null", **by_id)
    records = harness.run(3)
    first, none, last = values(records, "v")
    assert none is None
    assert first == last is not None
    schemas = [record.value_schema.field("v") for record in records if record.value_schema]
    assert all(found is not None and found.schema.optional for found in schemas)
    harness.stop()
    records = database.source(values_out_of_range="text", **by_id).run(3)
    assert records[0].value_schema is not None
    found = records[0].value_schema.field("v")
    assert found is not None
    assert found.schema == SchemaBuilder.string().build()
    written = database.execute("SELECT CAST(v AS CHAR(40)) FROM odd ORDER BY id")
    assert values(records, "v") == [value.rstrip() for (value,) in written]


@cases("mode", "insert", "upsert")
@cases(
    "server, column, good, bad, text",
    ("postgres", "varchar(3) NOT NULL", "1", "long", "more than 3 characters"),
    ("postgres", "varchar(3) NOT NULL", "1", None, "not-null constraint"),
    ("postgres", "text", "1", "a\0b", "NUL"),
    ("postgres", "text", "1", "\ud800", "not valid Unicode"),
    ("postgres", "text CHECK (v <> 'bad')", "1", "bad", "check constraint"),
    ("postgres", "jsonb", "{}", "{", "invalid input syntax"),
    ("postgres", "jsonb", "{}", '[{"a": {"b": 1, "b": 2}}]', "two members of one name"),
    ("postgres", "int", "1", "many", "not a whole number"),
    ("postgres", "int", "1", "99999999999", "out of range"),
    ("postgres", "date", "2024-01-01", "2024-02-30", "a date that does not exist"),
    ("postgres", "numeric(3, 1)", "1.5", "1.25", "more digits"),
    ("postgres", "boolean", True, "yes", "neither true nor false"),
    ("postgres", "char(1)", "1", "ab", "more than 1 characters"),
    ("mariadb", "varchar(3) NOT NULL", "a", "long", "more than 3 characters"),
    ("mariadb", "varchar(3) NOT NULL", "a", None, "cannot be null"),
    ("mariadb", "tinytext", "a", "x" * 300, "too long"),
    ("mariadb", "text", "a", "\ud800", "not valid Unicode"),
    ("mariadb", "text CHECK (v <> 'bad')", "a", "bad", "CONSTRAINT"),
    ("mariadb", "longtext CHECK (json_valid(v))", "{}", "{", "CONSTRAINT"),
    ("mariadb", "tinyint", "1", "300", "[Oo]ut of range"),
    ("mariadb", "int", "1", "1.5", "not a whole number"),
    ("mariadb", "date", "2024-01-01", "0000-00-00", "not a date"),
    ("mariadb", "datetime", "2024-01-01 00:00:00", "2024-01-01 00:00:00.5", "more digits"),
    ("mariadb", "datetime", "2024-01-01 00:00:00", "20240101", "not a time"),
    ("mariadb", "enum('a', '1')", "a", "A", "not one of"),
    ("mariadb", "enum('a', 'b')", "a", "2", "not one of"),
    ("mariadb", "set('a', 'b')", "a,b", "3", "not one of"),
    ("mariadb", r"enum('a\\b', 'it''s')", r"a\b", r"a\\b", "not one of"),
    ("mariadb", r"set('a\nb', 'c')", "a\nb,c", r"a\nb", "not one of"),
    ("mariadb", "year", "2024", "69", "four digits"),
    ("mariadb", "char(3)", "a", "b ", "spaces at the end"),
    ("mariadb", "decimal(3, 1)", "1.5", "1.25", "more digits"),
    ("mariadb", "double", "1.5", "NaN", "NaN"),
    ("mariadb", "point", None, "a", "not bytes"),
)
def test_rows_that_the_database_refuses_are_reported(
    database: Database,
    server: str,
    mode: str,
    column: str,
    good: str | bool | None,
    bad: str | None,
    text: str,
) -> None:
    """Other rows are written once, in a session that is strict whatever the URL asks for."""
    database.execute(f"CREATE TABLE topic (id int PRIMARY KEY, v {column})")
    reporter = RecordingReporter()
    url = database.url + (LAX if server == "mariadb" else "")
    keyed = {**KEYED, "insert_mode": mode, "connection_url": url}
    harness = database.sink(reporter, errors_tolerance="all", **keyed)
    texts, flags = row_of(), row_of(SchemaBuilder.boolean())
    for number in range(100):
        value = bad if number in (7, 8, 60) else good
        schema = flags if value is True else texts
        harness.send(Struct.of_checked(schema, [number, value]), value_schema=schema)
    harness.deliver()
    assert [record.kafka_offset for record, _ in reporter.reports] == [7, 8, 60]
    for record, error in reporter.reports:
        assert re.search(text, str(error))
        assert f"topic-0@{record.kafka_offset}" in str(error)
        assert bad is None or len(bad) < 4 or server == "mariadb" or bad not in str(error)
    rows = database.execute("SELECT count(*), count(DISTINCT id) FROM topic")
    assert rows == [(97, 97)]
    assert database.execute("SELECT next_offset FROM pyconnect_offsets") == [(100,)]


@cases(
    "server, kind",
    ("postgres", "timestamp"),
    ("postgres", "timestamptz"),
    ("mariadb", "datetime(6) NOT NULL"),
    ("mariadb", "timestamp(6) NOT NULL"),
)
def test_microseconds_count_in_the_order_of_rows(database: Database, kind: str) -> None:
    """A position has microseconds, although a record's timestamp has only milliseconds."""
    database.execute(f"CREATE TABLE orders (id serial PRIMARY KEY, changed {kind})")
    for micros in (1, 2, 2, 3):
        database.execute(
            f"INSERT INTO orders (changed) VALUES ('2024-01-01 00:00:00.00000{micros}')"
        )
    harness = database.source(batch_max_rows="1")
    seen = []
    for _ in range(4):
        (record,) = harness.run(1)
        seen += values([record])
        harness.commit()
        harness.restart()
    assert seen == [1, 2, 3, 4]
    assert harness.poll() == []


@both_servers
@cases("mode", "insert", "upsert")
def test_rows_and_offsets_change_in_one_transaction(database: Database, mode: str) -> None:
    """A batch that the database refuses leaves neither rows nor offsets."""
    harness = database.sink(insert_mode=mode, **KEYED)
    schema = row_of()

    def deliver(text: str | None, *numbers: int) -> None:
        for number in numbers:
            harness.send(Struct.of_checked(schema, [number, text]), value_schema=schema)
        harness.deliver()

    deliver("a\tb\\'", 1, 2)
    database.execute("ALTER TABLE topic ADD CONSTRAINT few CHECK (id < 4)")
    with pytest.raises(ConnectException, match=r"Cannot write to the database: .*few"):
        deliver(None, 3, 4)
    assert database.execute("SELECT * FROM topic ORDER BY id") == [(1, "a\tb\\'"), (2, "a\tb\\'")]
    assert database.execute("SELECT epoch, next_offset FROM pyconnect_offsets") == [(1, 2)]


@both_servers
def test_tasks_claim_a_new_partition_at_the_same_time(database: Database) -> None:
    """One task creates the table and the row, and the others find them or wait for a lock."""
    harnesses = [database.new_sink() for _ in range(8)]
    errors: list[BaseException] = []

    def run(harness: SinkHarness) -> None:
        try:
            harness.start()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(harness,)) for harness in harnesses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert database.execute("SELECT epoch FROM pyconnect_offsets") == [(8,)]


@cases(
    "server, problem",
    ("postgres", "password authentication failed"),
    ("mariadb", "Access denied for user"),
)
def test_a_wrong_password_is_found_by_validation(database: Database, problem: str) -> None:
    """Validation reports a wrong password and shows neither the wrong nor the right one."""
    wrong = {**database.config(), "connection.password": "guess"}
    config = SqlSinkConnector().validate({"name": "s", **wrong})
    errors = {value.name: value.error_messages for value in config.config_values}
    (text,) = errors["connection.url"]
    assert problem in text
    assert PASSWORD not in text
    assert "guess" not in text
