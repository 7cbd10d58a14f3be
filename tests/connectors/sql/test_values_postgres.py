"""Odd values of PostgreSQL in both directions: none changes silently, none stops a table."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from sqlalchemy import Engine, event

from pyconnect_api import (
    OPTIONAL_STRING_SCHEMA,
    ConnectException,
    DataException,
    Schema,
    SchemaBuilder,
    SourceRecord,
    Struct,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.testing import RecordingReporter
from pyconnect_connectors.odd_values import OddValueException
from tests.connectors.schemas import fields
from tests.connectors.sql.served import BY_ID, Database, values
from tests.support.cases import cases
from tests.support.servers.postgres import PostgresServer

pytestmark = pytest.mark.wire


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    name = postgres.new_database()
    with closing(Database(server=postgres, name=name, reads=BY_ID)) as found:
        yield found


def schema_of(record: SourceRecord, name: str) -> Schema:
    assert record.value_schema is not None
    found = record.value_schema.field(name)
    assert found is not None
    return found.schema


def test_an_odd_key_never_becomes_null(database: Database) -> None:
    """An odd value in a key is an error, because null would make one key of two."""
    database.execute(
        "CREATE TABLE odd (id int, day date, PRIMARY KEY (id, day))",
        "INSERT INTO odd VALUES (1, 'infinity')",
    )
    harness = database.source(values_out_of_range="null")
    with pytest.raises(OddValueException, match="Column day of table odd, row incrementing=1"):
        harness.poll()


def test_domains_are_read_as_the_types_below_them(database: Database) -> None:
    """Domains have their base types, also in columns of the position and below other domains."""
    database.execute(
        "CREATE DOMAIN positive AS integer CHECK (value > 0)",
        "CREATE DOMAIN small_positive AS positive CHECK (value < 1000)",
        "CREATE DOMAIN moment AS timestamptz",
        "CREATE DOMAIN price AS numeric(10, 2) NOT NULL",
        "CREATE TABLE odd (id small_positive PRIMARY KEY, at moment, cost price)",
        "INSERT INTO odd VALUES (1, '2024-01-01Z', 1.5), (2, '2024-01-02Z', 2)",
    )
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = database.source(**both)
    first, second = harness.run(2)
    assert isinstance(first.value, Struct)
    assert first.value.stored_values() == [1, datetime(2024, 1, 1, tzinfo=UTC), Decimal("1.50")]
    assert str(schema_of(first, "id")) == "Schema{INT32}"
    assert schema_of(first, "at") == timestamp_builder().optional().build()
    assert schema_of(first, "cost") == decimal_builder(2).build()
    first.value.validate()
    assert second.source_offset == {"timestamp": "2024-01-02 00:00:00+00", "incrementing": 2}
    harness.commit()
    harness.restart()
    assert harness.poll() == []


def test_types_without_a_schema_are_texts_that_the_database_writes(database: Database) -> None:
    """Types that Connect lacks are the database's texts: arrays are JSON, intervals keep months."""
    database.execute(
        "CREATE TYPE pair AS (a int, b text)",
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE odd (id int PRIMARY KEY, ints int[], days date[], spans interval[],"
        " numbers numeric[], raw bytea[], words text[], span interval, doc json, docb jsonb,"
        " span_range int4range, bits bit(3), address inet, cash money, moods mood[], two pair,"
        " clock timetz, place point, at timestamptz[], deep int[][], names name, padded char(3),"
        " host inet, blanks bpchar)",
        "INSERT INTO odd VALUES (1, '{1,null}', '{2024-01-01,infinity}', '{1 mon}',"
        ' \'{12345678901234567890.123456789,NaN}\', \'{"\\\\x00ff"}\', \'{"a\\"b",NULL,"NULL"}\','
        " '1 mon 2 days', '{\"a\": 1.10, \"a\":  2}', '{\"a\": 12345678901234567890.123456789}',"
        " '[1,5)', '101', '10.0.0.1/8', 1234.5, '{sad}', '(1,x)', '12:30+02', '(1,2)',"
        " '{2024-01-01 10:00Z}', '{{1,2},{3,4}}', 'n', 'a', '::1', 'a ')",
    )
    harness = database.source()
    (record,) = harness.run(1)
    assert isinstance(record.value, Struct)
    assert record.value.stored_values() == [
        1,
        "[1,null]",
        '["2024-01-01","infinity"]',
        '["1 mon"]',
        '[12345678901234567890.123456789,"NaN"]',
        '["\\\\x00ff"]',
        '["a\\"b",null,"NULL"]',
        "1 mon 2 days",
        '{"a": 1.10, "a":  2}',
        '{"a": 12345678901234567890.123456789}',
        "[1,5)",
        "101",
        "10.0.0.1/8",
        "1234.50",
        '["sad"]',
        "(1,x)",
        "12:30:00+02",
        "(1,2)",
        '["2024-01-01T10:00:00+00:00"]',
        "[[1,2],[3,4]]",
        "n",
        "a  ",
        "::1",
        "a ",
    ]
    record.value.validate()


def test_what_was_read_can_be_written_into_a_table_of_the_same_types(database: Database) -> None:
    """COPY and statements write the same values, and JSON is not encoded once more."""
    columns = (
        "id int PRIMARY KEY, small smallint, big bigint, ratio real, weight float8, flag boolean,"
        " raw bytea, note text, code varchar(3), day date, clock time, clockz timetz,"
        " at timestamp, atz timestamptz, exact numeric(12, 2), free numeric, ints int[],"
        " words text[], days date[], deep int[][], span interval, doc json, docb jsonb,"
        " ident uuid, address inet, bits bit(3), cash money, spans tstzrange, place point,"
        " two pair, pairs pair[], way path, rule jsonpath, tags hstore"
    )
    database.execute(
        "CREATE EXTENSION hstore",
        "CREATE TYPE pair AS (a numeric(5, 2), b text)",
        f"CREATE TABLE odd ({columns})",
        f"CREATE TABLE topic ({columns})",
        "INSERT INTO odd VALUES (1, -32768, 9223372036854775807, 0.1, 0.1, true, '\\x0000ff',"
        " E'a\\tb\\\\ü\\n', 'abc', '0001-01-01', '23:59:59.999', '12:30+02',"
        " '9999-12-31 23:59:59.999', '2024-06-01 12:00+02', -0.01,"
        ' 12345678901234567890.12345678901234567890, \'{1,NULL}\', \'{"a,b","\\"",NULL,""}\','
        " '{2024-01-01}', '{{1,2},{3,4}}', '-1 mon 2 days 03:04:05.678',"
        ' \'{"a": 1.10}\', \'{"a": 12345678901234567890.123456789, "b": null}\','
        " '00000000-0000-0000-0000-000000000001', '::1/128', '101', -1234.5,"
        " '[2024-01-01 00:00Z,)', '(0.1,1e300)', '(1.2,\"a \\\\\"\"\"\"b\")', '{\"(1,x)\",NULL}',"
        " '[(1,NaN),(3,4)]', '$.a', 'x=>\"x=>y\", \"a b\"=>NULL')",
        "INSERT INTO odd (id) VALUES (2)",
    )
    harness = database.source()
    records = harness.run(2)
    harness.stop()
    for mode in ("insert", "upsert"):
        key = {"pk_mode": "record_value", "pk_fields": "id"}
        writer = database.sink(insert_mode=mode, **key)
        for record in records:
            writer.send(record.value, value_schema=record.value_schema)
        writer.deliver()
        writer.stop()
        same = "SELECT o::text = t::text FROM odd o JOIN topic t USING (id) ORDER BY id"
        assert database.execute(same) == [(True,), (True,)]
        database.execute("DELETE FROM topic", "DELETE FROM pyconnect_offsets")


def test_texts_of_odd_values_can_be_written(database: Database) -> None:
    """Odd values are read as texts, and these can be written."""
    columns = "id int PRIMARY KEY, at timestamp, atz timestamptz, day date, clock time, v numeric"
    database.execute(
        f"CREATE TABLE odd ({columns})",
        f"CREATE TABLE topic ({columns})",
        "INSERT INTO odd VALUES (1, 'infinity', '-infinity', 'infinity', '24:00', 'NaN'),"
        " (2, '12024-01-01 10:00:00.5', '0044-03-15 12:00+00 BC', '0044-03-15 BC', '10:00', 1)",
    )
    harness = database.source(values_out_of_range="text")
    records = harness.run(2)
    harness.stop()
    writer = database.sink()
    for record in records:
        writer.send(record.value, value_schema=record.value_schema)
    writer.deliver()
    same = "SELECT o::text = t::text FROM odd o JOIN topic t USING (id)"
    assert database.execute(same) == [(True,), (True,)]


def test_an_array_that_json_cannot_hold_is_odd(database: Database) -> None:
    """Bounds of arrays and JSON nulls have no JSON form, but a text form that can be written."""
    columns = "id int PRIMARY KEY, v int[], j jsonb[], at timestamp[], d docs[]"
    odd = {2: "[2:3]={1,2}", 3: "[0:1][1:2]={{1,2},{3,4}}"}
    database.execute(
        "CREATE DOMAIN docs AS jsonb",
        f"CREATE TABLE odd ({columns})",
        f"CREATE TABLE topic ({columns})",
        """INSERT INTO odd VALUES (1, '{1,2}', '{"\\"null\\"",NULL,"[null]"}', NULL)""",
        *(f"INSERT INTO odd VALUES ({n}, '{v}', NULL, NULL)" for n, v in odd.items()),
        """INSERT INTO odd VALUES (4, '{}', '{"null",NULL}', NULL, '{"null"}')""",
    )
    harness = database.source()
    (first,) = harness.run(1)
    assert (values([first], "v"), values([first], "j")) == (["[1,2]"], ['["null",null,[null]]'])
    with pytest.raises(OddValueException, match="v of table odd, row id=2: an array whose first"):
        harness.poll()
    harness = database.source(values_out_of_range="null")
    assert values(harness.run(4), "v") == ["[1,2]", None, None, "[]"]
    harness = database.source(values_out_of_range="text")
    records = harness.run(4)
    assert values(records, "v") == ["[1,2]", *odd.values(), "[]"]
    assert [values(records, name)[3] for name in "jd"] == ['{"null",NULL}', '{"null"}']
    writer = database.sink()
    for record in records:
        writer.send(record.value, value_schema=record.value_schema)
    writer.deliver()
    writer.stop()
    same = "SELECT o::text = t::text FROM odd o JOIN topic t USING (id)"
    assert database.execute(same) == [(True,)] * 4


def test_a_zone_within_an_array_is_not_left_out(database: Database) -> None:
    """A zone in an array's text counts, although PostgreSQL ignores it for a column without one."""
    database.execute("CREATE TABLE topic (id int, v timestamp[])")
    writer = database.sink()
    row = [1, '{2024-01-01 10:00+02,NULL,"2024-01-01T12:00:00"}']
    writer.send(Struct.of_checked(ROW, row), value_schema=ROW)
    writer.deliver()
    written = '{"2024-01-01 08:00:00",NULL,"2024-01-01 12:00:00"}'
    assert database.execute("SELECT v::text FROM topic") == [(written,)]


def test_a_text_that_is_not_utf8_is_the_fault_of_its_row(postgres: PostgresServer) -> None:
    """In a database of SQL_ASCII, texts are read as UTF-8, and others are errors of their rows."""
    name = postgres.new_database("ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'")
    database = Database(server=postgres, name=name, reads=BY_ID)
    database.execute(
        "CREATE TABLE odd (id varchar(3) PRIMARY KEY, v text, c char(3), l text[])",
        r"INSERT INTO odd VALUES ('a', 'ä', 'ü', '{ß,NULL}'), ('b', E'\xe4', NULL, NULL),"
        " ('c', NULL, NULL, NULL)",
    )
    harness = database.source()
    (first,) = harness.run(1)
    assert isinstance(first.value, Struct)
    assert first.value.stored_values() == ["a", "ä", "ü ", '["ß",null]']
    assert first.source_offset == {"incrementing": "a"}
    with pytest.raises(OddValueException, match="Column v of table odd, row id=b: a text that is"):
        harness.poll()
    harness = database.source(errors_tolerance="all")
    assert values(harness.run(2), "id") == ["a", "c"]


def test_a_position_of_odd_times_goes_on(database: Database) -> None:
    """Rows before the year 1 come first; rows of infinity never come, because they lie ahead."""
    database.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, at timestamp)",
        "INSERT INTO odd VALUES (1, '-infinity'), (2, '0044-03-15 BC'), (3, '2024-01-01'),"
        " (4, 'infinity')",
    )
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "at"}
    harness = database.source(values_out_of_range="text", batch_max_rows="1", **both)
    (first,) = harness.run(1)
    assert first.source_offset == {"timestamp": "-infinity", "incrementing": 1}
    harness.commit()
    harness.restart()
    assert values(harness.run(2), "id") == [2, 3]
    harness.commit()
    harness.restart()
    assert harness.poll() == []


def test_a_position_of_fractions_neither_repeats_nor_loses_a_row(database: Database) -> None:
    """A fraction's position is the whole number with its fraction."""
    database.execute(
        "CREATE TABLE odd (id numeric(10, 2) PRIMARY KEY)",
        "INSERT INTO odd VALUES (1.25), (1.50), (2)",
    )
    harness = database.source(batch_max_rows="1")
    (first,) = harness.run(1)
    assert first.source_offset == {"incrementing": "1.25"}
    harness.commit()
    harness.restart()
    assert values(harness.run(2), "id") == [Decimal("1.50"), Decimal("2.00")]
    harness.commit()
    harness.restart()
    assert harness.poll() == []


@cases("last", "NaN", "Infinity")
def test_a_position_without_an_end_is_refused(database: Database, last: str) -> None:
    """NaN is greater than all numbers: rows after it would be left out without an error."""
    database.execute(
        "CREATE TABLE odd (id numeric PRIMARY KEY)", f"INSERT INTO odd VALUES (1.5), ('{last}')"
    )
    harness = database.source()
    assert values(harness.run(2), "id") == ["1.5", last]
    harness.commit()
    harness.restart()
    with pytest.raises(ConnectException, match="Column id of table odd has NaN, infinity or"):
        harness.poll()


ROW = fields(id=SchemaBuilder.int32(), v=OPTIONAL_STRING_SCHEMA)
PARENT = fields(id=SchemaBuilder.int32(), v=SchemaBuilder.int32())


@cases("mode", "insert", "upsert")
def test_a_row_that_breaks_a_deferred_constraint_is_reported(database: Database, mode: str) -> None:
    """A row that breaks a deferred constraint is reported; a child before its parent is not."""
    database.execute(
        "CREATE TABLE topic (id int PRIMARY KEY,"
        " v int REFERENCES topic DEFERRABLE INITIALLY DEFERRED)"
    )
    reporter = RecordingReporter()
    key = {"pk_mode": "record_value", "pk_fields": "id", "insert_mode": mode}
    harness = database.sink(reporter, errors_tolerance="all", **key)
    parents = {n: n + 1 for n in range(59)} | {59: 59, 20: 999, 30: 998}
    for number, parent in parents.items():
        harness.send(Struct.of_checked(PARENT, [number, parent]), value_schema=PARENT)
    harness.deliver()
    lost = list(range(31))
    assert [record.kafka_offset for record, _ in reporter.reports] == lost
    assert all("foreign key" in str(error) for _, error in reporter.reports)
    assert database.execute("SELECT count(*), min(id) FROM topic") == [(29, 31)]
    assert database.execute("SELECT next_offset FROM pyconnect_offsets") == [(60,)]


def test_hundreds_of_rows_that_break_do_not_hold_the_task_up(database: Database) -> None:
    """Each child waits for the next one, and every second record has no parent at all."""
    database.execute(
        "CREATE TABLE topic (id int PRIMARY KEY,"
        " v int REFERENCES topic DEFERRABLE INITIALLY DEFERRED)"
    )
    reporter = RecordingReporter()
    harness = database.sink(reporter, errors_tolerance="all")
    lost = set(range(1, 400, 2))
    for number in range(400):
        parent = 1000 if number in lost else min(number + 2, 398)
        harness.send(Struct.of_checked(PARENT, [number, parent]), value_schema=PARENT)
    savepoints: list[str] = []
    event.listen(Engine, "savepoint", note := lambda _connection, name: savepoints.append(name))
    harness.deliver()
    event.remove(Engine, "savepoint", note)
    # To try each row that waits for another one beside all others would take twice as many.
    assert len(savepoints) < 4000
    assert {record.kafka_offset for record, _ in reporter.reports} == lost
    assert database.execute("SELECT count(*) FROM topic") == [(200,)]


@cases(
    "statement",
    "CREATE VIEW topic AS SELECT * FROM rows",
    (
        "CREATE TABLE topic (LIKE rows); CREATE RULE moved AS ON INSERT TO topic"
        " DO INSTEAD INSERT INTO rows VALUES (NEW.*)"
    ),
)
def test_rows_are_inserted_where_copy_would_not_write_them(
    database: Database, statement: str
) -> None:
    """COPY refuses a view and ignores a rule, so INSERT writes there."""
    database.execute("CREATE TABLE rows (id int, v text)", statement)
    harness = database.sink(reporter := RecordingReporter(), errors_tolerance="all")
    for number, text in enumerate(("a", "\0", "b")):
        harness.send(Struct.of_checked(ROW, [number, text]), value_schema=ROW)
    harness.deliver()
    assert [record.kafka_offset for record, _ in reporter.reports] == [1]
    assert database.execute("SELECT * FROM rows ORDER BY id") == [(0, "a"), (2, "b")]


@cases("mode", "insert", "upsert", "update")
def test_a_field_may_have_any_name(database: Database, mode: str) -> None:
    """A field may have the name that the sink's statements use."""
    names = ["id", "__connect_row", "p0", "_p1", 'a"b', "a%b", "a:b", "%(p0)s", "select"]
    quoted = ", ".join(f'"{name.replace(chr(34), chr(34) * 2)}" int' for name in names[1:])
    database.execute(f"CREATE TABLE topic (id int PRIMARY KEY, {quoted})")
    if mode == "update":
        database.execute("INSERT INTO topic SELECT generate_series(0, 59)")
    key = {"pk_mode": "record_value", "pk_fields": "id", "insert_mode": mode}
    harness = database.sink(**key)
    builder = SchemaBuilder.struct()
    for name in names:
        builder.field(name, SchemaBuilder.int32())
    schema = builder.build()
    for number in range(60):
        row = [number, *range(1, len(names))]
        harness.send(Struct.of_checked(schema, row), value_schema=schema)
    harness.deliver()
    expected = [(number, *range(1, len(names))) for number in range(60)]
    assert database.execute("SELECT * FROM topic ORDER BY id") == expected


def test_a_refused_row_fails_the_task_and_leaves_nothing(database: Database) -> None:
    """Without a reporter the batch is rolled back, and the error names the record."""
    database.execute("CREATE TABLE topic (id int PRIMARY KEY, v varchar(3))")
    harness = database.sink()
    for number, text in ((1, "a"), (2, "long"), (3, "b")):
        harness.send(Struct.of_checked(ROW, [number, text]), value_schema=ROW)
    with pytest.raises(DataException, match=r"Column v of table topic, record topic-0@1: "):
        harness.deliver()
    assert database.execute("SELECT * FROM topic") == []
    assert database.execute("SELECT next_offset FROM pyconnect_offsets") == [(None,)]


def test_a_sink_killed_between_report_and_commit_writes_each_row_once(database: Database) -> None:
    """A report may come twice if the sink is killed before the commit, but a row may not."""
    database.execute("CREATE TABLE topic (id int, v varchar(3))")

    class Killed(BaseException):
        """The end of the process."""

    class KillingReporter(RecordingReporter):
        def report(self, record, error):  # type: ignore[no-untyped-def]
            super().report(record, error)
            raise Killed

    harness = database.sink(KillingReporter(), errors_tolerance="all")
    successor = database.sink(reporter := RecordingReporter(), errors_tolerance="all")
    for each in (harness, successor):
        for number, text in ((1, "a"), (2, "long"), (3, "b")):
            each.send(Struct.of_checked(ROW, [number, text]), value_schema=ROW)
    harness.start()
    with pytest.raises(Killed):
        harness.deliver()
    successor.start()
    successor.deliver()
    assert [record.kafka_offset for record, _ in reporter.reports] == [1]
    assert database.execute("SELECT id FROM topic ORDER BY id") == [(1,), (3,)]


def test_errors_of_the_connection_are_not_those_of_rows(database: Database) -> None:
    """The write is tried again after an error of the connection, and nothing is reported."""
    database.execute("CREATE TABLE topic (id int, v varchar(3))")
    reporter = RecordingReporter()
    harness = database.sink(reporter, errors_tolerance="all")
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE datname = '{database.name}' AND pid <> pg_backend_pid()"
    )
    harness.send(Struct.of_checked(ROW, [1, "long"]), value_schema=ROW)
    assert harness.deliver() == []
    assert reporter.reports == []
    harness.deliver()
    assert len(reporter.reports) == 1


def test_no_value_is_rounded_on_its_way_into_a_column(database: Database) -> None:
    """Values that PostgreSQL would round, cut or convert without an error are refused."""
    cases: list[tuple[str, SchemaBuilder, object]] = [
        ("int", SchemaBuilder.float64(), 1.5),
        ("int", decimal_builder(1), Decimal("1.5")),
        ("numeric(10, 1)", decimal_builder(2), Decimal("1.25")),
        ("numeric(10, 1)", SchemaBuilder.float64(), 1.25),
        ("timestamp(0)", timestamp_builder(), datetime(2024, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)),
        ("date", timestamp_builder(), datetime(2024, 1, 1, 10, tzinfo=UTC)),
        ("time(0)", time_builder(), time(10, 0, 0, 500_000)),
        ("float8", SchemaBuilder.int64(), 2**53 + 1),
        ("float8", decimal_builder(0), Decimal(10) ** 400),
        ("float8", SchemaBuilder.string(), "1e400"),
        ("real", decimal_builder(10), Decimal("1.2345678901")),
        ("real", SchemaBuilder.int32(), 16777217),
        ("text", SchemaBuilder.bytes(), b"\xff"),
        ("bytea", SchemaBuilder.string(), "a\\134b"),
        ("timestamp", SchemaBuilder.string(), "12024-01-01 10:00:00+02"),
        ("varchar(2)", SchemaBuilder.string(), "a  "),
        ("timestamptz", date_builder(), date(2024, 1, 1)),
        ("interval", SchemaBuilder.bytes(), b"1 day"),
        ("interval", SchemaBuilder.int64(), 5),
        ("bit(3)", SchemaBuilder.int32(), 101),
        ("priced", SchemaBuilder.string(), "(1.239,)"),
        ("priced", SchemaBuilder.string(), '(,"abc  ")'),
        ("priced[]", SchemaBuilder.string(), '{"(1.239,)"}'),
        ("price[]", SchemaBuilder.string(), "{1.239}"),
        ("price[]", SchemaBuilder.string(), "[1.239]"),
        ("prices", SchemaBuilder.string(), "{1.239}"),
        ("span", SchemaBuilder.string(), "00:00:01.5"),
        ("floats", SchemaBuilder.string(), "[0.1234567890123456789,2)"),
        ("point", SchemaBuilder.string(), "(0.1234567890123456789,1)"),
        ("cube", SchemaBuilder.string(), "(0.1234567890123456789, 1)"),
        ("hstore", SchemaBuilder.string(), 'a=>1, "a"=>2'),
        ("daterange", SchemaBuilder.string(), "[2024-01-01 10:00,)"),
        ("tsrange", SchemaBuilder.string(), "[2024-01-01 10:00+02,)"),
        ("timestamp[]", SchemaBuilder.string(), "{2024-01-01 10:00:00.1234567}"),
    ]
    database.execute(
        "CREATE EXTENSION cube",
        "CREATE EXTENSION hstore",
        "CREATE TYPE priced AS (price numeric(5, 2), code varchar(3))",
        "CREATE DOMAIN price AS numeric(5, 2)",
        "CREATE DOMAIN prices AS numeric(5, 2)[]",
        "CREATE DOMAIN span AS interval day to second(0)",
        "CREATE TYPE floats AS RANGE (subtype = float8)",
    )
    for number, (kind, builder, value) in enumerate(cases):
        database.execute(f"CREATE TABLE t{number} (v {kind})")
        for mode in ("insert", "upsert"):
            settings = {"insert_mode": mode, "table_name_format": f"t{number}"}
            if mode == "upsert":
                settings |= {"pk_mode": "record_value", "pk_fields": "v"}
            harness = database.sink(**settings)
            schema = fields(v=builder.build())
            harness.send(Struct.of_checked(schema, [value]), value_schema=schema)
            with pytest.raises(DataException, match=rf"Column v of table t{number}"):
                harness.deliver()
            harness.task.stop()


def test_null_stays_null_beside_a_default(database: Database) -> None:
    """Only a converter replaces null, but a required field has its default."""
    schema = fields(
        a=SchemaBuilder.int32().optional().default(5).build(),
        b=SchemaBuilder.int32().default(6).build(),
    )
    harness = database.sink(auto_create="true")
    harness.send(Struct.of_checked(schema, [None, None]), value_schema=schema)
    harness.deliver()
    assert database.execute("SELECT a, b FROM topic") == [(None, 6)]


@cases("mode", "insert", "upsert")
def test_a_column_that_changes_under_a_task_is_looked_at_again(
    database: Database, mode: str
) -> None:
    """The table is reflected again: a narrower column would round, a wider one can hold more."""
    database.execute("CREATE TABLE topic (id int PRIMARY KEY, v numeric(10, 2))")
    reporter = RecordingReporter()
    keyed = {"pk_mode": "record_value", "pk_fields": "id", "insert_mode": mode}
    harness = database.sink(reporter, **keyed)
    schema = (
        SchemaBuilder.struct().field("id", SchemaBuilder.int32()).field("v", decimal_builder(2))
    )

    def send(number: str) -> None:
        for _ in range(60):
            row = Struct(schema.build()).put("v", Decimal(number)).put("id", next(ids))
            harness.send(row, value_schema=row.schema)
        harness.deliver()

    ids = iter(range(1000))
    send("1.50")
    database.execute("ALTER TABLE topic ALTER v TYPE numeric(10, 0)")
    send("2.50")
    assert len(reporter.reports) == 60
    send("3.00")
    database.execute("ALTER TABLE topic ALTER v TYPE numeric(10, 1)")
    send("4.50")
    harness.stop()
    assert len(reporter.reports) == 60
    found = database.execute("SELECT v, count(*) FROM topic GROUP BY v ORDER BY v")
    assert found == [(Decimal(2), 60), (Decimal(3), 60), (Decimal("4.5"), 60)]


def test_times_with_and_without_a_zone_are_of_one_order_in_utc_only(database: Database) -> None:
    """PostgreSQL compares local times with instants as if in UTC: rows would come hours late."""
    database.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, a timestamptz, b timestamp)",
        "INSERT INTO odd VALUES (1, NULL, '2024-01-01'), (2, '2024-01-02Z', NULL)",
    )
    both = {"mode": "timestamp+incrementing", "timestamp_column_name": "a,b"}
    harness = database.source(**both)
    assert values(harness.run(2), "id") == [1, 2]
    harness.stop()
    harness = database.source(db_timezone="Asia/Tokyo", **both)
    with pytest.raises(ConnectException, match="Some of the columns a, b of table odd have a time"):
        harness.poll()
