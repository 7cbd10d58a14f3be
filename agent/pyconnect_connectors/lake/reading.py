"""Rows of a file, in batches, from any row on.

A row that cannot be read ends a batch. Behind the rows before it, it is an error that names file
and row, or with `errors.tolerance=all` one warning in the log. A file that is broken as a whole,
such as one with an open quote, always is an error.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from pyconnect_api import DataException, Schema
from pyconnect_connectors.lake.arrow_rows import Rows
from pyconnect_connectors.lake.csv_rows import csv_chunks
from pyconnect_connectors.lake.file_rows import Chunk, Source
from pyconnect_connectors.lake.json_rows import json_chunks
from pyconnect_connectors.lake.names import Format
from pyconnect_connectors.lake.settings import SourceSettings

LOG = logging.getLogger(__name__)


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
    source = Source(
        path=path,
        begin=begin,
        topic=settings.topic,
        batch_rows=settings.batch_rows,
        odd_values=settings.odd_values,
    )
    try:
        with file:
            match settings.format:
                case Format.PARQUET:
                    chunks = _parquet(file, source)
                case Format.JSON:
                    chunks = json_chunks(_unpacked(file), source)
                case _:
                    chunks = csv_chunks(_unpacked(file), source)
            yield from _with_last(_good(chunks, begin, tolerant=settings.tolerant))
    except (pa.ArrowException, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise source.broken(
            f"it is not a {settings.format} file, or damaged: {type(error).__name__}"
        ) from None


def _good(chunks: Iterator[Chunk], begin: int, *, tolerant: bool) -> Iterator[Batch]:
    """Yield the rows that can be read, as batches of consecutive rows."""
    first = begin
    for chunk in chunks:
        done = 0
        for index in (*sorted(chunk.bad), len(chunk.values)):
            if index > done:
                yield Batch(
                    schema=chunk.schema,
                    values=chunk.values[done:index],
                    first=first + done,
                    is_last=False,
                )
            done = index + 1
            if index in chunk.bad:
                if not tolerant:
                    # Its cause would hold the library's own words, or part of the row.
                    raise chunk.bad[index] from None
                LOG.warning("a row was left out", extra={"reason": str(chunk.bad[index])})
        first += len(chunk.values)


def _with_last(found: Iterator[Batch]) -> Iterator[Batch]:
    """Mark the last batch, for which the next one has to be known."""
    previous = next(found, None)
    while previous is not None:
        try:
            following = next(found, None)
        except Exception:
            # The rows before an error are delivered first.
            yield previous
            raise
        yield previous if following is not None else replace(previous, is_last=True)
        previous = following


def _parquet(file: IO[bytes], source: Source) -> Iterator[Chunk]:
    # INT96 as nanoseconds would turn years after 2262 into others.
    with pq.ParquetFile(
        file, coerce_int96_timestamp_unit="us", page_checksum_verification=True
    ) as parquet:
        try:
            rows = Rows(parquet.schema_arrow, source.topic, source.odd_values)
        except DataException as error:
            raise source.broken(str(error)) from None
        source.check_length(parquet.metadata.num_rows)
        first = 0
        groups: list[int] = []
        for index in range(parquet.num_row_groups):
            count = parquet.metadata.row_group(index).num_rows
            if groups or first + count > source.begin:
                groups.append(index)
            else:
                first += count
        if not groups:
            return
        for batch in parquet.iter_batches(source.batch_rows, row_groups=groups):
            skipped = max(0, source.begin - first)
            if skipped < batch.num_rows:
                values, odd = rows.structs(batch.slice(skipped))
                row = first + skipped
                bad = {i: source.odd(o.column, row + i, o.kind, o.target) for i, o in odd.items()}
                yield Chunk(schema=rows.schema, values=values, bad=bad)
            first += batch.num_rows


def _unpacked(file: Any) -> Any:
    """Return the content of a file, which may be compressed: no text begins with these bytes."""
    is_packed = file.peek(2).startswith(b"\x1f\x8b")
    return gzip.GzipFile(fileobj=file) if is_packed else file
