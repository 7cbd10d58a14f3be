"""Both connectors on a real PostgreSQL: cursors, types, COPY, fencing under locks."""

import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import DBAPIError

from pyconnect_api import (
    OPTIONAL_STRING_SCHEMA,
    ConnectException,
    RetriableException,
    Schema,
    SchemaBuilder,
    Struct,
    TopicPartition,
    decimal_builder,
    timestamp_builder,
)
from pyconnect_connectors.sql.fencing import OffsetTable
from pyconnect_connectors.sql.sink import SqlSinkTask
from tests.connectors.schemas import fields
from tests.connectors.sql.served import BY_BOTH, Database, values
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.postgres import PASSWORD, PostgresServer

pytestmark = pytest.mark.wire


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    writes = {"auto.create": "true"}
    made = Database(server=postgres, name=postgres.new_database(), reads=BY_BOTH, writes=writes)
    with closing(made) as found:
        yield found


ORDER = fields(id=SchemaBuilder.int32(), item=OPTIONAL_STRING_SCHEMA)


def order(number: int, item: str | None) -> Struct:
    return Struct(ORDER).put("id", number).put("item", item)


def test_a_large_table_is_read_through_a_cursor_of_the_server(database: Database) -> None:
    """One query reads a large table, and only a batch of its rows has left the server."""
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT n AS id, timestamp '2024-01-01' AS changed, 'x' AS note"
            " FROM generate_series(1, 20000) AS n"
        )
        harness = database.source(batch_max_rows="500")
        assert values(harness.poll()) == list(range(1, 501))
        cursors = connection.execute(
            "SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction'"
            " AND datname = %s",
            [database.name],
        ).fetchall()
        assert len(cursors) == 1
        assert "FETCH FORWARD" in cursors[0][0]
        assert values(harness.run(19_500)) == list(range(501, 20_001))


def test_a_lost_connection_is_made_again_at_the_same_row(database: Database) -> None:
    """After a lost connection the rows of polled batches do not come again."""
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE orders AS SELECT n AS id, timestamp '2024-01-01' AS changed"
            " FROM generate_series(1, 100) AS n"
        )
        harness = database.source(batch_max_rows="30")
        seen = values(harness.poll())
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = %s AND pid <> pg_backend_pid()",
            [database.name],
        )
        assert harness.poll() == []
        seen += values(harness.run(70))
    assert seen == list(range(1, 101))


def test_types_of_columns_become_types_of_records(database: Database) -> None:
    """Zones, scales and nulls are kept, and types that Connect lacks are texts."""
    with database.connect() as connection:
        connection.execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY, small smallint, price numeric(12, 2),"
            " exact numeric, ratio real, weight double precision, paid boolean, picture bytea,"
            " day date, at time, changed timestamptz, plain timestamp, ident uuid, doc jsonb,"
            " tags text[], note varchar(10) NOT NULL)"
        )
        connection.execute(
            "INSERT INTO orders VALUES (1, 2, 12.5, 0.10, 0.5, 0.25, true, '\\x00ff', '2024-06-01',"
            " '12:30', '2024-06-01 12:00+02', '2024-06-01 12:00',"
            " '00000000-0000-0000-0000-000000000001', '{\"a\": 1}', '{x,y}', 'n')"
        )
    harness = database.source(db_timezone="Europe/Berlin")
    (record,) = harness.run(1)
    assert isinstance(record.value, Struct)
    value = {field.name: record.value.get(field) for field in record.value.schema.fields}
    ten = datetime(2024, 6, 1, 10, tzinfo=UTC)
    assert value == {
        "id": 1,
        "small": 2,
        "price": Decimal("12.50"),
        "exact": "0.10",
        "ratio": 0.5,
        "weight": 0.25,
        "paid": True,
        "picture": b"\x00\xff",
        "day": date(2024, 6, 1),
        "at": time(12, 30),
        "changed": ten,
        "plain": ten,
        "ident": "00000000-0000-0000-0000-000000000001",
        "doc": '{"a": 1}',
        "tags": '["x","y"]',
        "note": "n",
    }
    record.value.validate()


def test_a_query_has_the_types_of_its_columns(database: Database) -> None:
    """A temporary view gives the types of a query's columns."""
    with database.connect() as connection:
        connection.execute("CREATE TABLE orders (id int PRIMARY KEY, price numeric(12, 2))")
        connection.execute("INSERT INTO orders VALUES (1, 5), (2, 6)")
    query = "SELECT id, price, price::text || ' %' AS label FROM orders WHERE price > 1"
    harness = database.source(query=query, mode="incrementing", topic_prefix="q")
    records = harness.run(2)
    assert [record.source_offset for record in records] == [{"incrementing": n} for n in (1, 2)]
    assert isinstance(records[0].value, Struct)
    assert records[0].value.stored_values() == [1, Decimal("5.00"), "5.00 %"]


def staged(rows: psycopg.Connection) -> int:
    """Return how many temporary tables the sessions of the database have."""
    ((count,),) = rows.execute("SELECT count(*) FROM pg_class WHERE relname ~ '^pyconnect_rows_'")
    return int(count)


@cases("may_stage", True, False)
def test_many_upserts_leave_the_last_row_of_each_key(
    database: Database, *, may_stage: bool
) -> None:
    """Upserts keep each key's last row, with temporary tables and without them."""
    odd = SchemaBuilder.struct().field("Key", OPTIONAL_STRING_SCHEMA)
    schema = odd.field("50 %", OPTIONAL_STRING_SCHEMA).build()

    def odd_row(number: int, text: str) -> Struct:
        key = f"KEY {number}" if text.endswith("last") else f"key {number}"
        return Struct(schema).put("Key", key).put("50 %", text)

    settings = {"insert_mode": "upsert", "pk_mode": "record_value", "auto_create": "false"}
    with database.connect() as rows:
        rows.execute(
            "CREATE COLLATION anycase (provider=icu, locale='und-u-ks-level2', deterministic=false)"
        )
        rows.execute('CREATE TABLE topic ("Key" text COLLATE anycase PRIMARY KEY, "50 %" text)')
        if not may_stage:
            user = unique_name("writer")
            rows.execute(f'REVOKE TEMP ON DATABASE "{database.name}" FROM PUBLIC'.encode())
            rows.execute(f"CREATE ROLE \"{user}\" LOGIN PASSWORD '{PASSWORD}'".encode())
            rows.execute(f'GRANT SELECT, INSERT, UPDATE ON topic TO "{user}"'.encode())
            rows.execute(f'GRANT CREATE ON SCHEMA public TO "{user}"'.encode())
            settings["connection_user"] = user
        settings["pk_folding_keys"] = "allow"
        harness = database.sink(pk_fields="Key", **settings)
        for attempt in ("first", "then"):
            begun = [odd_row(n, attempt) for n in range(100)]
            replaced = [odd_row(n, f"{attempt} last") for n in range(99, 49, -1)]
            for row in (*begun, *replaced):
                harness.send(row, value_schema=schema)
            harness.deliver()
            assert dict(rows.execute('SELECT lower("Key"), "50 %" FROM topic').fetchall()) == {
                f"key {n}": attempt if n < 50 else f"{attempt} last" for n in range(100)
            }
        assert staged(rows) == int(may_stage)
        harness.stop()


def test_upserts_of_one_delivery_keep_the_order_of_their_shapes(database: Database) -> None:
    """A temporary table that is used twice in a transaction has the rows of one run only."""
    wide = SchemaBuilder.struct().field("id", SchemaBuilder.int32())
    schema = wide.field("item", OPTIONAL_STRING_SCHEMA).field("tag", OPTIONAL_STRING_SCHEMA).build()
    settings = {"insert_mode": "upsert", "pk_mode": "record_value", "auto_create": "false"}
    with database.connect() as rows:
        rows.execute("CREATE TABLE topic (id int PRIMARY KEY, item text, tag text)")
        harness = database.sink(pk_fields="id", **settings)
        for number in range(100):
            harness.send(order(number, "first"), value_schema=ORDER)
        for number in range(100):
            value = Struct(schema).put("id", number).put("item", "then")
            harness.send(value, value_schema=schema)
        for number in range(100, 200):
            harness.send(order(number, "last"), value_schema=ORDER)
        assert len(harness.deliver()) == 300
        found = rows.execute("SELECT item, min(id), count(*) FROM topic GROUP BY 1 ORDER BY 2")
        assert found.fetchall() == [("then", 0, 100), ("last", 100, 100)]
        assert staged(rows) == 2


def test_a_temporary_table_that_is_gone_is_made_again(database: Database) -> None:
    """A pool of connections may drop a temporary table, which the sink then creates again."""
    key = {"insert_mode": "upsert", "pk_mode": "record_value", "pk_fields": "id"}
    harness = database.new_sink(**key)
    task = harness.start()
    records = [harness.send(order(n, "x"), value_schema=ORDER) for n in range(200)]
    task.put(records[:100])
    assert isinstance(task, SqlSinkTask)
    assert task._connection is not None
    task._connection.exec_driver_sql("DISCARD TEMP")
    task._connection.commit()
    task.put(records[100:])
    with database.connect() as rows:
        assert rows.execute("SELECT count(*) FROM topic").fetchall() == [(200,)]
        assert staged(rows) == 1


def test_errors_show_no_values(database: Database) -> None:
    """Neither an error nor its cause, which is in the task's trace, shows a value."""
    harness = database.sink(pk_mode="record_value", pk_fields="id")
    for _ in range(2):
        harness.send(order(1, "a secret"), value_schema=ORDER)
    with pytest.raises(ConnectException, match="duplicate key") as caught:
        harness.deliver()
    assert caught.value.__suppress_context__
    assert "secret" not in str(caught.value)
    assert "(id)" not in str(caught.value)


def test_a_successor_waits_for_the_transaction_of_a_zombie(database: Database) -> None:
    """The successor continues after the zombie's transaction, and later ones of the zombie fail."""
    zombie, successor = database.new_sink(), database.new_sink()
    zombie.start()
    for harness in (zombie, successor):
        for number in range(3):
            harness.send(order(number, "x"), value_schema=ORDER)
    zombie.deliver(1)
    with database.connect() as held:
        # The zombie's second transaction has moved the offset and then hangs at the table.
        held.autocommit = False
        held.execute("LOCK TABLE topic IN ACCESS EXCLUSIVE MODE")
        writing = threading.Thread(target=zombie.deliver, args=(1,))
        writing.start()
        eventually(lambda: waiting(database) == 1)
        opening = threading.Thread(target=successor.start)
        opening.start()
        eventually(lambda: waiting(database) == 2)
        held.rollback()
        writing.join()
        opening.join()
    with pytest.raises(ConnectException, match="taken over by another task"):
        zombie.deliver()
    assert [record.kafka_offset for record in successor.deliver()] == [2]
    with database.connect() as connection:
        assert connection.execute("SELECT id FROM topic ORDER BY id").fetchall() == [
            (0,),
            (1,),
            (2,),
        ]


def waiting(database: Database) -> int:
    """Return the number of sessions that wait for a lock."""
    with database.connect() as connection:
        found = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'",
            [database.name],
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_a_sink_that_is_frozen_in_a_transaction_loses_its_locks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database ends the frozen sink's session, and the successor gets the lock."""
    monkeypatch.setattr("pyconnect_connectors.sql.database.IDLE_IN_TRANSACTION_MS", 500)
    frozen, successor = database.new_sink(), database.new_sink()
    task = frozen.start()
    assert isinstance(task, SqlSinkTask)
    assert task._connection is not None
    assert task._offsets is not None
    partition = TopicPartition("topic", 0)
    transaction = task._connection.begin()
    task._offsets.advance(task._connection, task._epochs, {partition: 5})
    successor.start()
    with pytest.raises(DBAPIError):
        transaction.commit()
    with database.connect() as connection:
        offsets = connection.execute("SELECT epoch, next_offset FROM pyconnect_offsets")
        assert offsets.fetchall() == [(2, None)]


def test_a_sink_whose_session_ended_in_a_transaction_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink goes on after a long pause of the process, in which its session has ended."""
    monkeypatch.setattr("pyconnect_connectors.sql.database.IDLE_IN_TRANSACTION_MS", 2_000)
    harness = database.new_sink()
    task = harness.start()
    records = [harness.send(order(n, "x"), value_schema=ORDER) for n in range(2)]
    advance = OffsetTable.advance

    def paused(*given: Any) -> None:
        advance(*given)
        eventually(lambda: not sessions(database))

    with monkeypatch.context() as first:
        first.setattr(OffsetTable, "advance", paused)
        with pytest.raises(RetriableException, match="Cannot write to the database: "):
            task.put(records)
    task.put(records)
    with database.connect() as connection:
        assert connection.execute("SELECT id FROM topic ORDER BY id").fetchall() == [(0,), (1,)]


def sessions(database: Database) -> list[int]:
    """Return the sessions of the database, as process ids of the server."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
    with database.server.connect() as connection:
        found = connection.execute(query, [database.name])
        return [pid for (pid,) in found]


@cases("mode", "insert", "upsert")
def test_rows_are_written_once_though_the_connection_is_lost_meanwhile(
    database: Database, mode: str
) -> None:
    """A connection that is lost during a write leaves neither rows nor offsets."""
    harness = database.new_sink(insert_mode=mode, pk_mode="record_value", pk_fields="id")
    task = harness.start()
    records = [harness.send(order(n, "x"), value_schema=ORDER) for n in range(200)]
    task.put(records[:100])
    writes = "COPY topic%" if mode == "insert" else "INSERT INTO topic%"

    def end_session() -> None:
        with database.connect() as connection:
            terminate = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE wait_event_type = 'Lock' AND query LIKE %s"
            )
            eventually(lambda: connection.execute(terminate, [writes]).fetchall() == [(True,)])

    ending = threading.Thread(target=end_session)
    with database.connect() as held:
        held.autocommit = False
        held.execute("LOCK TABLE topic IN EXCLUSIVE MODE")
        ending.start()
        with pytest.raises(RetriableException, match="Cannot write to the database: "):
            task.put(records[100:])
        ending.join()
    task.put(records[100:])
    with database.connect() as connection:
        rows = connection.execute("SELECT count(*), count(DISTINCT id) FROM topic").fetchall()
        assert rows == [(200, 200)]
        offsets = connection.execute("SELECT epoch, next_offset FROM pyconnect_offsets")
        assert offsets.fetchall() == [(1, 200)]


def test_a_server_that_vanished_is_noticed_soon(database: Database) -> None:
    """The limits of a connection are short, unless the URL sets others."""
    url = f"{database.url}?connect_timeout=3&tcp_user_timeout=7000"
    harness = database.new_sink(connection_url=url)
    task = harness.start()
    assert isinstance(task, SqlSinkTask)
    assert task._connection is not None
    driver: Any = task._connection.connection.driver_connection
    found = driver.info.get_parameters()
    wanted = {"connect_timeout": "3", "tcp_user_timeout": "7000", "keepalives_idle": "10"}
    assert wanted.items() <= found.items()


@cases("mode", "insert", "upsert")
@cases("creates", "true", "false")
def test_a_table_that_was_dropped_is_looked_for_again(
    database: Database, mode: str, creates: str
) -> None:
    """A table that was dropped is created again, or the error says what to do."""
    key = {"insert_mode": mode, "pk_mode": "record_value", "pk_fields": "id"}
    harness = database.new_sink(auto_create=creates, **key)
    task = harness.start()
    records = [harness.send(order(n, "x"), value_schema=ORDER) for n in range(200)]
    with database.connect() as connection:
        connection.execute("CREATE TABLE topic (id int PRIMARY KEY, item text)")
        task.put(records[:100])
        connection.execute("DROP TABLE topic")
        if creates == "true":
            task.put(records[100:])
            assert connection.execute("SELECT count(*) FROM topic").fetchall() == [(100,)]
        else:
            with pytest.raises(ConnectException, match=r"no table topic; .* auto\.create=true"):
                task.put(records[100:])


def test_partitions_are_opened_over_a_connection_that_broke_meanwhile(database: Database) -> None:
    """The sink makes a new connection itself, because the worker does not repeat a rebalance."""
    harness = database.sink()
    with database.connect() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = %s AND pid <> pg_backend_pid()",
            [database.name],
        )
        harness.assign(TopicPartition("topic", 1))
        offsets = connection.execute("SELECT kafka_partition, epoch FROM pyconnect_offsets")
        assert sorted(offsets.fetchall()) == [(0, 1), (1, 1)]


def test_types_of_records_become_types_of_columns(database: Database) -> None:
    """Columns that the sink creates hold every digit and instant."""
    schema: Schema = fields(
        price=decimal_builder(4),
        at=timestamp_builder(),
        tags=SchemaBuilder.array(SchemaBuilder.string()),
        raw=SchemaBuilder.bytes(),
    )
    at = datetime(2024, 6, 1, 10, tzinfo=UTC)
    values = [Decimal("12345678901234567890.1234"), at, ["a"], b"\x00\n"]
    harness = database.sink()
    harness.send(Struct.of_checked(schema, list(values)), value_schema=schema)
    harness.deliver()
    with database.connect() as connection:
        assert connection.execute("SELECT * FROM topic").fetchall() == [tuple(values)]


def test_a_wrong_password_at_a_start_is_named_and_tried_again(database: Database) -> None:
    """The error of a wrong password names the settings, and the last attempt fails the task."""
    harness = database.new_sink(connection_password="guess", max_retries="1")
    text = (
        r"Cannot connect to the database \(connection\.url, connection\.user, "
        r"connection\.password\): .*password authentication failed for user \"connect\""
    )
    with pytest.raises(RetriableException, match=text) as caught:
        harness.start()
    assert "guess" not in str(caught.value)
    with pytest.raises(ConnectException, match=r"\(2 attempts\)"):
        harness.task.open([TopicPartition("topic", 0)])
