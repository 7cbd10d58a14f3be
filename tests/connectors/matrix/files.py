"""The files of the matrix: columns of Parquet, values of JSON and CSV, and targets of LakeSink."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

from pyconnect_api import SourceRecord
from pyconnect_api.testing import SourceHarness
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.lake.source import LakeSourceTask
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import Rows, grid
from tests.connectors.matrix.file_columns import PARQUET_TYPES
from tests.connectors.matrix.meanings import Kind, of_python, parsed_json
from tests.connectors.matrix.paths import (
    NO_SETTINGS,
    Message,
    Scratch,
    UnreadableError,
    delivered,
    polled,
)
from tests.connectors.matrix.topics import TOPIC

NAMES = {"parquet": "Parquet", "json": "JSON", "csv": "CSV", "iceberg": "Iceberg"}


class FileSource:
    """A source of files in which LakeSource reads a column for each type."""

    def __init__(self, format_: str, scratch: Path) -> None:
        self._format = format_
        self._scratch = Scratch(scratch / f"from-{format_}")
        self.name = NAMES[format_]

    def read(
        self, cells: Sequence[Cell], settings: Mapping[str, str] = NO_SETTINGS
    ) -> list[SourceRecord]:
        lake = self._scratch.new()
        count = max(len(found) for _, found in grid(cells))
        _WRITERS[self._format](lake / f"a.{self._format}", cells, count)
        props = {
            "lake.url": str(lake),
            "format.class": self._format,
            "topic": TOPIC,
            "poll.interval.ms": "1",
            "retry.backoff.ms": "0",
            "max.retries": "0",
            **settings,
        }
        return polled(SourceHarness(LakeSourceTask, props))


def _write_parquet(file: Path, cells: Sequence[Cell], count: int) -> None:
    types = {c.type: arrow_type for c, arrow_type in PARQUET_TYPES}
    arrays = {"id": pa.array(list(range(count)), pa.int32())}
    for column, found in grid(cells):
        values = [cell.value.given for cell in found] + [None] * (count - len(found))
        arrays[column.name] = pa.array(values, types[column.type])
    # ARROW:schema in the file keeps what Parquet lacks, such as durations.
    pq.write_table(pa.table(arrays), file)


def _write_json(file: Path, cells: Sequence[Cell], count: int) -> None:
    lines = []
    for row in range(count):
        present = [(c, found[row].value.given) for c, found in grid(cells) if row < len(found)]
        values = [f'"{c.name}": {"null" if given is None else given}' for c, given in present]
        lines.append("{" + ", ".join([f'"id": {row}', *values]) + "}\n")
    file.write_bytes("".join(lines).encode())


def _write_csv(file: Path, cells: Sequence[Cell], count: int) -> None:
    columns = grid(cells)
    lines = [",".join(["id", *(c.name for c, _ in columns)])]
    for row in range(count):
        given = [found[row].value.given if row < len(found) else None for _, found in columns]
        lines.append(",".join([str(row), *(each or "" for each in given)]))
    file.write_bytes(("\n".join(lines) + "\n").encode())


_WRITERS = {"parquet": _write_parquet, "json": _write_json, "csv": _write_csv}


def iceberg_props(lake: Path, table: str) -> dict[str, str]:
    """Return the config of LakeSink for one table."""
    return {
        "name": "matrix",
        "lake.url": str(lake),
        "format.class": "iceberg",
        "iceberg.tables": f"lake.{table}",
        "iceberg.tables.auto-create-enabled": "true",
        "retry.backoff.ms": "0",
        "max.retries": "0",
    }


class LakeTarget:
    """A target of LakeSink: files of one format, or an Iceberg table."""

    def __init__(self, format_: str, scratch: Path) -> None:
        self._format = format_
        self._scratch = Scratch(scratch / f"to-{format_}")
        self.name = NAMES[format_]

    def write(
        self, cells: Sequence[Cell], messages: Sequence[Message], kinds: Mapping[str, Kind]
    ) -> Rows:
        lake = self._scratch.new()
        props = {**iceberg_props(lake, TOPIC), "format.class": self._format}
        delivered(LakeSinkTask, props, messages)
        try:
            rows = self._rows(lake)
        except Exception as error:
            raise UnreadableError(f"{type(error).__name__}: {error}") from error
        rows.sort(key=lambda row: int(str(row["id"])))
        return [{n: of_python(k, row.get(n)) for n, k in kinds.items()} for row in rows]

    def _rows(self, lake: Path) -> list[dict[str, Any]]:
        if self._format == "iceberg":
            catalog = load_catalog("iceberg", type="sql", uri=f"sqlite:///{lake}/catalog.db")
            return list(catalog.load_table(f"lake.{TOPIC}").scan().to_arrow().to_pylist())
        files = sorted((lake / "topics" / TOPIC).rglob("*+*"))
        return [row for file in files for row in _READERS[self._format](file)]


def _parquet_rows(file: Path) -> list[dict[str, Any]]:
    return list(pq.ParquetFile(file).read().to_pylist())


def _json_rows(file: Path) -> list[dict[str, Any]]:
    data = file.read_bytes()
    # Only LF ends a row.
    return [parsed_json(line) for line in data.decode().split("\n") if line]  # type: ignore[misc]


def _csv_rows(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as text:
        names = text.readline().rstrip("\n").replace('"', "").split(",")
    table = pa_csv.read_csv(
        file,
        parse_options=pa_csv.ParseOptions(newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    return list(table.to_pylist())


_READERS = {"parquet": _parquet_rows, "json": _json_rows, "csv": _csv_rows}
