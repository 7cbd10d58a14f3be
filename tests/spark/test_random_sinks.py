"""Random rows in typed sinks with known changes, judged as by a reference."""

import base64
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession

from pyconnect_reconcile.findings import Verdict
from tests.support.audits.recorded_audits import LEFT, Given, RecordedAudit, topic
from tests.support.seeds import LONG

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

SEEDS: Sequence[Sequence[int]] = (
    [[seed] for seed in range(500)] if LONG else [range(0, 8, 2), range(1, 8, 2)]
)
"""Seeds by audit: each audit takes Spark seconds."""
ROWS = 30
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS: Mapping[str, tuple[Any, str, Callable[[random.Random], object]]] = {
    "n": (pa.int64(), "BIGINT", lambda r: r.choice((0, 7, -7, 2**53 + 1, 2**63 - 1))),
    "p": (
        pa.decimal128(20, 3),
        "DECIMAL(20,3)",
        # SQLite keeps 15 digits in such a column.
        lambda r: Decimal(r.choice(("1.500", "10.130", "-0.001", "123456789012.890"))),
    ),
    "d": (pa.float64(), "DOUBLE", lambda r: r.choice((0.5, 0.1, 1e300, -2.25, 5e-324))),
    "s": (pa.string(), "TEXT", lambda r: r.choice(("", "a", "1", "true", '{"a":1}', "é", "null"))),
    "b": (pa.bool_(), "BOOLEAN", lambda r: r.random() < 0.5),
    "t": (
        pa.timestamp("us", "UTC"),
        "TIMESTAMP",
        lambda r: EPOCH + timedelta(microseconds=r.randrange(10**15)),
    ),
    "y": (pa.date32(), "DATE", lambda r: date(1500, 1, 1) + timedelta(days=r.randrange(300_000))),
    "x": (pa.binary(), "BLOB", lambda r: r.randbytes(r.randrange(4))),
}
LOST: Mapping[str, Sequence[object]] = {
    "n": ("abc", Decimal("7.75"), 10**20, True),
    "p": (Decimal("10.1299"), "x"),
    "d": (2**53 + 1, "x"),
    "s": (1, True),
    "b": ("true", 1),
    "t": ("soon",),
    "y": ("2024-02-30",),
    "x": ("%",),
}
"""Values of records that the columns cannot hold."""
Row = dict[str, object]
Change = Callable[[random.Random, list[Row], list[Row]], None]


def drop(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    del records
    del rows[randomness.randrange(len(rows))]


def repeat(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    del records
    rows.append(dict(randomness.choice(rows)))


def delay(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    """Move a row to the end, which is no difference."""
    del records
    rows.append(rows.pop(randomness.randrange(len(rows))))


def empty(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    del records
    randomness.choice(rows)[randomness.choice(list(COLUMNS))] = None


def change(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    del records
    name = randomness.choice(list(COLUMNS))
    randomness.choice(rows)[name] = COLUMNS[name][2](randomness)


def lose(randomness: random.Random, records: list[Row], rows: list[Row]) -> None:
    """Give a record a value that the column cannot hold, and perhaps null to a row."""
    at, name = randomness.randrange(len(records)), randomness.choice(list(COLUMNS))
    records[at][name] = randomness.choice(LOST[name])
    if randomness.random() < 0.5:
        randomness.choice(rows)[name] = None


CHANGES: tuple[Change, ...] = (drop, repeat, delay, empty, change, lose)


def as_json(row: Row) -> bytes:
    """Return a row as JSON, with a member for each of its values."""

    def text(value: object) -> str:
        match value:
            case Decimal() | float():
                return str(value)
            case datetime() | date():
                return json.dumps(value.isoformat().replace("+00:00", "Z"))
            case bytes():
                return json.dumps(base64.b64encode(value).decode())
        return json.dumps(value)

    return ("{" + ",".join(f'"{name}":{text(value)}' for name, value in row.items()) + "}").encode()


def meaning(row: Row) -> tuple[object, ...]:
    """Return the kinds and values of a row, by which rows are equal."""
    found: list[object] = []
    for value in row.values():
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        exact = Decimal(str(value)) if is_number else value
        found.append(("number", exact + 0) if is_number else (type(value).__name__, value))
    return tuple(found)


def parquet_sink(directory: Path, rows: list[Row]) -> dict[str, object]:
    fields = [("id", pa.int32()), *((name, kind) for name, (kind, *_) in COLUMNS.items())]
    file = directory / "sink.parquet"
    parquet.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), file)
    return {"kind": "files", "paths": [str(file)], "format": "parquet"}


def sqlite_sink(directory: Path, rows: list[Row]) -> dict[str, object]:
    def stored(value: object) -> object:
        match value:
            case datetime():
                return value.replace(tzinfo=None).isoformat(" ", "microseconds")
            case Decimal() | date():
                return str(value)
        return value

    declared = ", ".join(f"{name} {kind}" for name, (_, kind, _) in COLUMNS.items())
    database = directory / "sink.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(f"CREATE TABLE t (id INTEGER, {declared})")
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        values = [tuple(map(stored, row.values())) for row in rows]
        connection.executemany(f"INSERT INTO t VALUES ({marks})", values)
    return {"kind": "table", "url": f"jdbc:sqlite:{database}", "table": "t"}


def with_changes(seed: int) -> tuple[list[Row], list[Row]]:
    """Return records, and a sink's rows with known changes."""
    randomness = random.Random(seed)
    records: list[Row] = []
    for number in range(ROWS):
        row: Row = {"id": seed * ROWS + number}
        for name, (_, _, value) in COLUMNS.items():
            row[name] = None if randomness.random() < 0.2 else value(randomness)
        records.append(row)
    rows = [dict(row) for row in records]
    for changed in randomness.choices(CHANGES, k=randomness.randrange(6)):
        changed(randomness, records, rows)
    return records, rows


@pytest.mark.long
@pytest.mark.parametrize("seeds", SEEDS)
def test_sinks_with_known_changes_are_judged_as_by_the_reference(
    spark: SparkSession, tmp_path: Path, seeds: Sequence[int]
) -> None:
    """An audit judges a Parquet file (even seeds) or an SQLite table as the reference does."""
    records: list[Row] = []
    rows: list[Row] = []
    for more, others in map(with_changes, seeds):
        records += more
        rows += others
    right = (sqlite_sink if seeds[0] % 2 else parquet_sink)(tmp_path, rows)
    given = [Given(as_json(row)) for row in records]
    answer = RecordedAudit(spark, tmp_path).run(
        "topic-sink", {LEFT: given}, left=topic(LEFT), right=right
    )
    before, after = (Counter(map(meaning, side)) for side in (records, rows))
    surplus = {row: max(after[row] - before[row], 0) for row in {*before, *after}}
    expected = {
        "missing": sum(max(before[row] - after[row], 0) for row in before),
        "extra": sum(count for row, count in surplus.items() if not before[row]),
        "repeated": sum(count for row, count in surplus.items() if before[row]),
    }
    found = {kind: answer.outcome.totals.get(kind, 0) for kind in expected}
    assert found == expected, answer.outcome.findings
    assert answer.verdict is (Verdict.DIFFER if any(expected.values()) else Verdict.AGREE)
