"""Rows of a file of Parquet, JSON or CSV, in batches, from any row on.

A row that cannot be read ends a batch. After the rows before it, it is an error that names file
and row, or with `errors.tolerance=all` one warning in the log. A file that is broken as a whole,
such as one with an open quote, is always an error.

JSON: one value of any kind a line, without a schema. Numbers keep their digits: those that 64 bits
would change are Decimals. Of two members with one name the last one counts, as in Jackson.

CSV: texts, under the names of the first line. Quotes are those of RFC 4180: one that is not closed,
or is followed by text, breaks the file, because nothing says where the next row begins. A column
without a name, as spreadsheets write it behind a comma at the end of lines, is left out as long as
it is empty. LakeSink writes a comma for a null in the only column.
"""

import codecs
import csv
import gzip
import io
import json
import logging
import re
import zlib
from codecs import BOM_UTF8
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from itertools import chain, islice
from typing import IO, Any, NoReturn

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from pyconnect_api import OPTIONAL_STRING_SCHEMA, DataException, Schema, SchemaBuilder, Struct
from pyconnect_api.validation import kept_number
from pyconnect_connectors.lake.arrow_rows import Rows
from pyconnect_connectors.lake.settings import Format, SourceSettings
from pyconnect_connectors.odd_values import TOLERANCE, OddValueException, OddValues

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Consecutive rows of one schema; `bad`: errors by index, where a value is not a row."""

    schema: Schema | None
    values: Sequence[object]
    bad: Mapping[int, DataException] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The file that is read, and how.

    `begin` is the number of the first row to read. Rows are numbered from 0; errors call the first
    one "row 1", which is the offset after it.
    """

    path: str
    begin: int
    settings: SourceSettings

    def odd(self, column: str, row: int, kind: str, target: str) -> OddValueException:
        return OddValueException(
            f"file {self.path}", column=column, row=f"row {row + 1}", kind=kind, target=target
        )

    def bad_row(self, row: int, problem: str) -> DataException:
        return DataException(
            f"Row {row + 1} of file {self.path} {problem}; "
            f"set {TOLERANCE}=all to go on without the row"
        )

    def check_length(self, rows: int) -> None:
        """Raise DataException for a file with fewer rows than were read from it before."""
        if rows < self.begin:
            raise self.broken(
                f"it has {rows} rows, and {self.begin} were read of it before: a file that was "
                "replaced is read again after a reset of its offset"
            )

    def broken(self, problem: str, row: int | None = None) -> DataException:
        """Return the error of a file of which no further row can be read."""
        place = "" if row is None else f", row {row + 1}"
        return DataException(f"File {self.path}{place}: {problem}")


_CLASSES = bytes(
    ord("0" if chr(octet) in "0123456789." else "e" if chr(octet) in "eE" else " ")
    for octet in range(256)
)
_LONG = b"0" * 17
"""A point and 16 digits. A double keeps any 15 digits, and an integer of 64 bits any 18."""
_DIGITS = bytes(ord("0" if chr(octet) in "0123456789" else " ") for octet in range(256))
_DIGITS_OF_MORE = b"0" * 19
_MORE = re.compile(rb"[1-9]\d{19}|9[2-9]\d{17}")
"""An integer of more than 64 bits."""
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def json_chunks(file: Any, source: Source) -> Iterator[Chunk]:
    """Yield the rows of a binary file; DataException if it is broken."""
    if file.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
        file.read(len(BOM_UTF8))
    quick, exact = msgspec.json.Decoder().decode, msgspec.json.Decoder(float_hook=_number).decode
    # `filter` needs neither a loop in Python nor a text of each line.
    lines = filter(bytes.strip, file)
    row = sum(1 for _ in islice(lines, source.begin))
    source.check_length(row)
    while chunk := list(islice(lines, source.settings.batch_rows)):
        bad: dict[int, DataException] = {}
        try:
            text = b"".join(chunk)
            # A translation finds floats that 64 bits would change without a loop in Python.
            classes = text.translate(_CLASSES)
            is_long = _LONG in classes or b"0e" in classes
            values = list(map(exact if is_long else quick, chunk))
            if _DIGITS_OF_MORE in text.translate(_DIGITS):
                values = [
                    _of_64_bits(value) if _MORE.search(line) else value
                    for value, line in zip(values, chunk, strict=True)
                ]
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            values = []
            for index, line in enumerate(chunk):
                try:
                    values.append(_exactly(line, row + index, source))
                except DataException as error:
                    values.append(None)
                    bad[index] = error
            if row == 0 and 0 in bad and _is_unfinished(chunk[0]):
                raise source.broken(
                    "the JSON value does not end on its line; a file has one value a line", 0
                ) from None
        yield Chunk(schema=None, values=values, bad=bad)
        row += len(chunk)


def _number(digits: str) -> object:
    number = float(digits)
    # Most numbers have few digits, or are written as the nearest double is.
    if (len(digits) <= 15 and "e" not in digits and "E" not in digits) or repr(number) == digits:
        return number
    try:
        return kept_number(Decimal(digits))
    except InvalidOperation:
        raise ValueError("a number has an exponent that is too large") from None


def _of_64_bits(value: Any) -> Any:
    match value:
        case dict():
            return {name: _of_64_bits(member) for name, member in value.items()}
        case list():
            return list(map(_of_64_bits, value))
        case int():
            return value if isinstance(value, bool) else kept_number(value)
    return value


def _exactly(line: bytes, row: int, source: Source) -> Any:
    """Return the value of a line that may be wrong; raise DataException that says why it is."""
    try:
        text, kind = line.decode(), "a lone surrogate"
    except UnicodeDecodeError:
        text, kind = line.decode("utf-8", "surrogateescape"), "a text that is not UTF-8"

    def no_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a JSON value")

    try:
        value = json.loads(text, parse_float=_number, parse_constant=no_constant)
        return _of_64_bits(_with_texts(value, "", row, source, kind))
    except json.JSONDecodeError as error:
        problem = f"{error.msg} at character {error.pos + 1}"
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        problem = str(error)
    raise source.bad_row(row, f"is not JSON: {problem}") from None


def _with_texts(value: Any, path: str, row: int, source: Source, kind: str) -> Any:
    """Return a value whose texts are valid Unicode; other texts become null or an error."""
    match value:
        case str() if _LONE_SURROGATE.search(value):
            if source.settings.odd_values is OddValues.NULL:
                return None
            raise source.odd(path or "(value)", row, kind, "STRING")
        case list():
            return [_with_texts(element, path, row, source, kind) for element in value]
        case dict():
            found = {}
            for name, member in value.items():
                if _LONE_SURROGATE.search(name):
                    raise source.odd(path or "(value)", row, f"{kind} in a name", "STRING")
                inner = f"{path}.{name}" if path else name
                found[name] = _with_texts(member, inner, row, source, kind)
            return found
    return value


def _is_unfinished(line: bytes) -> bool:
    """Return whether a line is an array or object without its end."""
    try:
        json.loads(line)
    except json.JSONDecodeError as error:
        return line.lstrip().startswith((b"[", b"{")) and error.pos >= len(error.doc.rstrip())
    except (ValueError, RecursionError):
        pass
    return False


LONGEST_VALUE = 2**28
"""Characters of one value. A longer one is an open quote, or too large for Kafka."""
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
    """Decode bytes that are not UTF-8 as surrogates, and count them: other rows need no check."""
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
                chunk.extend(islice(lines, source.settings.batch_rows))
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
    """Maker of structs from lines."""

    def __init__(self, names: Sequence[str], source: Source) -> None:
        """Raise DataException for names that a schema cannot have."""
        self._source = source
        self._width = len(names)
        self._named = [index for index, name in enumerate(names) if name.strip()]
        """Indexes of the columns that have a name."""
        self._names = [names[index] for index in self._named]
        double = {name for name in self._names if self._names.count(name) > 1}
        if double or not self._names:
            problem = f"names {', '.join(sorted(double))} twice" if double else "has no name"
            raise source.broken(f"the first line {problem}")
        if any(_is_not_utf8(name) or "\0" in name for name in names):
            raise source.broken("the first line is not UTF-8")
        builder = SchemaBuilder.struct().name(source.settings.topic)
        for name in self._names:
            builder.field(name, OPTIONAL_STRING_SCHEMA)
        self._schema: Schema = builder.build()
        self._least_width = self._named[-1] + 1

    def chunk(self, lines: Sequence[list[Any]], first: int, *, is_utf8: bool) -> Chunk:
        """Return the rows of lines; `first` is the number of the first line."""
        bad: dict[int, DataException] = {}
        if set(map(len, lines)) != {self._width} or len(self._names) != self._width:
            lines = [self._fitting(line, first + i, bad, i) for i, line in enumerate(lines)]
        # Most rows are kept as they are: looking for an empty text costs less than a copy.
        rows = lines
        if "" in chain.from_iterable(lines):
            rows = [[v or None for v in line] if "" in line else line for line in lines]
        if not is_utf8:
            for index, row in enumerate(rows):
                for column, value in enumerate(row):
                    if value is None or not _is_not_utf8(value):
                        continue
                    if self._source.settings.odd_values is OddValues.NULL:
                        row[column] = None
                    else:
                        bad[index] = self._source.odd(
                            self._names[column], first + index, "a text that is not UTF-8", "STRING"
                        )
        return Chunk(schema=self._schema, values=Struct.all_of_checked(self._schema, rows), bad=bad)

    def _fitting(
        self, line: list[Any], row: int, bad: dict[int, DataException], index: int
    ) -> list[Any]:
        """Return the values of the columns that have names; `bad` gets the error of a bad row."""
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
    source = Source(path=path, begin=begin, settings=settings)
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
                    # The cause would show the library's own words, or part of the row.
                    raise chunk.bad[index] from None
                LOG.warning("a row was left out", extra={"reason": str(chunk.bad[index])})
        first += len(chunk.values)


def _with_last(found: Iterator[Batch]) -> Iterator[Batch]:
    """Yield each batch after the next one is known, and mark the last."""
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
    # INT96 as nanoseconds would change years after 2262.
    with pq.ParquetFile(
        file, coerce_int96_timestamp_unit="us", page_checksum_verification=True
    ) as parquet:
        try:
            rows = Rows(parquet.schema_arrow, source.settings.topic, source.settings.odd_values)
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
        for batch in parquet.iter_batches(source.settings.batch_rows, row_groups=groups):
            skipped = max(0, source.begin - first)
            if skipped < batch.num_rows:
                values, odd = rows.structs(batch.slice(skipped))
                row = first + skipped
                bad = {i: source.odd(o.column, row + i, o.kind, o.target) for i, o in odd.items()}
                yield Chunk(schema=rows.schema, values=values, bad=bad)
            first += batch.num_rows


def _unpacked(file: Any) -> Any:
    """Return a file's content, decompressed if it is gzip: no text begins with these bytes."""
    is_packed = file.peek(2).startswith(b"\x1f\x8b")
    return gzip.GzipFile(fileobj=file) if is_packed else file
