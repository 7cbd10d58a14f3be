"""Plans, changes and undos of rows on real databases, beside the sink that wrote them."""

import io
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pyconnect_api import (
    BYTES_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    SchemaBuilder,
    SinkRecord,
    Struct,
    TimestampType,
    TopicPartition,
    decimal_builder,
    timestamp_builder,
)
from pyconnect_api.testing import SinkHarness
from pyconnect_connectors.sql.database import open_engine
from pyconnect_connectors.sql.settings import SinkSettings
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_repair.plan import Place, RowChange, Wanted
from pyconnect_repair.tables import BATCH, sink_table
from tests.support.eventually import eventually
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

pytestmark = pytest.mark.wire

QUIET = Events(machine=True, stream=io.StringIO())
ODD_NAME = 'a "b" c'
ORDER = (
    SchemaBuilder.struct()
    .field("id", SchemaBuilder.int64())
    .field("price", decimal_builder(2).build())
    .field("at", timestamp_builder().build())
    .field("raw", BYTES_SCHEMA)
    .field("ratio", SchemaBuilder.float64())
    .field("small", SchemaBuilder.float32())
    .field("paid", SchemaBuilder.boolean())
    .field(ODD_NAME, OPTIONAL_STRING_SCHEMA)
    .build()
)
UPSERT = {"insert.mode": "upsert", "pk.mode": "record_key", "pk.fields": "id"}
PLAIN = {"insert.mode": "insert", "pk.mode": "none"}
KAFKA_KEY = {"insert.mode": "insert", "pk.mode": "kafka"}


def order(number: int, note: str | None = None) -> Struct:
    return (
        Struct(ORDER)
        .put("id", 2**53 + number)
        .put("price", Decimal(number) / 4)
        .put("at", datetime(2024, 1, 1, 10, number % 60, 5, 123000, tzinfo=UTC))
        .put("raw", bytes([number % 256, 0, 255]))
        .put("ratio", number / 7)
        .put("small", 0.5 * number)
        .put("paid", number % 2 == 0)
        .put(ODD_NAME, note if note is not None else (None if number % 3 == 0 else f"n{number}  "))
    )


def record(number: int, note: str | None = None) -> SinkRecord:
    return SinkRecord(
        "orders",
        0,
        INT64_SCHEMA,
        2**53 + number,
        ORDER,
        order(number, note),
        number,
        1,
        TimestampType.CREATE_TIME,
    )


@dataclass(frozen=True, slots=True)
class World:
    """The table of a sink, with the rows of `count` records."""

    config: dict[str, str]
    count: int

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        engine = open_engine(SinkSettings.parse(self.config).connection, writes=True)
        with engine.begin() as connection:
            found = connection.exec_driver_sql(statement)
            return [tuple(row) for row in found] if found.returns_rows else []

    def rows(self) -> list[tuple[Any, ...]]:
        return sorted(self.sql("SELECT * FROM orders"), key=repr)

    @property
    def family(self) -> str:
        return self.config["connection.url"].partition(":")[0].partition("+")[0]

    @property
    def expected(self) -> dict[TopicPartition, int]:
        return {TopicPartition("orders", 0): self.count}

    def plan(
        self, targets: Sequence[Wanted], records: Iterable[SinkRecord] = ()
    ) -> tuple[tuple[RowChange, ...], tuple[str, ...]]:
        made: dict[Place, SinkRecord | None] = {
            ("orders", 0, int(each.original_kafka_offset)): each for each in records
        }
        with sink_table(self.config, "orders") as table:
            planned = table.plan(targets, made)
        return planned.changes, planned.refused

    def carry_out(self, changes: Sequence[RowChange]) -> None:
        with sink_table(self.config, "orders") as table:
            table.carry_out(changes, self.expected, QUIET)


@pytest.fixture(params=["postgresql", "mariadb", "sqlite"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The connection settings of a new database of each kind."""
    if request.param == "sqlite":
        return {"connection.url": f"sqlite:///{tmp_path / 'shop.db'}"}
    name = {"postgresql": "postgres"}.get(request.param, request.param)
    server: PostgresServer | MariaDbServer = request.getfixturevalue(name)
    return server.settings(server.new_database())


def world(settings: dict[str, str], mode: dict[str, str], count: int = 9) -> World:
    config = {"name": "out", **settings, **mode, "auto.create": "true", "topics": "orders"}
    made = World(config, count)
    harness = SinkHarness(SqlSinkTask, config, partitions=[TopicPartition("orders", 0)])
    harness.start()
    for number in range(count):
        harness.send(
            order(number),
            value_schema=ORDER,
            key=2**53 + number,
            key_schema=INT64_SCHEMA,
            partition=TopicPartition("orders", 0),
        )
    harness.deliver()
    harness.stop()
    # Columns that no record has: one with a default, and one that the database computes.
    now = "TEXT DEFAULT 'now'" if made.family == "sqlite" else "TIMESTAMP DEFAULT CURRENT_TIMESTAMP"
    made.sql(f"ALTER TABLE orders ADD COLUMN added {now}")
    if made.family != "sqlite":
        twice = "DECIMAL(40, 2) GENERATED ALWAYS AS (price * 2) STORED"
        made.sql(f"ALTER TABLE orders ADD COLUMN twice {twice}")
    return made


def place(number: int) -> Place:
    return "orders", 0, number


def identity(number: int) -> dict[str, str]:
    return {"id": str(2**53 + number)}


def test_rows_of_keys_are_written_replaced_and_deleted_and_come_back(
    settings: dict[str, str],
) -> None:
    """A repair restores each row of the sink, leaves others alone, and can be undone exactly."""
    shop = world(settings, UPSERT)
    whole = shop.rows()
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 1}")
    shop.sql(f"UPDATE orders SET price = 99 WHERE id = {2**53 + 2}")
    shop.sql(f"UPDATE orders SET id = {2**53 + 50} WHERE id = {2**53 + 3}")
    damaged = shop.rows()
    targets = [
        Wanted(kind="missing", place=place(1), expected=1, there=0),
        Wanted(kind="different", place=place(2), expected=1, there=0),
        Wanted(kind="missing", place=place(3), expected=1, there=0),
        Wanted(kind="extra", key=identity(50), expected=0, there=1),
    ]
    changes, refused = shop.plan(targets, [record(n) for n in (1, 2, 3)])
    assert (len(changes), refused) == (4, ())
    assert shop.rows() == damaged
    shop.carry_out(changes)
    assert without_defaults(shop.rows()) == without_defaults(whole)
    shop.carry_out(changes)
    assert without_defaults(shop.rows()) == without_defaults(whole)
    shop.carry_out([change.undone for change in reversed(changes)])
    assert shop.rows() == damaged


def without_defaults(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows without the column whose default is the time of the write."""
    return [row[:8] for row in rows]


def test_copies_of_rows_without_a_key_are_found_by_their_record(settings: dict[str, str]) -> None:
    """Without a key, exactly the surplus copies are deleted and the missing ones written."""
    shop = world(settings, PLAIN)
    whole = without_defaults(shop.rows())
    names = "id, price, at, raw, ratio, small, paid"
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 1}")
    quoted = '"a ""b"" c"' if shop.family != "mariadb" else '`a "b" c`'
    for _ in range(2):
        shop.sql(
            f"INSERT INTO orders ({names}, {quoted}) SELECT {names}, {quoted} FROM orders"
            f" WHERE id = {2**53 + 4} LIMIT 1"
        )
    damaged = shop.rows()
    targets = [
        Wanted(kind="missing", place=place(1), expected=1, there=0),
        Wanted(kind="repeated", place=place(4), expected=1, there=3),
    ]
    changes, refused = shop.plan(targets, [record(1), record(4)])
    assert refused == ()
    shop.carry_out(changes)
    assert without_defaults(shop.rows()) == whole
    shop.carry_out([change.undone for change in reversed(changes)])
    assert shop.rows() == damaged


def test_rows_that_changed_since_the_report_or_the_plan_are_refused(
    settings: dict[str, str],
) -> None:
    """A row that changed after the report ends the plan; one that changed later ends its batch."""
    shop = world(settings, UPSERT)
    there = [Wanted(kind="missing", place=place(1), expected=1, there=0)]
    with pytest.raises(ReconcileError, match="changed since the report"):
        shop.plan(there, [record(1)])
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 1}")
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 2}")
    targets = [Wanted(kind="missing", place=place(n), expected=1, there=0) for n in (1, 2)]
    changes, _ = shop.plan(targets, [record(1), record(2)])
    columns = "id, price, at, raw, ratio, small, paid"
    shop.sql(
        f"INSERT INTO orders ({columns}) SELECT {2**53 + 2}, 7, at, raw, ratio, small, paid"
        f" FROM orders WHERE id = {2**53 + 4}"
    )
    before = shop.rows()
    with pytest.raises(ReconcileError, match="has changed in the table meanwhile"):
        shop.carry_out(changes)
    assert shop.rows() == before


def test_a_sink_that_has_moved_on_ends_the_repair(settings: dict[str, str]) -> None:
    """Each transaction reads the sink's offsets again, and ends the repair if they have moved."""
    shop = world(settings, UPSERT)
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 1}")
    changes, _ = shop.plan(
        [Wanted(kind="missing", place=place(1), expected=1, there=0)], [record(1)]
    )
    shop.sql("UPDATE pyconnect_offsets SET next_offset = 20")
    with pytest.raises(ReconcileError, match="moved on since the report: its offset"):
        shop.carry_out(changes)


def test_a_record_that_its_table_cannot_hold_is_refused(settings: dict[str, str]) -> None:
    """The plan refuses a record that the table cannot hold, and contains the others."""
    shop = world(settings, UPSERT)
    shop.sql(f"DELETE FROM orders WHERE id = {2**53 + 1}")
    odd = record(5, note="\ud800" if shop.family == "sqlite" else "x\0y")
    targets = [
        Wanted(kind="different", place=place(5), expected=1, there=0),
        Wanted(kind="missing", place=place(1), expected=1, there=0),
    ]
    changes, refused = shop.plan(targets, [odd, record(1)])
    assert [change.kind for change in changes][-1] == "missing"
    if shop.family == "postgresql":
        assert len(refused) == 1
        assert "orders:0@5" in refused[0]


def test_batches_are_transactions(settings: dict[str, str]) -> None:
    """A failing batch changes nothing, and the batches before it stay."""
    count = BATCH + 20
    shop = world(settings, KAFKA_KEY, count)
    whole = without_defaults(shop.rows())
    shop.sql("DELETE FROM orders")
    targets = [Wanted(kind="missing", place=place(n), expected=1, there=0) for n in range(count)]
    changes, refused = shop.plan(targets, [record(n) for n in range(count)])
    assert (len(changes), refused) == (count, ())
    shop.carry_out([changes[-1]])
    shop.sql("UPDATE orders SET price = 1000")
    with pytest.raises(ReconcileError, match=f"orders:0@{count - 1} has changed"):
        shop.carry_out(changes)
    assert len(shop.rows()) == BATCH + 1
    shop.sql("DELETE FROM orders WHERE price = 1000")
    shop.carry_out(changes)
    assert without_defaults(shop.rows()) == whole


ITEM = (
    SchemaBuilder.struct()
    .field("a", SchemaBuilder.string())
    .field("c", OPTIONAL_STRING_SCHEMA)
    .build()
)
BY_VALUE = {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "a"}
SERIAL = "CREATE TABLE orders (id bigserial PRIMARY KEY, a text, c text)"
IDENTITY = "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, a text, c text)"
PARTITIONS = (
    "CREATE TABLE orders (a text PRIMARY KEY, c text) PARTITION BY HASH (a)",
    *(
        f"CREATE TABLE orders_{n} PARTITION OF orders FOR VALUES WITH (MODULUS 2, REMAINDER {n})"
        for n in (0, 1)
    ),
)
BLANKS = (
    "CREATE TABLE orders (a char(5) PRIMARY KEY, c text, n bigint GENERATED ALWAYS AS IDENTITY)"
)


def item(number: int) -> SinkRecord:
    return SinkRecord(
        "orders", 0, None, None, ITEM, Struct(ITEM).put("a", f"k{number}").put("c", "c"), number, 1,
        TimestampType.CREATE_TIME,
    )  # fmt: skip


def items(settings: dict[str, str], mode: dict[str, str], *statements: str) -> World:
    """Return a table that was made by hand, with four items of the sink."""
    made = World({"name": "out", **settings, **mode, "topics": "orders"}, 4)
    for statement in statements:
        made.sql(statement)
    harness = SinkHarness(SqlSinkTask, made.config, partitions=[TopicPartition("orders", 0)])
    harness.start()
    for number in range(4):
        found = item(number)
        partition = TopicPartition("orders", 0)
        harness.send(found.value, value_schema=ITEM, partition=partition)
    harness.deliver()
    harness.stop()
    return made


@pytest.mark.parametrize(
    ("mode", "statements"),
    [(PLAIN, (SERIAL,)), (PLAIN, (IDENTITY,)), (BY_VALUE, PARTITIONS), (BY_VALUE, (BLANKS,))],
    ids=["serial", "identity", "partitions", "blanks"],
)
def test_rows_of_all_tables_of_postgresql_come_back(
    postgres: PostgresServer, mode: dict[str, str], statements: tuple[str, ...]
) -> None:
    """Rows come back where PostgreSQL numbers them, partitions their table or pads their keys."""
    shop = items(postgres.settings(postgres.new_database()), mode, *statements)
    names = "a, c"
    whole = sorted(shop.sql(f"SELECT {names} FROM orders"))
    shop.sql("DELETE FROM orders WHERE a IN ('k0', 'k1')")
    targets = [Wanted(kind="missing", place=place(n), expected=1, there=0) for n in (0, 1)]
    if mode is BY_VALUE:
        shop.sql("UPDATE orders SET c = 'wrong' WHERE a = 'k2'")
        shop.sql("INSERT INTO orders (a) VALUES ('z')")
        [[key]] = shop.sql("SELECT a FROM orders WHERE a = 'z'")
        targets += [
            Wanted(kind="different", place=place(2), expected=1, there=0),
            Wanted(kind="extra", key={"a": key}, expected=0, there=1),
        ]
    damaged = shop.rows()
    changes, refused = shop.plan(targets, map(item, range(3)))
    assert (len(changes), refused) == (len(targets), ())
    for _ in range(2):
        shop.carry_out(changes)
        assert sorted(shop.sql(f"SELECT {names} FROM orders")) == whole
    shop.carry_out([change.undone for change in reversed(changes)])
    assert shop.rows() == damaged


def test_a_table_that_has_other_columns_is_left(settings: dict[str, str]) -> None:
    """A repair ends if the columns have changed, because images would lose or lack values."""
    text = "varchar(9)" if "mariadb" in settings["connection.url"] else "text"
    shop = items(settings, PLAIN, f"CREATE TABLE orders (a {text}, c {text}, old {text})")
    shop.sql("DELETE FROM orders WHERE a = 'k1'")
    changes, _ = shop.plan([Wanted(kind="missing", place=place(1), expected=1, there=0)], [item(1)])
    undone = [change.undone for change in changes]
    for statement in ("ADD COLUMN more bigint", "DROP COLUMN old", "RENAME COLUMN more TO old"):
        shop.sql(f"ALTER TABLE orders {statement}")
        if "RENAME" not in statement:
            for each in (changes, undone):
                with pytest.raises(ReconcileError, match="orders has other columns than when"):
                    shop.carry_out(each)
    shop.carry_out(changes)
    assert len(shop.rows()) == 4


def test_two_operators_write_a_row_without_a_key_once(postgres: PostgresServer) -> None:
    """The second repair waits for the first one's transaction, although no row is locked."""
    shop = items(
        postgres.settings(postgres.new_database()), PLAIN, SERIAL.replace("PRIMARY KEY", "")
    )
    shop.sql("DELETE FROM orders WHERE a = 'k1'")
    shop.sql("DROP TABLE pyconnect_offsets")
    shop = World({**shop.config, "delivery.guarantee": "at-least-once"}, 4)
    changes, _ = shop.plan([Wanted(kind="missing", place=place(1), expected=1, there=0)], [item(1)])
    waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'advisory'"
    with ThreadPoolExecutor(1) as pool, sink_table(shop.config, "orders") as table:
        with table.transaction():
            for change in changes:
                table._images.move(change)
            second = pool.submit(shop.carry_out, changes)
            eventually(lambda: second.done() or shop.sql(waiting), 30)
        second.result(30)
    assert len(shop.rows()) == 4


def test_a_table_without_rowid_is_refused(tmp_path: Path) -> None:
    """A table WITHOUT ROWID is refused; a column named rowid is no problem."""
    settings = {"connection.url": f"sqlite:///{tmp_path / 'shop.db'}"}
    shop = items(
        settings, BY_VALUE, "CREATE TABLE orders (a TEXT PRIMARY KEY, c TEXT) WITHOUT ROWID"
    )
    targets = [Wanted(kind="missing", place=place(1), expected=1, there=0)]
    with pytest.raises(ReconcileError, match="WITHOUT ROWID"):
        shop.plan(targets, [item(1)])
    shop.sql("DROP TABLE orders")
    shop.sql("CREATE TABLE orders (a TEXT PRIMARY KEY, c TEXT, rowid TEXT)")
    changes, _ = shop.plan(targets, [item(1)])
    shop.carry_out(changes)
    assert shop.rows() == [("k1", "c", None)]


def test_rows_that_stand_in_each_others_place_are_planned_in_order(
    settings: dict[str, str],
) -> None:
    """Changes are planned in order, as a deleted row makes room for one with an equal key."""
    family, ci = (
        World(settings, 0).family,
        "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    )
    if family == "postgresql":
        World(settings, 0).sql(f"CREATE COLLATION nocase {ci}")
    text = "varchar(9) COLLATE utf8mb4_general_ci" if family == "mariadb" else "text COLLATE nocase"
    mode = {**BY_VALUE, "pk.folding.keys": "allow"}
    shop = items(settings, mode, f"CREATE TABLE orders (a {text} PRIMARY KEY, c {text})")
    whole = shop.rows()
    shop.sql("UPDATE orders SET a = 'K1' WHERE a = 'k1'")
    shop.sql("DELETE FROM orders WHERE a = 'k2'")
    damaged = shop.rows()
    capital = Struct(ITEM).put("a", "K2").put("c", "other")
    again = SinkRecord(
        "orders", 0, None, None, ITEM, capital, 9, 1, TimestampType.CREATE_TIME
    )  # fmt: skip
    targets = [
        Wanted(kind="extra", key={"a": "K1"}, expected=0, there=1),
        *(Wanted(kind="missing", place=place(n), expected=1, there=0) for n in (1, 2, 9)),
    ]
    changes, refused = shop.plan(targets, [item(1), item(2), again])
    assert shop.rows() == damaged
    assert len(changes) == 3
    assert [reason.partition("orders:0@9: ")[2] for reason in refused] == [
        "the table takes its key for that of the row of orders:0@2"
    ]
    for _ in range(2):
        shop.carry_out(changes)
        assert shop.rows() == whole
    shop.carry_out([change.undone for change in reversed(changes)])
    assert shop.rows() == damaged


def test_sqlite_numbers_each_missing_row(tmp_path: Path) -> None:
    """Two planned rows have different numbers in an INTEGER PRIMARY KEY."""
    settings = {"connection.url": f"sqlite:///{tmp_path / 'shop.db'}"}
    shop = items(settings, PLAIN, "CREATE TABLE orders (id INTEGER PRIMARY KEY, a TEXT, c TEXT)")
    whole = shop.rows()
    shop.sql("DELETE FROM orders WHERE id > 2")
    targets = [Wanted(kind="missing", place=place(n), expected=1, there=0) for n in (2, 3)]
    changes, refused = shop.plan(targets, map(item, (2, 3)))
    assert refused == ()
    shop.carry_out(changes)
    assert shop.rows() == whole
