"""The bytes of a file that is being written, in memory."""

import gzip
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pyconnect_api import DataException, Schema, SinkRecord
from pyconnect_connectors.lake.arrow_types import Columns
from pyconnect_connectors.lake.json_values import json_lines
from pyconnect_connectors.lake.settings import FileSettings, Format
from pyconnect_connectors.odd_values import OddValues

ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Size of the batches in memory from which they are encoded as a row group."""


class Encoder(ABC):
    """The content of a file; `size` is in bytes, in memory or encoded."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def prepared(self, records: Sequence[SinkRecord], place: str) -> Any:
        """Return a part for `add`; DataException if one of the values cannot be written.

        `place` names the file in errors.
        """

    @abstractmethod
    def add(self, part: Any) -> None:
        """Append the part that `prepared` returned last."""

    @abstractmethod
    def finish(self) -> Any:
        """Return the content as a buffer; the encoder cannot be used afterwards."""


class ParquetEncoder(Encoder):
    """Row groups of Arrow batches."""

    def __init__(self, columns: Columns, codec: str) -> None:
        self._columns = columns
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, columns.schema, compression=codec)
        self._pending: list[Any] = []
        self._pending_bytes = 0

    @property
    def size(self) -> int:
        return int(self._sink.tell()) + self._pending_bytes

    def prepared(self, records: Sequence[SinkRecord], place: str) -> Any:
        return self._columns.batch(records, place)

    def add(self, part: Any) -> None:
        self._pending.append(part)
        self._pending_bytes += part.nbytes
        if self._pending_bytes >= ROW_GROUP_BYTES:
            self._write()

    def finish(self) -> Any:
        self._write()
        self._writer.close()
        return self._sink.getvalue()

    def _write(self) -> None:
        if self._pending:
            table = pa.Table.from_batches(self._pending, schema=self._columns.schema)
            self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        self._pending, self._pending_bytes = [], 0


class _TextEncoder(Encoder):
    def __init__(self, *, compressed: bool) -> None:
        self._compressed = compressed
        self._parts: list[Any] = []
        self._size = 0

    @property
    def size(self) -> int:
        return self._size

    def add(self, part: Any) -> None:
        self._parts.append(part)
        self._size += len(part)

    def finish(self) -> Any:
        content = b"".join(self._parts)
        # Without a modification time, the same rows give the same bytes.
        return gzip.compress(content, 6, mtime=0) if self._compressed else content


class JsonEncoder(_TextEncoder):
    """JSON: one value a line, without a schema."""

    def __init__(self, policy: OddValues, *, compressed: bool) -> None:
        super().__init__(compressed=compressed)
        self._policy = policy

    def prepared(self, records: Sequence[SinkRecord], place: str) -> Any:
        return json_lines(records, self._policy, place)


class CsvEncoder(_TextEncoder):
    """CSV: names in the first line; nested values are JSON, bytes are base64.

    A null is empty, and an empty text is in quotes.
    """

    def __init__(self, columns: Columns, *, compressed: bool) -> None:
        super().__init__(compressed=compressed)
        self._columns = columns

    def prepared(self, records: Sequence[SinkRecord], place: str) -> Any:
        rows = self._columns.batch(records, place)
        has_null = False
        if rows.num_columns == 1:
            texts = pc.cast(rows.column(0), pa.string())
            rows = pa.RecordBatch.from_arrays([texts], names=rows.schema.names)
            has_null = texts.null_count > 0
        sink = pa.BufferOutputStream()
        options = pa_csv.WriteOptions(include_header=not self._parts)
        pa_csv.write_csv(rows.slice(0, 0) if has_null else rows, sink, options)
        if has_null:
            # A comma stands for the null, because readers skip an empty line.
            doubled = pc.replace_substring(rows.column(0), '"', '""')
            lines = pc.binary_join_element_wise('"', doubled, '"\n', "")
            sink.write("".join(pc.fill_null(lines, ",\n").to_pylist()).encode())
        return sink.getvalue()


class Encoders:
    """Maker of the encoders of one task."""

    def __init__(self, written: Format, files: FileSettings, policy: OddValues) -> None:
        self._format = written
        self._policy = policy
        self._codec, self._compressed = files.codec, files.compression == "gzip"
        self._columns: Columns | None = None

    @property
    def uses_schemas(self) -> bool:
        """Whether all values of a file have one schema."""
        return self._format is not Format.JSON

    @property
    def suffix(self) -> str:
        if self._format is Format.PARQUET:
            return ".parquet" if self._codec == "none" else f".{self._codec}.parquet"
        return f".{self._format}{'.gz' if self._compressed else ''}"

    def open(self, schema: Schema | None) -> Encoder:
        """Return a new file's encoder; raise DataException for a schema that does not fit."""
        if self._format is Format.JSON:
            return JsonEncoder(self._policy, compressed=self._compressed)
        if schema is None:
            raise DataException(f"The value has no schema, which format.class={self._format} needs")
        if self._columns is None or self._columns.connect_schema is not schema:
            self._columns = Columns(schema, self._policy, texts=self._format is Format.CSV)
        if self._format is Format.CSV:
            return CsvEncoder(self._columns, compressed=self._compressed)
        return ParquetEncoder(self._columns, self._codec)
