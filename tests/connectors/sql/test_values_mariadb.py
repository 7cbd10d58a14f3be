"""Odd values of MariaDB in both directions: none changes silently, none stops a table."""

import unicodedata
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, time
from decimal import Decimal

import pytest

from pyconnect_api import (
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    SchemaBuilder,
    Struct,
    TopicPartition,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_api.testing import RecordingReporter, SinkHarness
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.sink import SqlSinkTask
from tests.connectors.schemas import fields
from tests.connectors.sql.served import BY_ID, Database, values
from tests.support.cases import cases
from tests.support.servers.mariadb import MariaDbServer

pytestmark = pytest.mark.wire


@pytest.fixture
def database(mariadb: MariaDbServer) -> Iterator[Database]:
    with closing(
        Database(
            server=mariadb,
            name=mariadb.new_database(),
            reads=BY_ID,
            session="SET sql_mode = 'ALLOW_INVALID_DATES'",
        )
    ) as found:
        yield found


LAX = "?init_command=SET+SESSION+sql_mode%3D%27ANSI_QUOTES%27"
"""An argument of the URL that asks for a session without checks."""


UNSIGNED = (5, 2**63 - 1, 2**63, 2**64 - 1)


@cases("query", None, "SELECT * FROM odd", "SELECT id, v + 0 AS v FROM odd")
def test_an_unsigned_number_beyond_64_bits_never_becomes_another_one(
    database: Database, query: str | None
) -> None:
    """An unsigned number keeps its value as a field, a key or a position."""
    rows = ", ".join(f"({number}, {number})" for number in UNSIGNED)
    database.execute(
        "CREATE TABLE odd (id bigint unsigned PRIMARY KEY, v bigint unsigned)",
        f"INSERT INTO odd VALUES {rows}",
    )
    settings = {"topic_prefix": "t"} if query is None else {"topic_prefix": "t", "query": query}
    harness = database.source(values_out_of_range="text", **settings)
    records = harness.run(len(UNSIGNED))
    texts = [str(number) for number in UNSIGNED]
    assert values(records, "id") == values(records, "v") == texts
    positions = [n if n < 2**63 else str(n) for n in UNSIGNED]
    assert [r.source_offset for r in records] == [{"incrementing": n} for n in positions]
    harness.commit()
    harness.restart()
    assert harness.poll() == []
    harness.stop()
    harness = database.source(errors_tolerance="all", **settings)
    assert values(harness.run(2), "v") == list(UNSIGNED[:2])
    assert harness.poll() == []
    harness.stop()
    harness = database.source(**settings)
    assert values(harness.run(2), "v") == list(UNSIGNED[:2])
    with pytest.raises(OddValueException, match="a whole number does not fit INT64"):
        harness.poll()


def test_types_without_a_schema_keep_what_the_database_has(database: Database) -> None:
    """Sets keep their order, geometries are the stored bytes, and floats have all digits."""
    database.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, colours set('red', 'green', 'blue'),"
        " place point, area geometry, address inet6, ident uuid, made year, ratio float,"
        " tiny tinyblob, medium mediumblob, wide longblob, doc json, huge decimal(65, 30),"
        " clock time(6), fixed char(3), small tinytext, big bigint unsigned)",
        "INSERT INTO odd VALUES (1, 'blue,red', ST_GeomFromText('POINT(1 2)', 4326),"
        " ST_GeomFromText('LINESTRING(0 0, 1 1)'), '::1',"
        " '00000000-0000-0000-0000-000000000001', '0000', 16777217.5, 'a', x'00ff', 'b',"
        " '{\"a\": 12345678901234567890.123456789}', 1.000000000000000000000000000001,"
        " '10:00:00.000001', 'a', 'ü', 9223372036854775807)",
    )
    ((place, area),) = database.execute("SELECT place, area FROM odd")
    harness = database.source()
    (record,) = harness.run(1)
    assert isinstance(record.value, Struct)
    assert record.value.stored_values() == [
        1,
        "red,blue",
        place,
        area,
        "::1",
        "00000000-0000-0000-0000-000000000001",
        "0000",
        16777218.0,
        b"a",
        b"\x00\xff",
        b"b",
        '{"a": 12345678901234567890.123456789}',
        Decimal("1.000000000000000000000000000001"),
        time(10, 0, 0, 1),
        "a",
        "ü",
        9223372036854775807,
    ]
    record.value.validate()


def test_what_was_read_can_be_written_into_a_table_of_the_same_types(database: Database) -> None:
    """No value changes on the way from a table to its copy, whatever the server's mode is."""
    columns = (
        "id int PRIMARY KEY, colours set('red', 'green', 'blue'), mood enum('sad', 'ok'),"
        " place point, area geometry, address inet6, ident uuid, made year, ratio float,"
        " weight double, flag boolean, bits bit(9), fixed binary(2), wide longblob, note text,"
        " doc json, huge decimal(65, 30), clock time(6), day date, at datetime(6),"
        " stamp timestamp(3) NULL, big bigint unsigned, code varchar(3)"
    )
    database.execute(
        f"CREATE TABLE odd ({columns})",
        f"CREATE TABLE topic ({columns})",
        "INSERT INTO odd VALUES (1, 'blue,red', 'ok', ST_GeomFromText('POINT(1 2)', 4326),"
        " ST_GeomFromText('LINESTRING(0 0, 1 1)'), '::1',"
        " '00000000-0000-0000-0000-000000000001', '0000', 3.4e38, 0.1, true, b'100000001',"
        " x'0001', x'00ff', 'ü\\\\\\'', '{\"a\": 1.10}', -0.000000000000000000000000000001,"
        " '23:59:59.999999', '0001-01-01', '9999-12-31 23:59:59.999999', '2024-06-01 10:00:00.5',"
        " 9223372036854775807, 'abc')",
        "INSERT INTO odd (id) VALUES (2)",
    )
    harness = database.source()
    records = harness.run(2)
    harness.stop()
    key = {"pk_mode": "record_value", "pk_fields": "id", "insert_mode": "upsert"}
    writer = database.sink(connection_url=database.url + LAX, **key)
    for record in records:
        writer.send(record.value, value_schema=record.value_schema)
    writer.deliver()
    writer.stop()
    assert database.execute("SELECT * FROM topic ORDER BY id") == database.execute(
        "SELECT * FROM odd ORDER BY id"
    )


def test_times_of_more_than_a_day_can_be_written_as_texts(database: Database) -> None:
    """Times of more than a day are read as texts, and can be written as such."""
    database.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, v time, n bigint unsigned)",
        "CREATE TABLE topic (id int PRIMARY KEY, v time, n bigint unsigned)",
        "INSERT INTO odd VALUES (1, '-838:59:59', 18446744073709551615)",
    )
    harness = database.source(values_out_of_range="text")
    (record,) = harness.run(1)
    writer = database.sink()
    writer.send(record.value, value_schema=record.value_schema)
    writer.deliver()
    query = "SELECT id, CAST(v AS CHAR), n FROM topic"
    assert database.execute(query) == [(1, "-838:59:59", 18446744073709551615)]


KEYS = ["a", "A", "a ", "ä", "é", "e\u0301", "ß", "ss", "", " "]


def test_a_text_key_of_a_table_that_is_created_tells_all_texts_apart(database: Database) -> None:
    """Keys differ by case, accents, composition and spaces at the end."""
    assert len({unicodedata.normalize("NFC", key) for key in KEYS}) < len(KEYS)
    settings = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "k"}
    harness = database.sink(auto_create="true", delete_enabled="true", **settings)
    schema = fields(v=SchemaBuilder.int32())
    for number, key in enumerate(KEYS):
        harness.send(
            Struct.of_checked(schema, [number]),
            value_schema=schema,
            key=key,
            key_schema=SchemaBuilder.string().build(),
        )
    harness.deliver()
    rows = database.execute("SELECT k, v FROM topic")
    assert sorted(rows, key=str) == sorted(((k, n) for n, k in enumerate(KEYS)), key=str)
    harness.send(None, key="A", key_schema=SchemaBuilder.string().build())
    harness.deliver()
    found = database.execute("SELECT k FROM topic")
    assert {key for (key,) in found} == set(KEYS) - {"A"}


NUMBER = fields(id=SchemaBuilder.int32())


def test_connectors_and_topics_that_differ_by_case_have_offsets_of_their_own(
    database: Database,
) -> None:
    """Names that differ by case, accent or a space at the end have offsets of their own."""
    for name in ("x-snk", "x-SNK", "x-snk ", "x-snḱ"):
        partitions = [TopicPartition("t", 0), TopicPartition("T", 0)]
        config = {
            "name": name,
            **database.config(),
            "auto.create": "true",
            "table.name.format": "of_${topic}",
        }
        harness = SinkHarness(SqlSinkTask, config, partitions=partitions)
        harness.start()
        for partition in partitions:
            harness.send(Struct.of_checked(NUMBER, [1]), value_schema=NUMBER, partition=partition)
        harness.deliver()
        harness.stop()
    rows = database.execute("SELECT count(*), min(next_offset) FROM pyconnect_offsets")
    assert rows == [(8, 1)]
    for table in ("of_t", "of_T"):
        assert database.execute(f"SELECT count(*) FROM {table}") == [(4,)]


def test_a_table_of_offsets_that_folds_names_is_changed_and_keeps_its_rows(
    database: Database,
) -> None:
    """The rows of an older version's table are kept, and the second connector gets its own."""
    database.execute(
        "CREATE TABLE pyconnect_offsets (connector varchar(200) NOT NULL, topic varchar(249)"
        " NOT NULL, kafka_partition int NOT NULL, epoch bigint NOT NULL, next_offset bigint,"
        " PRIMARY KEY (connector, topic, kafka_partition)) COLLATE utf8mb4_general_ci",
        "INSERT INTO pyconnect_offsets VALUES ('to-sql', 'topic', 0, 3, 7)",
    )
    harness = database.sink()
    other = database.sink(name="TO-mariadb")
    query = "SELECT connector, epoch, next_offset FROM pyconnect_offsets ORDER BY epoch"
    assert database.execute(query) == [("TO-mariadb", 1, None), ("to-sql", 4, 7)]
    for each in (harness, other):
        each.stop()


def test_columns_that_are_created_hold_large_values_in_any_session(database: Database) -> None:
    """Created columns hold texts beyond 64 KiB, fractions of times, and many digits."""
    schema = fields(
        text=SchemaBuilder.string(),
        raw=SchemaBuilder.bytes(),
        clock=time_builder(),
        at=timestamp_builder(),
        price=decimal_builder(30),
        coarse=decimal_builder(-3),
        ratio=SchemaBuilder.float32(),
    )
    values: list[object] = [
        "x" * 100_000,
        b"\0" * 100_000,
        time(10, 20, 30, 123_000),
        datetime(2024, 1, 1, 0, 0, 0, 1000, tzinfo=UTC),
        Decimal("12345678901234567890123456789012345." + "1" * 30),
        Decimal("1E+3"),
        16777216.0,
    ]
    url = database.url + LAX
    harness = database.sink(auto_create="true", connection_url=url)
    harness.send(Struct.of_checked(schema, values), value_schema=schema)
    harness.deliver()
    query = (
        "SELECT length(text), length(raw), CAST(clock AS CHAR), CAST(at AS CHAR), price, coarse,"
        " ratio FROM topic"
    )
    assert database.execute(query) == [
        (
            100_000,
            100_000,
            "10:20:30.123",
            "2024-01-01 00:00:00.001",
            values[4],
            Decimal(1000),
            16777216.0,
        )
    ]


ROW = fields(id=SchemaBuilder.int32(), v=OPTIONAL_STRING_SCHEMA)


def test_a_row_that_a_view_does_not_show_is_reported(database: Database) -> None:
    """A view's WITH CHECK OPTION refuses one row, and the other rows are written."""
    view = "CREATE VIEW topic AS SELECT * FROM stored WHERE id > 0 WITH CHECK OPTION"
    database.execute("CREATE TABLE stored (id int, v text)", view)
    harness = database.sink(reporter := RecordingReporter(), errors_tolerance="all")
    for number in range(3):
        harness.send(Struct.of_checked(ROW, [number, "a"]), value_schema=ROW)
    harness.deliver()
    assert [record.kafka_offset for record, _ in reporter.reports] == [0]
    assert database.execute("SELECT id FROM stored ORDER BY id") == [(1,), (2,)]


def test_values_that_do_not_fit_become_null_when_asked(database: Database) -> None:
    """Values that do not fit become null, but not in keys or columns that are never null."""
    database.execute("CREATE TABLE topic (id double NOT NULL, v double)")
    schema = fields(id=SchemaBuilder.float64(), v=SchemaBuilder.float64())
    harness = database.sink(values_out_of_range="null")
    harness.send(Struct.of_checked(schema, [1.0, float("nan")]), value_schema=schema)
    harness.deliver()
    assert database.execute("SELECT * FROM topic") == [(1.0, None)]
    harness.send(Struct.of_checked(schema, [float("inf"), 1.0]), value_schema=schema)
    with pytest.raises(OddValueException, match="Column id of table topic, record topic-0@1: inf"):
        harness.deliver()


def test_numbers_and_texts_without_schema_do_not_become_times(database: Database) -> None:
    """Numbers and texts of digits are refused for times: MariaDB would read 1000 as ten minutes."""
    database.execute("CREATE TABLE topic (c time, d date, t datetime, raw blob)")
    cases: list[tuple[str, object]] = [
        ("c", 1000),
        ("d", 240601),
        ("t", 20240601102030),
        ("raw", "AP8="),
        ("t", "2024-06-01T10:00:00.5+02:00"),
    ]
    for column, value in cases:
        harness = database.sink()
        harness.send({column: value})
        with pytest.raises(OddValueException, match=f"Column {column} of table topic"):
            harness.deliver()


def test_what_mariadb_would_fill_in_or_not_find(database: Database) -> None:
    """0 stays 0, null is refused for a TIMESTAMP, and a key of 4 bytes finds its row."""
    database.execute(
        "CREATE TABLE topic (id int AUTO_INCREMENT PRIMARY KEY, at timestamp NOT NULL"
        " DEFAULT current_timestamp)",
        "CREATE TABLE narrow (id float PRIMARY KEY)",
    )
    reporter = RecordingReporter()
    by_id = {"insert_mode": "upsert", "pk_mode": "record_key", "pk_fields": "id"}
    harness = database.sink(reporter, **by_id)
    time_schema = fields(at=timestamp_builder().optional())
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    for at in (moment, None, moment):
        row = Struct(time_schema).put("at", at)
        harness.send(row, value_schema=time_schema, key=0, key_schema=INT32_SCHEMA)
    harness.deliver()
    harness.stop()
    assert database.execute("SELECT id FROM topic") == [(0,)]
    ((record, error),) = reporter.reports
    assert record.kafka_offset == 1
    assert "Column at of table topic, record topic-0@1: null" in str(error)
    keyed = {**by_id, "delete_enabled": "true", "table_name_format": "narrow"}
    harness = database.sink(name="narrow", **keyed)
    empty = fields(id=FLOAT64_SCHEMA)
    for value in (Struct(empty).put("id", 0.1), None):
        schema = None if value is None else empty
        harness.send(value, value_schema=schema, key=0.1, key_schema=FLOAT64_SCHEMA)
        harness.deliver()
        left = [(1,)] if value is not None else [(0,)]
        assert database.execute("SELECT count(*) FROM narrow") == left


def test_what_mariadb_would_cut_without_an_error_is_refused(database: Database) -> None:
    """Spaces beyond the bytes of a TEXT, and a member of a SET that comes twice, are kept."""
    database.execute(
        "CREATE TABLE topic (id int, t tinytext, l tinytext CHARACTER SET latin1,"
        " u tinytext CHARACTER SET ucs2, x text, s set('a', 'b')) CHARSET utf8mb4",
        "CREATE TABLE latin (l tinytext) CHARSET latin1",
    )
    fit = {
        "t": ["a".ljust(255), "ü" * 127 + " "],
        "l": ["ü".ljust(255)],
        "u": ["a".ljust(127)],
        "x": ["a".ljust(2**16 - 1)],
        "s": ["a,b", ""],
    }
    cut = {
        "t": ["a".ljust(256), "ü" * 127 + "  "],
        "l": ["ü".ljust(256)],
        "u": ["a".ljust(128)],
        "x": ["a".ljust(2**16)],
        "s": ["a,a", ",a"],
    }
    harness = database.sink(reporter := RecordingReporter())
    for given in (fit, cut):
        for column, texts in given.items():
            for text in texts:
                harness.send({column: text})
    harness.deliver()
    harness.stop()
    kept = database.execute("SELECT t, l, u, x, s FROM topic")
    found = [text for row in kept for text in row if text is not None]
    assert found == [text for texts in fit.values() for text in texts]
    assert len(reporter.reports) == sum(map(len, cut.values()))
    harness = database.sink(name="latin", table_name_format="latin")
    harness.send({"l": "ü".ljust(255)})
    harness.deliver()
    harness.stop()
    assert database.execute("SELECT length(l) FROM latin") == [(255,)]


def test_a_column_that_changes_under_a_task_is_looked_at_again(database: Database) -> None:
    """The table is reflected again, because a narrower column would round values."""
    database.execute("CREATE TABLE topic (v decimal(10, 2))")
    reporter = RecordingReporter()
    harness = database.sink(reporter)
    schema = fields(v=decimal_builder(2))
    for number, scale in (("1.00", 0), ("2.50", 1), ("3.50", 2)):
        harness.send(Struct(schema).put("v", Decimal(number)), value_schema=schema)
        harness.deliver()
        database.execute(f"ALTER TABLE topic MODIFY v decimal(10, {scale})")
    harness.stop()
    assert [record.kafka_offset for record, _ in reporter.reports] == [1]
    assert database.execute("SELECT v FROM topic") == [(Decimal(1),), (Decimal("3.5"),)]


def test_null_never_becomes_the_next_number(database: Database) -> None:
    """Null is refused for AUTO_INCREMENT, while a record without the field gets a number."""
    database.execute("CREATE TABLE topic (id int AUTO_INCREMENT PRIMARY KEY, v int)")
    reporter = RecordingReporter()
    harness = database.sink(reporter)
    for name, number in (("id", None), ("id", 7), ("v", 5)):
        schema = SchemaBuilder.struct().field(name, SchemaBuilder.int32().optional()).build()
        harness.send(Struct(schema).put(name, number), value_schema=schema)
    harness.deliver()
    harness.stop()
    assert [record.kafka_offset for record, _ in reporter.reports] == [0]
    assert database.execute("SELECT * FROM topic") == [(7, None), (8, 5)]
