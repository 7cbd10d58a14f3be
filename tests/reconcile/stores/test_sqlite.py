"""Copies of tables of SQLite: types as declared, rows and offsets of one moment."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pyconnect_reconcile.data_sides import MARK, TOKENS, CommittedOffsets, TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.stores.sqlite import copied, spark_type


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "shop?.db")) as connection:
        yield connection


def side(tmp_path: Path, table: str, **members: CommittedOffsets) -> TableSide:
    return TableSide(url=f"jdbc:sqlite:{tmp_path / 'shop?.db'}", table=table, **members)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("INTEGER", "bigint"),
        ("varchar(10)", "string"),
        ("DECIMAL(10, 2)", "decimal(10,2)"),
        ("NUMERIC(5)", "decimal(5,0)"),
        ("NUMERIC", "numeric"),
        ("TIMESTAMP", "timestamp_ntz"),
        ("DATE", "date"),
        ("TIME", "time"),
        ("double precision", "double"),
        ("", "string"),
    ],
)
def test_declared_types_are_those_of_spark(declared: str, expected: str) -> None:
    """Parts of the declared type decide Spark's type, as they do in SQLite."""
    assert spark_type(declared) == expected


def test_rows_are_copied_with_the_offsets_of_the_connector(
    shop: sqlite3.Connection, tmp_path: Path
) -> None:
    """A copy has only its connector's offsets, and none for partitions without a written row."""
    shop.executescript(
        "CREATE TABLE orders (id INTEGER, price DECIMAL(10, 2), paid BOOLEAN, raw BLOB);"
        "INSERT INTO orders VALUES (1, '2.50', 1, x'00ff'), (NULL, NULL, NULL, NULL);"
        "CREATE TABLE offsets (connector, topic, kafka_partition, epoch, next_offset);"
        "INSERT INTO offsets VALUES ('a', 't', 0, 1, 7), ('a', 't', 1, 1, NULL),"
        " ('b', 't', 1, 1, 9)"
    )
    offsets = CommittedOffsets(table="offsets", connector="a")
    copy = copied(side(tmp_path, "orders", offsets=offsets), tmp_path / "rows")
    assert copy.columns == {
        "id": "bigint", "price": "decimal(10,2)", "paid": "boolean", "raw": "binary",
    }  # fmt: skip
    assert copy.committed == {"t": {0: 7}}
    assert [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()] == [
        {"id": 1, "price": "2.5", "paid": True, "raw": "AP8="},
        {},
    ]


def test_a_value_of_another_class_stays_what_it_is(
    shop: sqlite3.Connection, tmp_path: Path
) -> None:
    """A value that the declared type would change becomes a token: SQLite stores any class."""
    shop.executescript(
        "CREATE TABLE orders (id INTEGER, price DECIMAL(10, 2), paid BOOLEAN,"
        " at TIMESTAMP, n REAL);"
        "INSERT INTO orders VALUES ('abc', 10.129, 3, '2024-01-01 00:00:00+01:00', 'x'),"
        " (7.5, '[1]', 'yes', 1704067200000, x'00')"
    )
    copied(side(tmp_path, "orders"), tmp_path / "rows")
    assert [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()] == [
        {TOKENS: {
            "id": "abc", "price": f"{MARK}10.129", "paid": f"{MARK}3",
            "at": "2024-01-01 00:00:00+01:00", "n": "x",
        }},
        {TOKENS: {
            "id": f"{MARK}7.5", "price": f"{MARK}s[1]", "paid": "yes",
            "at": f"{MARK}1704067200000", "n": f"{MARK}b00",
        }},
    ]  # fmt: skip


def test_days_and_times_that_do_not_exist_stay_texts(
    shop: sqlite3.Connection, tmp_path: Path
) -> None:
    """Invalid days and times stay texts: Spark's null would equal a null of the other side."""
    shop.executescript(
        "CREATE TABLE days (day DATE, at TIMESTAMP);"
        "INSERT INTO days VALUES ('2023-02-29', '2024-01-01 24:00:01'),"
        " ('2024-13-01', '2024-04-31 00:00:00'), ('0000-01-01', '2024-01-01 00:61:00'),"
        " ('2024-02-29', '2024-02-29 23:59:59')"
    )
    copied(side(tmp_path, "days"), tmp_path / "rows")
    lines = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert [line.get(TOKENS) for line in lines] == [
        {"day": "2023-02-29", "at": "2024-01-01 24:00:01"},
        {"day": "2024-13-01", "at": "2024-04-31 00:00:00"},
        {"day": "0000-01-01", "at": "2024-01-01 00:61:00"},
        None,
    ]
    assert lines[-1] == {"day": "2024-02-29", "at": "2024-02-29 23:59:59"}


def test_a_query_has_the_types_of_its_columns(shop: sqlite3.Connection, tmp_path: Path) -> None:
    """A query has the declared types of its columns, through a view of the connection."""
    shop.executescript("CREATE TABLE orders (id INTEGER); INSERT INTO orders VALUES (1), (2)")
    copy = copied(side(tmp_path, "(SELECT id FROM orders WHERE id > 1) q"), tmp_path / "rows")
    assert copy.columns == {"id": "bigint"}
    assert (tmp_path / "rows").read_text() == '{"id": 2}\n'


def test_a_file_that_is_missing_is_not_made(tmp_path: Path) -> None:
    """A missing database file is an error, because the audit must not create one."""
    with pytest.raises(ReconcileError, match="orders cannot be read: unable to open"):
        copied(side(tmp_path, "orders"), tmp_path / "rows")
    assert not (tmp_path / "shop?.db").exists()
