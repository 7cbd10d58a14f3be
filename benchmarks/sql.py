"""SqlSource and SqlSink beside the bare database driver, in processor time of this process.

    scripts/benchmark sql [--rows N] [--batch N] [--runs N]

A row has an integer key, a text of 40 characters, a number, a timestamp and an integer. The task is
called as a worker calls it; converters and Kafka are not measured. SQLite runs within the process,
so that its own work is part of both figures; PostgreSQL's is part of neither. Both sides run in
turn. The bare loops use COPY for PostgreSQL as the sink does, for upserts into a temporary table.
"""

import argparse
import gc
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyconnect_agent.tasks.host import COLLECTION_THRESHOLDS
from pyconnect_api import (
    FLOAT64_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    TIMESTAMP_SCHEMA,
    SchemaBuilder,
    SinkRecord,
    Struct,
    TopicPartition,
)
from pyconnect_api.testing import SinkHarness, SourceHarness
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_connectors.sql.source import SqlSourceTask
from tests.support.servers.postgres import PostgresServer, running_postgres

NAMES = ("id", "note", "price", "changed", "amount")
SCHEMAS = (INT64_SCHEMA, STRING_SCHEMA, FLOAT64_SCHEMA, TIMESTAMP_SCHEMA, INT32_SCHEMA)
START = datetime(2024, 1, 1, tzinfo=UTC)
Times = list[float]
TARGET = "id bigint PRIMARY KEY, note text, price double precision, changed {}, amount integer"


def rows(count: int) -> list[tuple[Any, ...]]:
    return [
        (n, f"order number {n:>20} note", n / 7, START + timedelta(milliseconds=n), n % 100)
        for n in range(1, count + 1)
    ]


def records(found: Sequence[tuple[Any, ...]]) -> list[SinkRecord]:
    builder = SchemaBuilder.struct()
    for name, schema in zip(NAMES, SCHEMAS, strict=True):
        builder.field(name, schema)
    schema = builder.build()
    return [
        SinkRecord("target", 0, None, None, schema, Struct.of_checked(schema, list(row)), offset)
        for offset, row in enumerate(found)
    ]


@contextmanager
def measured(times: Times) -> Iterator[None]:
    gc.collect()
    # Garbage collections must not visit the rows that were made for the measurement.
    gc.freeze()
    began_s = time.process_time()
    yield
    times.append(time.process_time() - began_s)
    gc.unfreeze()


def read_with(settings: Mapping[str, str], count: int, batch: int, times: Times) -> None:
    position = {"mode": "incrementing", "incrementing.column.name": "id", "tables": "source"}
    source = SourceHarness(SqlSourceTask, {**settings, **position, "batch.max.rows": str(batch)})
    task = source.start()
    seen = 0
    with measured(times):
        while seen < count:
            seen += len(task.poll() or ())
    task.stop()


def write_with(
    settings: Mapping[str, str], found: Sequence[SinkRecord], batch: int, times: Times, mode: str
) -> None:
    writing = {"name": "bench", "insert.mode": mode}
    if mode == "upsert":
        writing |= {"pk.mode": "record_value", "pk.fields": "id"}
    sink = SinkHarness(
        SqlSinkTask, {**settings, **writing}, partitions=[TopicPartition("target", 0)]
    )
    task = sink.start()
    with measured(times):
        for begin in range(0, len(found), batch):
            task.put(found[begin : begin + batch])
    task.stop()


class Sqlite:
    name = "SQLite"

    def __init__(self, directory: Path) -> None:
        self._file = directory / "bench.db"
        self.settings = {"connection.url": f"sqlite:///{self._file}"}

    def prepare(self, found: Sequence[tuple[Any, ...]]) -> None:
        self._file.unlink(missing_ok=True)
        with closing(sqlite3.connect(self._file)) as connection:
            for table in ("source", "target"):
                connection.execute(f"CREATE TABLE {table} ({TARGET.format('DATETIME')})")
            connection.executemany("INSERT INTO source VALUES (?, ?, ?, ?, ?)", _texts(found))
            connection.commit()

    def bare_read(self, batch: int, times: Times) -> None:
        with closing(sqlite3.connect(self._file)) as connection, measured(times):
            cursor = connection.execute("SELECT * FROM source ORDER BY id")
            while cursor.fetchmany(batch):
                pass

    def bare_write(
        self, found: Sequence[tuple[Any, ...]], batch: int, times: Times, mode: str
    ) -> None:
        conflict = "" if mode == "insert" else f" ON CONFLICT (id) DO UPDATE SET {_CHANGES}"
        with closing(sqlite3.connect(self._file)) as connection, measured(times):
            for begin in range(0, len(found), batch):
                part = _texts(found[begin : begin + batch])
                statement = f"INSERT INTO target VALUES (?, ?, ?, ?, ?){conflict}"
                connection.executemany(statement, part)
                connection.commit()


class Postgres:
    name = "PostgreSQL"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._database = ""

    @property
    def settings(self) -> dict[str, str]:
        return self._server.settings(self._database)

    def prepare(self, found: Sequence[tuple[Any, ...]]) -> None:
        self._database = self._server.new_database()
        with self._server.connect(self._database) as connection:
            for table in ("source", "target"):
                statement = f"CREATE TABLE {table} ({TARGET.format('timestamptz')})"
                connection.execute(statement.encode())
            with connection.cursor() as cursor, cursor.copy("COPY source FROM STDIN") as copy:
                for row in found:
                    copy.write_row(row)

    def bare_read(self, batch: int, times: Times) -> None:
        with (
            self._server.connect(self._database) as connection,
            connection.transaction(),
            connection.cursor(name="bare") as cursor,
            measured(times),
        ):
            cursor.execute("SELECT * FROM source ORDER BY id")
            while cursor.fetchmany(batch):
                pass

    def bare_write(
        self, found: Sequence[tuple[Any, ...]], batch: int, times: Times, mode: str
    ) -> None:
        upsert = (
            f"INSERT INTO target SELECT * FROM staged ON CONFLICT (id) DO UPDATE SET {_CHANGES}"
        )
        into = "staged" if mode == "upsert" else "target"
        with self._server.connect(self._database) as connection, measured(times):
            connection.execute(
                "CREATE TEMPORARY TABLE staged ON COMMIT DELETE ROWS AS TABLE target WITH NO DATA"
            )
            for begin in range(0, len(found), batch):
                with connection.transaction(), connection.cursor() as cursor:
                    with cursor.copy(f"COPY {into} FROM STDIN".encode()) as copy:
                        for row in found[begin : begin + batch]:
                            copy.write_row(row)
                    if mode == "upsert":
                        cursor.execute(upsert.encode())


_CHANGES = ", ".join(f"{name} = excluded.{name}" for name in NAMES[1:])


def _texts(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [
        (n, note, price, changed.strftime("%Y-%m-%d %H:%M:%S.%f"), amount)
        for n, note, price, changed, amount in found
    ]


def report(what: str, count: int, times: Times, bare: Times) -> None:
    ours, theirs = statistics.median(times), statistics.median(bare)
    ratios = [our / their for our, their in zip(times, bare, strict=True)]
    print(
        f"| {what} | {count / ours / 1000:.0f} | {ours / count * 1e6:.2f} |"
        f" {theirs / count * 1e6:.2f} | {statistics.median(ratios):.1f} |"
        f" {min(ratios):.1f} to {max(ratios):.1f} |",
        flush=True,
    )


def compare(database: Sqlite | Postgres, count: int, batch: int, runs: int) -> None:
    found = rows(count)
    made = records(found)

    def row(what: str, ours: Callable[[Times], None], bare: Callable[[Times], None]) -> None:
        times: tuple[Times, Times] = [], []
        for _ in range(runs):
            for run, found_s in zip((ours, bare), times, strict=True):
                database.prepare(found)
                run(found_s)
        report(f"{database.name}, {what}", count, *times)

    row(
        "source",
        lambda times: read_with(database.settings, count, batch, times),
        lambda times: database.bare_read(batch, times),
    )
    for mode in ("insert", "upsert"):
        row(
            f"sink, {mode}",
            lambda times, m=mode: write_with(database.settings, made, batch, times, m),  # type: ignore[misc]
            lambda times, m=mode: database.bare_write(found, batch, times, m),  # type: ignore[misc]
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    # A task's process has these thresholds.
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    print(
        "| | k rows/s of CPU | µs/row | µs/row, bare driver | times | lowest to highest |\n"
        "|---|---|---|---|---|---|"
    )
    with tempfile.TemporaryDirectory() as directory, running_postgres() as server:
        for database in (Sqlite(Path(directory)), Postgres(server)):
            compare(database, given.rows, given.batch, given.runs)


if __name__ == "__main__":
    main()
