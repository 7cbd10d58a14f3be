"""Rows of CSV files: texts, under the names of the first line.

Quotes are those of RFC 4180: one that is not closed, or is followed by text, breaks the file,
because nothing says where the next row begins. A column without a name, as spreadsheets write it
behind a comma at the end of lines, is left out as long as it is empty. LakeSink writes a comma for
a null in the only column.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from pyconnect_api import OPTIONAL_STRING_SCHEMA, DataException, Schema, SchemaBuilder, Struct
from pyconnect_connectors.lake.file_rows import Chunk, Source
from pyconnect_connectors.odd_values import OddValues

LONGEST_VALUE = 2**28
"""Characters of one value; more of them are a quote that is not closed, or no value for Kafka."""
_ERRORS = {
    "unexpected end of data": "a quote is not closed",
    "',' expected after '\"'": "text follows a closing quote",
    "field larger than": f"a value has more than {LONGEST_VALUE} characters, or a quote is not "
    "closed",
}
NULL_ALONE = ["", ""]
_KEPT = "pyconnect.kept"
_decoded_badly = 0


def _keep(error: UnicodeError) -> tuple[str | bytes, int]:
    """Decode as surrogates what is not UTF-8, and count: rows without a fault need no look."""
    global _decoded_badly  # noqa: PLW0603  a codec's error handler has no other place
    _decoded_badly += 1
    return codecs.lookup_error("surrogateescape")(error)


codecs.register_error(_KEPT, _keep)


def csv_chunks(file: Any, source: Source) -> Iterator[Chunk]:
    """Yield the rows of a binary file; DataException if it is broken."""
    csv.field_size_limit(LONGEST_VALUE)
    faults = _decoded_badly
    with io.TextIOWrapper(file, "utf-8-sig", _KEPT, newline="") as text:
        lines = filter(None, csv.reader(text, strict=True))
        try:
            names: list[str] | None = next(lines, None)
        except csv.Error as error:
            raise source.broken(f"the first line: {_problem(error)}") from None
        if names is None:
            source.check_length(0)
            return
        rows = _Rows(names, source)
        try:
            row = sum(1 for _ in islice(lines, source.begin))
        except csv.Error as error:
            raise source.broken(f"before row {source.begin + 1}: {_problem(error)}") from None
        source.check_length(row)
        failure = None
        while failure is None:
            chunk: list[list[Any]] = []
            try:
                chunk.extend(islice(lines, source.batch_rows))
            except csv.Error as error:
                failure = source.broken(_problem(error), row + len(chunk))
            if chunk:
                yield rows.chunk(chunk, row, is_utf8=_decoded_badly == faults)
            elif failure is None:
                return
            row += len(chunk)
        raise failure from None


def _problem(error: csv.Error) -> str:
    text = str(error)
    return next((known for begin, known in _ERRORS.items() if text.startswith(begin)), text)


class _Rows:
    """Makes structs of lines."""

    def __init__(self, names: Sequence[str], source: Source) -> None:
        """Raises DataException for names that are no schema's."""
        self._source = source
        self._width = len(names)
        self._named = [index for index, name in enumerate(names) if name.strip()]
        """Columns with a name."""
        self._names = [names[index] for index in self._named]
        double = {name for name in self._names if self._names.count(name) > 1}
        if double or not self._names:
            problem = f"names {', '.join(sorted(double))} twice" if double else "has no name"
            raise source.broken(f"the first line {problem}")
        if any(_is_not_utf8(name) or "\0" in name for name in names):
            raise source.broken("the first line is not UTF-8")
        builder = SchemaBuilder.struct().name(source.topic)
        for name in self._names:
            builder.field(name, OPTIONAL_STRING_SCHEMA)
        self._schema: Schema = builder.build()
        self._least_width = self._named[-1] + 1

    def chunk(self, lines: Sequence[list[Any]], first: int, *, is_utf8: bool) -> Chunk:
        """Return the rows of lines, of which the first one has a number."""
        bad: dict[int, DataException] = {}
        if set(map(len, lines)) != {self._width} or len(self._names) != self._width:
            lines = [self._fitting(line, first + i, bad, i) for i, line in enumerate(lines)]
        # Most rows are kept as they are: to look for an empty text costs less than a copy.
        rows = lines
        if "" in chain.from_iterable(lines):
            rows = [[v or None for v in line] if "" in line else line for line in lines]
        if not is_utf8:
            for index, row in enumerate(rows):
                for column, value in enumerate(row):
                    if value is None or not _is_not_utf8(value):
                        continue
                    if self._source.odd_values is OddValues.NULL:
                        row[column] = None
                    else:
                        bad[index] = self._source.odd(
                            self._names[column], first + index, "a text that is not UTF-8", "STRING"
                        )
        return Chunk(schema=self._schema, values=Struct.all_of_checked(self._schema, rows), bad=bad)

    def _fitting(
        self, line: list[Any], row: int, bad: dict[int, DataException], index: int
    ) -> list[Any]:
        """Return the values of the columns that have names."""
        if line == NULL_ALONE and self._width == 1:
            return [None]
        if not self._least_width <= len(line) <= self._width:
            problem = f"has {len(line)} values, and the first line {self._width}"
            bad[index] = self._source.bad_row(row, problem)
        elif any(value for i, value in enumerate(line) if i not in self._named):
            bad[index] = self._source.bad_row(row, "has a value in a column without a name")
        else:
            return [line[i] for i in self._named]
        return [None] * len(self._names)


def _is_not_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
