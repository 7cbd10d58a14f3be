"""Rows of a file, in batches, from any row on."""

from __future__ import annotations

import csv
import gzip
import io
from codecs import BOM_UTF8
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pyconnect_api import OPTIONAL_STRING_SCHEMA, DataException, Schema, SchemaBuilder, Struct
from pyconnect_connectors.lake.arrow_types import Rows
from pyconnect_connectors.lake.names import Format
from pyconnect_connectors.lake.settings import SourceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Values of one schema; `first` is the number of the first row, from 0."""

    schema: Schema | None
    values: Sequence[object]
    first: int
    is_last: bool


def batches(
    file: IO[bytes], path: str, begin: int, settings: SourceSettings
) -> Generator[Batch, None, None]:
    """Yield the rows of a file from the row `begin` on, and close it.

    DataException for content that is not of the format.
    """
    try:
        if settings.format is Format.PARQUET:
            with file:
                yield from _with_last(_parquet(file, begin, settings))
        elif settings.format is Format.JSON:
            with file, _unpacked(file, path) as lines:
                yield from _with_last(_json(lines, begin, settings))
        else:
            with file, io.TextIOWrapper(_unpacked(file, path), "utf-8-sig", newline="") as text:
                yield from _with_last(_csv(text, begin, settings))
    except (pa.ArrowInvalid, csv.Error, UnicodeDecodeError, gzip.BadGzipFile, EOFError) as error:
        raise DataException(
            f"{path} is not a {settings.format} file: {type(error).__name__}"
        ) from None


def _with_last(found: Iterator[Batch]) -> Iterator[Batch]:
    """Mark the last batch, for which the next one has to be known."""
    previous = next(found, None)
    while previous is not None:
        following = next(found, None)
        yield Batch(
            schema=previous.schema,
            values=previous.values,
            first=previous.first,
            is_last=following is None,
        )
        previous = following


def _parquet(file: IO[bytes], begin: int, settings: SourceSettings) -> Iterator[Batch]:
    with pq.ParquetFile(file) as parquet:
        rows = Rows(parquet.schema_arrow, settings.topic)
        first = 0
        groups: list[int] = []
        for index in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(index).num_rows
            if groups or first + count > begin:
                groups.append(index)
            else:
                first += count
        if not groups:
            return
        for batch in parquet.iter_batches(settings.batch_rows, row_groups=groups):
            skipped = max(0, begin - first)
            if skipped < batch.num_rows:
                values = rows.structs(batch.slice(skipped))
                yield _batch(rows.schema, values, first + skipped)
            first += batch.num_rows


def _json(file: Any, begin: int, settings: SourceSettings) -> Iterator[Batch]:
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))
    decode = msgspec.json.Decoder().decode
    # Without a loop in Python, and without a text of each line, which the decoder does not need.
    lines = filter(bytes.strip, file)
    first = sum(1 for _ in islice(lines, begin))
    while chunk := list(islice(lines, settings.batch_rows)):
        try:
            values = list(map(decode, chunk))
        except msgspec.MsgspecError:
            raise _not_json(chunk, first) from None
        yield _batch(None, values, first)
        first += len(chunk)


def _not_json(chunk: Sequence[bytes], first: int) -> DataException:
    """Return the error of the first of these rows that is not JSON."""
    for number, line in enumerate(chunk, first):
        try:
            msgspec.json.decode(line)
        except msgspec.MsgspecError as error:
            return DataException(f"Row {number} is not JSON: {error}")
    raise AssertionError("one of the rows was not JSON before")


def _csv(text: Any, begin: int, settings: SourceSettings) -> Iterator[Batch]:
    reader: Iterator[list[Any]] = csv.reader(text)
    names = next(reader, None)
    if names is None:
        return
    builder = SchemaBuilder.struct().name(settings.topic)
    for name in names:
        builder.field(name, OPTIONAL_STRING_SCHEMA)
    schema, width = builder.build(), len(names)
    lines = filter(None, reader)
    first = sum(1 for _ in islice(lines, begin))
    while chunk := list(islice(lines, settings.batch_rows)):
        if set(map(len, chunk)) != {width}:
            raise _not_as_wide(chunk, first, width)
        # Most rows are kept as they are: to look for an empty text costs less than a copy.
        rows = [[v or None for v in line] if "" in line else line for line in chunk]
        yield _batch(schema, Struct.all_of_checked(schema, rows), first)
        first += len(chunk)


def _not_as_wide(chunk: Sequence[Sequence[str]], first: int, width: int) -> DataException:
    """Return the error of the first of these rows that is not as wide as the names."""
    number, count = next((n, len(row)) for n, row in enumerate(chunk, first) if len(row) != width)
    return DataException(f"Row {number} has {count} values, not {width}")


def _batch(schema: Schema | None, values: Sequence[object], first: int) -> Batch:
    return Batch(schema=schema, values=values, first=first, is_last=False)


def _unpacked(file: IO[bytes], path: str) -> Any:
    """Return the content of a file, which may be compressed."""
    return gzip.GzipFile(fileobj=file) if path.endswith(".gz") else file
