"""Both connectors on a real MariaDB: types, cursors, upsert, offsets under locks."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest

from pyconnect_api import (
    OPTIONAL_STRING_SCHEMA,
    ConnectException,
    SchemaBuilder,
    Struct,
    TopicPartition,
    decimal_builder,
    timestamp_builder,
)
from pyconnect_api.testing import RecordingReporter, SourceHarness
from pyconnect_connectors.sql.source import SqlSourceTask
from tests.connectors.schemas import fields
from tests.connectors.sql.served import BY_BOTH, Database, values
from tests.support.eventually import eventually
from tests.support.servers.mariadb import MariaDbServer

pytestmark = pytest.mark.wire


@pytest.fixture
def database(mariadb: MariaDbServer) -> Iterator[Database]:
    writes = {"auto.create": "true"}
    made = Database(server=mariadb, name=mariadb.new_database(), reads=BY_BOTH, writes=writes)
    with closing(made) as found:
        yield found


ORDER = fields(id=SchemaBuilder.int32(), item=OPTIONAL_STRING_SCHEMA)
LARGE_ROWS, LARGE_BYTES = 10_000, 80_000_000
"""Larger than the socket buffers of both ends, which may be 36 MB on recent kernels."""
KEY = fields(id=SchemaBuilder.int32())


def order(number: int, item: str | None) -> Struct:
    return Struct(ORDER).put("id", number).put("item", item)


def create_large_table(database: Database) -> None:
    database.execute(
        "CREATE TABLE orders AS SELECT seq AS id, timestamp'2024-01-01 00:00:00' AS changed,"
        f" repeat('x', {LARGE_BYTES // LARGE_ROWS}) AS note FROM seq_1_to_{LARGE_ROWS}"
    )


def test_quotes_in_names_and_columns_without_an_order(database: Database) -> None:
    """ORDER BY takes the members of an ENUM by their numbers, a comparison by their texts."""
    database.execute("CREATE TABLE orders (`a``%:b` int PRIMARY KEY, kind enum('b','a'))")
    database.execute("INSERT INTO orders VALUES (1, 'b'), (2, 'a')")
    settings = {"mode": "incrementing", "incrementing_column_name": "a`%:b"}
    harness = database.source(**settings)
    assert [r.value.get("a`%:b") for r in harness.run(2) if isinstance(r.value, Struct)] == [1, 2]
    harness.stop()
    harness = database.source(**{**settings, "incrementing_column_name": "kind"})
    with pytest.raises(ConnectException, match="Column kind of table orders is neither"):
        harness.poll()


def test_a_row_waits_until_no_other_can_get_its_time(database: Database) -> None:
    """A DATETIME without a fraction is a whole second, which has to be over before it is read."""
    database.execute("CREATE TABLE sale (id int, at datetime)")
    database.execute("INSERT INTO sale VALUES (1, utc_timestamp())")
    settings = {"mode": "timestamp", "timestamp.column.name": "at", "poll.interval.ms": "1"}
    harness = SourceHarness(SqlSourceTask, {**database.config(), **settings, "tables": "sale"})
    harness.start()
    harness.run(1, max_polls=100_000)
    assert database.execute("SELECT at < utc_timestamp() FROM sale") == [(1,)]


def test_a_large_table_is_read_through_a_cursor_of_the_server(
    mariadb: MariaDbServer, database: Database
) -> None:
    """One query reads a large table; the server keeps its other rows until they are read."""
    create_large_table(database)
    harness = database.source(batch_max_rows="500")
    assert values(harness.poll()) == list(range(1, 501))
    query = "SELECT state FROM information_schema.processlist WHERE db = %s AND command = 'Query'"
    eventually(lambda: mariadb.execute(None, query, [database.name]) == [("Writing to net",)])
    assert values(harness.run(LARGE_ROWS - 500)) == list(range(501, LARGE_ROWS + 1))


def test_a_source_stops_in_the_middle_of_a_table(
    mariadb: MariaDbServer, database: Database
) -> None:
    """A source stops without reading the rest of the table, and without leaving a session."""
    create_large_table(database)
    before = sent_bytes(mariadb)
    harness = database.source(batch_max_rows="500")
    harness.poll()
    harness.stop()
    assert sent_bytes(mariadb) - before < LARGE_BYTES - 20_000_000
    sessions = "SELECT 1 FROM information_schema.processlist WHERE db = %s"
    eventually(lambda: mariadb.execute(None, sessions, [database.name]) == [])


def sent_bytes(mariadb: MariaDbServer) -> int:
    ((_, count),) = mariadb.execute(None, "SHOW GLOBAL STATUS LIKE 'Bytes_sent'")
    return int(count)


def test_a_query_has_the_types_of_its_columns(database: Database) -> None:
    """A query has the types of its columns, also in a new session after a passing failure."""
    database.execute("CREATE TABLE orders (id int PRIMARY KEY, price decimal(12, 2))")
    database.execute("INSERT INTO orders VALUES (1, 5), (2, 6), (3, 0), (4, 7)")
    query = "SELECT id, price, concat(price, ' :%') AS label FROM orders WHERE price > 1 -- all;"
    harness = database.source(
        query=query, mode="incrementing", topic_prefix="q", batch_max_rows="2"
    )
    records = harness.run(3)
    assert [record.source_offset for record in records] == [{"incrementing": n} for n in (1, 2, 4)]
    assert isinstance(records[0].value, Struct)
    assert records[0].value.stored_values() == [1, Decimal("5.00"), "5.00 :%"]
    database.execute("INSERT INTO orders VALUES (5, 8)")
    (record,) = harness.run(1)
    assert record.source_offset == {"incrementing": 5}


def test_types_of_columns_become_types_of_records(database: Database) -> None:
    """Zones, scales and nulls are kept, and types that Connect lacks are texts."""
    database.execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY, tiny tinyint, flag boolean, small smallint,"
        " wide int unsigned, price decimal(12, 2), ratio float, weight double, picture blob,"
        " fixed binary(2), bits bit(9), day date, at time, changed timestamp(6) NULL,"
        " plain datetime(3), made year, doc json, kind enum('a', 'b'), note varchar(10) NOT NULL,"
        " missing decimal(5, 1))"
    )
    database.execute(
        "INSERT INTO orders VALUES (1, 2, true, 3, 4000000000, 12.5, 0.5, 0.25, x'00ff', x'0102',"
        " b'100000001', '2024-06-01', '12:30', '2024-06-01 10:00:00.123456',"
        " '2024-06-01 12:00:00.5', 2024, '{\"a\": 1}', 'b', 'n', NULL)"
    )
    harness = database.source(db_timezone="Europe/Berlin", mode="incrementing")
    (record,) = harness.run(1)
    assert isinstance(record.value, Struct)
    value = {field.name: record.value.get(field) for field in record.value.schema.fields}
    assert value == {
        "id": 1,
        "tiny": 2,
        "flag": 1,
        "small": 3,
        "wide": 4_000_000_000,
        "price": Decimal("12.50"),
        "ratio": 0.5,
        "weight": 0.25,
        "picture": b"\x00\xff",
        "fixed": b"\x01\x02",
        "bits": b"\x01\x01",
        "day": date(2024, 6, 1),
        "at": time(12, 30),
        "changed": datetime(2024, 6, 1, 10, 0, 0, 123_456, tzinfo=UTC),
        "plain": datetime(2024, 6, 1, 10, 0, 0, 500_000, tzinfo=UTC),
        "made": "2024",
        "doc": '{"a": 1}',
        "kind": "b",
        "note": "n",
        "missing": None,
    }
    record.value.validate()


def test_rows_are_added_replaced_and_deleted_by_key(database: Database) -> None:
    """The last record of each key counts, and a record without value removes its row."""
    harness = database.sink(insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    for number, item in ((1, "a"), (2, "b"), (1, "c"), (3, "d"), (2, None)):
        value = None if item is None else order(number, item)
        schema = None if item is None else ORDER
        key = Struct(KEY).put("id", number)
        harness.send(value, value_schema=schema, key=key, key_schema=KEY)
    harness.deliver()
    assert database.execute("SELECT * FROM topic ORDER BY id") == [(1, "c"), (3, "d")]
    database.execute("ALTER TABLE topic RENAME COLUMN item TO old")
    key = Struct(KEY).put("id", 4)
    harness.send(order(4, "e"), value_schema=ORDER, key=key, key_schema=KEY)
    with pytest.raises(ConnectException, match="Table topic lacks the columns item; add them"):
        harness.deliver()


def test_a_new_task_continues_at_the_stored_offset_and_fences_the_old_one(
    database: Database,
) -> None:
    """The zombie's transaction finds another epoch, even if Kafka has no committed offset."""
    zombie, successor = database.new_sink(), database.new_sink()
    zombie.start()
    for harness in (zombie, successor):
        for number in range(3):
            harness.send(order(number, "x"), value_schema=ORDER)
    zombie.deliver(2)
    successor.start()
    with pytest.raises(ConnectException, match="taken over by another task"):
        zombie.deliver()
    assert [record.kafka_offset for record in successor.deliver()] == [2]
    rows = database.execute("SELECT id FROM topic ORDER BY id")
    assert rows == [(0,), (1,), (2,)]


def test_a_lost_connection_is_made_again(mariadb: MariaDbServer, database: Database) -> None:
    """Source and sink make a new connection and continue where they were."""
    database.execute(
        "CREATE TABLE orders AS SELECT seq AS id, timestamp'2024-01-01 00:00:00' AS changed"
        " FROM seq_1_to_100"
    )
    reading = database.source(batch_max_rows="30")
    writing = database.new_sink()
    writing.start()
    seen = values(reading.poll())
    sessions = "SELECT id FROM information_schema.processlist WHERE db = %s"
    for (session,) in mariadb.execute(None, sessions, [database.name]):
        mariadb.execute(None, f"KILL {session}")
    seen += values(reading.run(70))
    writing.assign(TopicPartition("topic", 1))
    writing.send(order(1, "x"), value_schema=ORDER)
    writing.deliver()
    assert seen == list(range(1, 101))
    assert database.execute("SELECT id FROM topic") == [(1,)]


def test_a_row_above_the_packets_of_the_server_is_reported(database: Database) -> None:
    """The record is reported: the server would end the connection at each attempt."""
    (most_bytes,) = database.execute("SELECT @@global.max_allowed_packet")[0]
    database.execute("CREATE TABLE topic (id int PRIMARY KEY, item longtext)")
    reporter = RecordingReporter()
    writing = database.new_sink(reporter)
    writing.start()
    writing.assign(TopicPartition("topic", 1))
    for number, item in ((1, "a"), (2, "x" * most_bytes), (3, "b")):
        writing.send(order(number, item), value_schema=ORDER)
    writing.deliver()
    [(record, error)] = reporter.reports
    assert record.kafka_offset == 1
    assert "max_allowed_packet" in str(error)
    assert database.execute("SELECT id FROM topic ORDER BY id") == [(1,), (3,)]


def test_types_of_records_become_types_of_columns(database: Database) -> None:
    """Columns that the sink creates hold every digit and every millisecond."""
    schema = fields(
        price=decimal_builder(4),
        at=timestamp_builder(),
        raw=SchemaBuilder.bytes(),
        long=SchemaBuilder.string(),
        item=OPTIONAL_STRING_SCHEMA,
    )
    at = datetime(2024, 6, 1, 10, 0, 0, 123_000, tzinfo=UTC)
    values = [Decimal("12345678901234567890.1234"), at, b"\x00\n", "ü" * 40_000, None]
    harness = database.sink(db_timezone="Europe/Berlin")
    harness.send(Struct.of_checked(schema, list(values)), value_schema=schema)
    harness.deliver()
    local = datetime(2024, 6, 1, 12, 0, 0, 123_000, tzinfo=UTC).replace(tzinfo=None)
    assert database.execute("SELECT * FROM topic") == [(values[0], local, *values[2:])]


def test_a_table_without_transactions_is_refused(database: Database) -> None:
    """In a table without transactions, rows would stay although the offsets are rolled back."""
    database.execute("CREATE TABLE topic (id int, item text) ENGINE=Aria")
    harness = database.sink()
    harness.send(order(1, "x"), value_schema=ORDER)
    with pytest.raises(ConnectException, match="has no transactions"):
        harness.deliver()
    assert database.execute("SELECT * FROM topic") == []
