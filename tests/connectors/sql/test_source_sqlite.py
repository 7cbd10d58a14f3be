"""SqlSource on SQLite: order, positions, types."""

import sqlite3
from contextlib import nullcontext
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pyconnect_api import (
    ConfigException,
    ConnectException,
    DataException,
    ExactlyOnceSupport,
    RetriableException,
    SourceRecord,
    Struct,
)
from pyconnect_api.testing import ConnectorHarness, SourceHarness
from pyconnect_connectors.sql import reading
from pyconnect_connectors.sql.source import SqlSourceConnector, SqlSourceTask
from tests.support.cases import cases
from tests.support.eventually import eventually


def started(config: dict[str, str]) -> SourceHarness:
    harness = SourceHarness(SqlSourceTask, config)
    harness.start()
    return harness


def props(file: Path, **settings: str) -> dict[str, str]:
    return {
        "name": "orders",
        "connection.url": f"sqlite:///{file}",
        "poll.interval.ms": "1",
        "topic.prefix": "shop-",
        "tables": "orders",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }


def incrementing(file: Path, **settings: str) -> dict[str, str]:
    columns = {"mode": "incrementing", "incrementing_column_name": "id"}
    return props(file, **{**columns, **settings})


def by_time(file: Path, **settings: str) -> dict[str, str]:
    columns = {"mode": "timestamp", "timestamp_column_name": "changed"}
    return props(file, **{**columns, **settings})


def by_both(file: Path, **settings: str) -> dict[str, str]:
    both = {"mode": "timestamp+incrementing", "incrementing_column_name": "id"}
    return by_time(file, **{**both, **settings})


def ids(records: list[SourceRecord]) -> list[object]:
    return [record.value.get("id") for record in records if isinstance(record.value, Struct)]


def make_orders(database: sqlite3.Connection, *times: str) -> None:
    database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, changed DATETIME)")
    database.executemany("INSERT INTO orders (changed) VALUES (?)", [(time,) for time in times])


def everything(harness: SourceHarness) -> list[SourceRecord]:
    """Return all records until a pass over the table finds no more."""
    found: list[SourceRecord] = []
    empty = 0
    while empty < 3:
        batch = harness.poll()
        found += batch
        empty = 0 if batch else empty + 1
    return found


def test_rows_are_read_once_and_in_order(file: Path, database: sqlite3.Connection) -> None:
    """Rows are read once and in order, and new rows follow at the next pass."""
    make_orders(database, *["2024-01-01 00:00:00"] * 25)
    source = started(incrementing(file, batch_max_rows="10"))
    assert ids(source.run(25)) == list(range(1, 26))
    make_orders(database, "2024-01-01 00:00:00")
    (record,) = source.run(1)
    assert record.source_offset == {"incrementing": 26}
    assert record.source_partition == {"table": "orders"}
    assert record.topic == "shop-orders"
    assert isinstance(record.key, Struct)
    assert record.key.get("id") == 26
    source.stop()


def test_a_batch_holds_no_more_rows_than_configured(
    file: Path, database: sqlite3.Connection
) -> None:
    """The rest of a table waits in the database, which others can write meanwhile."""
    make_orders(database, *["2024-01-01 00:00:00"] * 25)
    source = started(incrementing(file, batch_max_rows="10"))
    assert len(source.poll()) == 10
    make_orders(database, "2024-01-01 00:00:00")
    source.stop()


@cases("settings", incrementing, by_both)
@cases("committed", *range(1, 12))
def test_a_restart_anywhere_neither_loses_nor_repeats_a_row(
    file: Path, database: sqlite3.Connection, settings: object, committed: int
) -> None:
    """A restart continues after the last acknowledged record, also within rows of equal time."""
    assert callable(settings)
    make_orders(database, *["2024-01-01 00:00:00"] * 5, *["2024-01-01 00:00:00.5"] * 7)
    source = SourceHarness(SqlSourceTask, settings(file, batch_max_rows="4"))
    source.start()
    polled: list[SourceRecord] = []
    while len(polled) < committed:
        polled += source.poll()
    source.acknowledge(committed)
    source.commit()
    source.restart()
    assert ids(polled[:committed]) + ids(everything(source)) == list(range(1, 13))
    source.stop()


@cases("committed", *range(1, 12))
def test_by_timestamp_a_restart_loses_no_row(
    file: Path, database: sqlite3.Connection, committed: int
) -> None:
    """A restart within rows of equal time repeats all of them, and one after them repeats none."""
    times = ["2024-01-01 00:00:01"] * 3 + ["2024-01-01 00:00:02"] * 5 + ["2024-01-01 00:00:03"] * 4
    make_orders(database, *times)
    source = started(by_time(file, batch_max_rows="4"))
    polled = everything(source)
    assert ids(polled) == list(range(1, 13))
    source.acknowledge(committed)
    source.commit()
    source.restart()
    complete = max([end for end in (0, 3, 8, 12) if end <= committed])
    assert ids(everything(source)) == list(range(complete + 1, 13))
    source.stop()


def test_by_timestamp_a_quiet_restart_repeats_nothing(
    file: Path, database: sqlite3.Connection
) -> None:
    """The last row of a pass completes its time, so a restart after it repeats nothing."""
    make_orders(database, *["2024-01-01 00:00:01"] * 3)
    source = started(by_time(file))
    assert len(everything(source)) == 3
    source.acknowledge()
    source.commit()
    source.restart()
    assert everything(source) == []
    source.stop()


def test_a_changed_row_comes_again(file: Path, database: sqlite3.Connection) -> None:
    """A row comes again when the time of its last change is newer."""
    make_orders(database, "2024-01-01 00:00:01", "2024-01-01 00:00:02")
    source = started(by_both(file))
    assert ids(source.run(2)) == [1, 2]
    database.execute("UPDATE orders SET changed = '2024-01-01 00:00:03' WHERE id = 1")
    assert ids(source.run(1)) == [1]
    source.stop()


def test_rows_younger_than_the_delay_wait(file: Path, database: sqlite3.Connection) -> None:
    """Young rows wait, because an older transaction's rows may not be visible yet."""
    make_orders(database, "2024-01-01 00:00:01")
    database.execute("INSERT INTO orders (changed) VALUES (CURRENT_TIMESTAMP)")
    source = started(by_both(file, timestamp_delay_interval_ms="3600000"))
    assert ids(everything(source)) == [1]
    source.stop()


@cases("form", "2024-10-27 02:{}:00", "2024-10-27T02:{}:00")
def test_rows_of_an_hour_that_clocks_repeat_are_read_behind_it(
    file: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Rows of a repeated hour wait: those of its second time would be behind the position."""

    def clock(text: str) -> None:
        monkeypatch.setattr(reading, "database_time", lambda _: datetime.fromisoformat(text))

    make_orders(database, "2024-10-27 01:00:00", form.format(30))
    harness = started(by_time(file, db_timezone="Europe/Berlin"))
    clock("2024-10-27T00:59:00+00:00")
    assert ids(harness.run(1)) == [1]
    # The open query would lock the file.
    assert harness.poll() == []
    make_orders(database, form.format(10))
    clock("2024-10-27T01:59:59+00:00")
    assert all(harness.poll() == [] for _ in range(3))
    clock("2024-10-27T02:00:00+00:00")
    assert ids(harness.run(2)) == [3, 2]
    harness.stop()


def test_a_day_is_read_when_it_is_over(
    file: Path, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another row of a DATE may come until the day is over."""
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, changed DATE)")
    database.execute("INSERT INTO orders (changed) VALUES ('2024-10-26'), ('2024-10-27')")
    monkeypatch.setattr(reading, "database_time", lambda _: datetime(2024, 10, 27, 20, tzinfo=UTC))
    harness = started(by_time(file))
    assert ids(harness.run(1)) == [1]
    assert all(harness.poll() == [] for _ in range(3))
    harness.stop()


def test_the_whole_table_comes_each_time_in_bulk(file: Path, database: sqlite3.Connection) -> None:
    """In mode bulk each pass reads the whole table, without positions."""
    make_orders(database, "2024-01-01 00:00:01", "2024-01-01 00:00:02")
    source = started(props(file, mode="bulk"))
    assert ids(source.run(4)) == [1, 2, 1, 2]
    source.stop()


def test_a_query_is_read_by_position_too(file: Path, database: sqlite3.Connection) -> None:
    """A query's rows have positions, its topic is the prefix, and its own conditions stay."""
    make_orders(database, *["2024-01-01 00:00:01"] * 4)
    query = "SELECT id, 'a:b %' AS label FROM orders WHERE id <> 2"
    source = SourceHarness(
        SqlSourceTask, incrementing(file, query=query, topic_prefix="found", batch_max_rows="2")
    )
    source.start()
    records = everything(source)
    assert ids(records) == [1, 3, 4]
    assert {record.topic for record in records} == {"found"}
    assert {str(record.source_partition) for record in records} == {"{'query': 'query'}"}
    source.stop()


def test_values_have_the_types_of_their_columns(file: Path, database: sqlite3.Connection) -> None:
    """Decimals keep their digits, and timestamps without zone are in the configured one."""
    database.execute(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, price DECIMAL(30, 4) NOT NULL, paid BOOLEAN,"
        " at TIMESTAMP, day DATE, picture BLOB, weight DOUBLE, note TEXT)"
    )
    database.execute(
        "INSERT INTO orders VALUES (1, '12.5', 1, '2024-06-01 12:00:00', '2024-06-01', x'00ff',"
        " 1.5, NULL)"
    )
    source = started(incrementing(file, db_timezone="Europe/Berlin"))
    (record,) = source.run(1)
    assert isinstance(record.value, Struct)
    assert record.value.stored_values() == [
        1,
        Decimal("12.5000"),
        True,
        datetime(2024, 6, 1, 10, tzinfo=UTC),
        date(2024, 6, 1),
        b"\x00\xff",
        1.5,
        None,
    ]
    schemas = {field.name: field.schema for field in record.value.schema.fields}
    assert {name: str(schema) for name, schema in schemas.items() if not schema.optional} == {
        "id": "Schema{INT64}",
        "price": "Schema{org.apache.kafka.connect.data.Decimal:BYTES}",
    }
    record.value.validate()
    source.stop()


def test_a_value_of_another_type_than_its_column_fails_the_task(
    file: Path, database: sqlite3.Connection
) -> None:
    """SQLite stores a value of another type, which a topic with a schema must not hold."""
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER)")
    database.execute("INSERT INTO orders VALUES (1, 'many')")
    source = started(incrementing(file))
    with pytest.raises(DataException, match="Column amount"):
        source.poll()


def test_tables_are_chosen_and_dealt_to_tasks(file: Path, database: sqlite3.Connection) -> None:
    """The whitelist has exact names, the include list has expressions."""
    for name in ("orders", "order_lines", "people", "orders_old"):
        database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    chosen = {"table.include.list": "order.*", "table.blacklist": "orders_old"}
    connector = SqlSourceConnector()
    connector.start({**incrementing(file), **chosen})
    configs = connector.task_configs(5)
    connector.stop()
    assert [config["tables"] for config in configs] == ["order_lines", "orders"]


def test_each_table_is_read_whatever_its_name_is(file: Path, database: sqlite3.Connection) -> None:
    """A comma in a table's name separates nothing, and spaces are part of the name."""
    names = [" a ", "a,b", "a", "100%", "%2C"]
    for name in names:
        database.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY)')
        database.execute(f'INSERT INTO "{name}" VALUES (1)')
    harness = ConnectorHarness(SqlSourceConnector, incrementing(file))
    harness.start()
    source = harness.source()
    source.start()
    places = [record.source_partition for record in source.run(len(names))]
    assert sorted(str(place["table"]) for place in places if place) == sorted(names)
    source.stop()
    harness.stop()


def test_a_new_table_gets_a_task(file: Path, database: sqlite3.Connection) -> None:
    """The connector looks for changes, and asks for new task configs."""
    database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)")
    harness = ConnectorHarness(SqlSourceConnector, incrementing(file, table_poll_interval_ms="5"))
    harness.start()
    assert len(harness.task_configs(5)) == 1
    database.execute("CREATE TABLE people (id INTEGER PRIMARY KEY)")
    eventually(lambda: harness.context.reconfigurations_requested > 0)
    assert len(harness.task_configs(5)) == 2
    harness.stop()


@cases(
    "mode, support",
    ("bulk", ExactlyOnceSupport.UNSUPPORTED),
    ("timestamp", ExactlyOnceSupport.UNSUPPORTED),
    ("incrementing", ExactlyOnceSupport.SUPPORTED),
    ("timestamp+incrementing", ExactlyOnceSupport.SUPPORTED),
)
def test_exactly_once_needs_a_total_order(
    file: Path, mode: str, support: ExactlyOnceSupport
) -> None:
    """Rows without a position of their own may be repeated after a restart."""
    assert SqlSourceConnector().exactly_once_support(props(file, mode=mode)) is support


def test_offsets_are_changed_to_those_of_the_mode_only(file: Path) -> None:
    """An offset that the task would not understand is refused."""
    connector = SqlSourceConnector()
    config = incrementing(file)
    assert connector.alter_offsets(config, [({"table": "orders"}, {"incrementing": 5})])
    assert connector.alter_offsets(config, [({"anything": 1}, None)])
    with pytest.raises(ConnectException, match="these keys: incrementing"):
        connector.alter_offsets(config, [({"table": "orders"}, {"timestamp": "2024"})])
    with pytest.raises(ConnectException, match="the key 'table'"):
        connector.alter_offsets(config, [({"query": "query"}, {"incrementing": 5})])
    query = {**incrementing(file), "query": "SELECT 1 id", "topic.prefix": "t"}
    assert connector.alter_offsets(query, [({"query": "query"}, {"incrementing": 5})])
    for given, partition in ((config, {"table": 5}), (query, {"query": "SELECT 1 id"})):
        with pytest.raises(ConnectException, match="The partition of a table is its name"):
            connector.alter_offsets(given, [(partition, {"incrementing": 5})])


@cases(
    "offset, is_taken",
    ({"incrementing": "a", "timestamp": "2024-06-01T10:00:00Z"}, True),
    ({"incrementing": 1.5, "timestamp": "infinity"}, True),
    ({"incrementing": 1, "timestamp": "0044-03-15 00:00:00 BC"}, True),
    ({"incrementing": None, "timestamp": "2024-06-01"}, False),
    ({"incrementing": True, "timestamp": "2024-06-01"}, False),
    ({"incrementing": 1, "timestamp": None}, False),
    ({"incrementing": 1, "timestamp": "yesterday"}, False),
    ({"incrementing": 1, "timestamp": "2024-06-01garbage"}, False),
    ({"incrementing": 1, "timestamp": "2024-13-01 00:00:00"}, False),
    ({"incrementing": 1, "timestamp": "2024-06-01 25:00"}, False),
    ({"incrementing": 1, "timestamp": "2024-06-01 10:00:00.5+02"}, True),
    ({"incrementing": 1, "timestamp": 1717236000000}, False),
)
def test_offsets_are_changed_to_positions_only(
    file: Path, offset: dict[str, object], *, is_taken: bool
) -> None:
    """With null in an offset the database finds no row: the task would read nothing more."""
    config = props(
        file,
        mode="timestamp+incrementing",
        incrementing_column_name="id",
        timestamp_column_name="at",
    )
    with nullcontext() if is_taken else pytest.raises(ConnectException, match="must be a number"):
        SqlSourceConnector().alter_offsets(config, [({"table": "orders"}, offset)])


@cases(
    "settings, key",
    ({"mode": "incrementing"}, "incrementing.column.name"),
    ({"mode": "timestamp"}, "timestamp.column.name"),
    ({"mode": "sometimes"}, "mode"),
    ({"mode": "bulk", "query": "SELECT 1", "table.whitelist": "a"}, "query"),
    ({"mode": "bulk", "query": "SELEC 1"}, "query"),
    ({"mode": "bulk", "query": "SELECT 1 a", "topic.prefix": ""}, "topic.prefix"),
    ({"mode": "bulk", "query": "SELECT * FROM missing"}, "query"),
    (
        {"mode": "incrementing", "query": "SELECT 1 a", "incrementing.column.name": "b"},
        "incrementing.column.name",
    ),
    (
        {"mode": "timestamp", "query": "SELECT 1 a", "timestamp.column.name": "a,b"},
        "timestamp.column.name",
    ),
    ({"mode": "bulk", "table.include.list": "order("}, "table.include.list"),
    ({"mode": "bulk", "connection.url": "nonsense"}, "connection.url"),
    ({"mode": "bulk", "connection.url": "sqlite:////nowhere/at/all.db"}, "connection.url"),
    ({"mode": "bulk", "db.timezone": "Mars/Olympus"}, "db.timezone"),
)
def test_a_wrong_setting_is_found_by_validation(
    file: Path, settings: dict[str, str], key: str
) -> None:
    """Validation adds the error to the setting that has to be changed."""
    config = SqlSourceConnector().validate({**props(file), **settings})
    assert [value.name for value in config.config_values if value.error_messages] == [key]


def test_errors_do_not_repeat_the_url(file: Path) -> None:
    """Errors leave out the URL, which may hold a password."""
    wrong = props(file, mode="bulk", connection_url="postgresq://me:secret@host/db")
    with pytest.raises(ConfigException) as caught:
        SqlSourceConnector().start(wrong)
    assert "secret" not in str(caught.value)


def test_a_failure_is_raised_before_the_wait(tmp_path: Path) -> None:
    """The status shows the failure at once, and the next attempt follows the backoff."""
    missing = tmp_path / "missing" / "shop.db"
    source = SourceHarness(SqlSourceTask, incrementing(missing, retry_backoff_ms="3000"))
    task = source.start()
    with pytest.raises(RetriableException, match="unable to open database file"):
        task.poll()
    assert source.stop_requested.waits_s == []
    with pytest.raises(RetriableException):
        task.poll()
    assert source.stop_requested.waits_s == [3.0]
    source.stop()
