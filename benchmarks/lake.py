"""LakeSource and LakeSink beside the bare libraries, in processor time of this process.

    scripts/benchmark lake [--rows N] [--batch N] [--runs N]

A row has an integer, a text of 40 characters, a number, a timestamp and an integer. The task is
called as a worker calls it; converters and Kafka are not measured. Files are on a local path. The
bare loops make the same rows of the same batches: tuples to a file, and a file to tuples. Both
sides run in turn.
"""

import argparse
import csv
import gc
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

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
)
from pyconnect_api.testing import SinkHarness, SourceHarness
from pyconnect_connectors.lake.arrow_types import Columns
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.lake.source import LakeSourceTask

NAMES = ("id", "note", "price", "changed", "amount")
SCHEMAS = (INT64_SCHEMA, STRING_SCHEMA, FLOAT64_SCHEMA, TIMESTAMP_SCHEMA, INT32_SCHEMA)
START = datetime(2024, 1, 1, tzinfo=UTC)
FORMATS = ("parquet", "json", "csv")
Times = list[float]
Run = Callable[[Path, Times], None]


def row_schema() -> Any:
    builder = SchemaBuilder.struct()
    for name, schema in zip(NAMES, SCHEMAS, strict=True):
        builder.field(name, schema)
    return builder.build()


SCHEMA = row_schema()
ARROW = Columns(SCHEMA).schema


def rows(count: int) -> list[tuple[Any, ...]]:
    return [
        (n, f"order number {n:>20} note", n / 7, START + timedelta(milliseconds=n), n % 100)
        for n in range(1, count + 1)
    ]


def records(found: Sequence[tuple[Any, ...]]) -> list[SinkRecord]:
    return [
        SinkRecord("topic", 0, None, None, SCHEMA, Struct.of_checked(SCHEMA, list(row)), offset)
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


def write(lake: Path, written: str, found: Sequence[SinkRecord], batch: int, times: Times) -> None:
    settings = {
        "name": "bench",
        "lake.url": str(lake),
        "format.class": written,
        "flush.size": "100000000",
        "file.max.bytes": "10000000000",
        "iceberg.tables": "bench.ours",
        "iceberg.tables.auto-create-enabled": "true",
    }
    sink = SinkHarness(LakeSinkTask, settings)
    task = sink.start()
    with measured(times):
        for begin in range(0, len(found), batch):
            task.put(found[begin : begin + batch])
        sink.stop()


def bare_batch(part: Sequence[tuple[Any, ...]]) -> Any:
    columns = zip(*part, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def bare_write(
    lake: Path, written: str, found: Sequence[tuple[Any, ...]], batch: int, times: Times
) -> None:
    parts = [found[begin : begin + batch] for begin in range(0, len(found), batch)]
    if written == "iceberg":
        uri = f"sqlite:///{lake}/bare.db"
        catalog = load_catalog("bare", type="sql", uri=uri, warehouse=f"file://{lake}")
        catalog.create_namespace("bench")
        table = catalog.create_table("bench.bare", ARROW)
        with measured(times):
            table.append(pa.Table.from_batches([bare_batch(part) for part in parts]))
        return
    with measured(times), (lake / "bare").open("wb") as file:
        if written == "parquet":
            with pq.ParquetWriter(file, ARROW) as writer:
                writer.write_table(pa.Table.from_batches([bare_batch(part) for part in parts]))
        elif written == "csv":
            with pa_csv.CSVWriter(file, ARROW) as csv_writer:
                for part in parts:
                    csv_writer.write_batch(bare_batch(part))
        else:
            encode = msgspec.json.Encoder().encode_lines
            for part in parts:
                file.write(encode([dict(zip(NAMES, row, strict=True)) for row in part]))
        os.fsync(file.fileno())


def read(path: Path, written: str, count: int, batch: int, times: Times) -> None:
    settings = {
        "lake.url": str(path.parent),
        "topic": "topic",
        "format.class": written,
        "batch.max.rows": str(batch),
        "file.pattern": path.name,
    }
    task = SourceHarness(LakeSourceTask, settings).start()
    seen = 0
    with measured(times):
        while seen < count:
            seen += len(task.poll() or ())
    task.stop()


def bare_read(path: Path, written: str, batch: int, times: Times) -> None:
    with measured(times):
        if written == "parquet":
            for found in pq.ParquetFile(path).iter_batches(batch):
                list(zip(*[column.to_pylist() for column in found.columns], strict=True))
        elif written == "csv":
            with path.open(newline="") as lines:
                for _ in csv.reader(lines):
                    pass
        else:
            decode = msgspec.json.Decoder().decode
            with path.open() as lines:
                for line in lines:
                    decode(line)


def compare(what: str, count: int, runs: int, ours: Run, bare: Run) -> None:
    """Run both sides in turn, each in a directory of its own, and print a row."""
    times: tuple[Times, Times] = [], []
    for _ in range(runs):
        for run, found_s in zip((ours, bare), times, strict=True):
            with tempfile.TemporaryDirectory() as directory:
                run(Path(directory), found_s)
    our_s, bare_s = map(statistics.median, times)
    ratios = [our / their for our, their in zip(*times, strict=True)]
    print(
        f"| {what} | {count / our_s / 1000:.0f} | {our_s / count * 1e6:.2f} |"
        f" {bare_s / count * 1e6:.2f} | {statistics.median(ratios):.1f} |"
        f" {min(ratios):.1f} to {max(ratios):.1f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    # A task's process has these thresholds.
    gc.set_threshold(*COLLECTION_THRESHOLDS)
    found = rows(given.rows)
    made = records(found)
    print(
        "| | k rows/s of CPU | µs/row | µs/row, bare library | times | lowest to highest |\n"
        "|---|---|---|---|---|---|"
    )
    for name in (*FORMATS, "iceberg"):
        compare(
            f"sink, {name}",
            given.rows,
            given.runs,
            lambda d, t, n=name: write(d, n, made, given.batch, t),  # type: ignore[misc]
            lambda d, t, n=name: bare_write(d, n, found, given.batch, t),  # type: ignore[misc]
        )
    with tempfile.TemporaryDirectory() as directory:
        lake = Path(directory)
        for name in FORMATS:
            write(lake, name, made, given.batch, [])
            (path,) = (lake / "topics").rglob(f"topic+*.{name}")
            path = path.rename(lake / f"bench.{name}")
            for log in (lake / "topics").rglob("*.json"):
                log.unlink()
            compare(
                f"source, {name}",
                given.rows,
                given.runs,
                lambda _, t, p=path, n=name: read(p, n, given.rows, given.batch, t),  # type: ignore[misc]
                lambda _, t, p=path, n=name: bare_read(p, n, given.batch, t),  # type: ignore[misc]
            )


if __name__ == "__main__":
    main()
