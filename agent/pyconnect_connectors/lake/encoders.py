"""The bytes of a file that is being written, in memory."""

from __future__ import annotations

import gzip
import json
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pyconnect_api import DataException, Schema, SinkRecord
from pyconnect_connectors.lake.arrow_types import Columns, flat_names, plain
from pyconnect_connectors.lake.names import Format
from pyconnect_connectors.lake.settings import FileSettings

ROW_GROUP_BYTES = 16 * 1024 * 1024
"""Size of the batches in memory at which they are encoded as a row group."""
_JSON = msgspec.json.Encoder(decimal_format="number")


class Encoder(ABC):
    """A file's content; `size` in bytes, in memory or encoded."""

    @property
    @abstractmethod
    def size(self) -> int: ...

    @abstractmethod
    def prepared(self, records: Sequence[SinkRecord]) -> Any:
        """Return a part for `add`; DataException if one of the values cannot be written."""

    @abstractmethod
    def add(self, part: Any) -> None:
        """Append the part that `prepared` returned last."""

    @abstractmethod
    def finish(self) -> Any:
        """Return the content as a buffer; the encoder is of no use afterwards."""


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

    def prepared(self, records: Sequence[SinkRecord]) -> Any:
        return self._columns.batch(records)

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
        # Without a time of day in it: the same rows are the same file.
        return gzip.compress(content, 6, mtime=0) if self._compressed else content


class JsonEncoder(_TextEncoder):
    """One value a line; no schema is needed."""

    def prepared(self, records: Sequence[SinkRecord]) -> Any:
        try:
            return _JSON.encode_lines(_json_values(records))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise DataException(f"The value cannot be written as JSON: {error}") from None


def _json_values(records: Sequence[SinkRecord]) -> list[Any]:
    schema = records[0].value_schema
    names = None if schema is None else flat_names(schema)
    values: list[Any] = [record.value for record in records]
    if names is None or any([record.value_schema is not schema for record in records]):  # noqa: C419  hot
        return list(map(plain, values))
    return [dict(zip(names, value.stored_values(), strict=True)) for value in values]


class CsvEncoder(_TextEncoder):
    """Names in the first line; nested values are JSON, bytes are base64."""

    def __init__(self, columns: Columns, *, compressed: bool) -> None:
        super().__init__(compressed=compressed)
        self._columns = columns

    def prepared(self, records: Sequence[SinkRecord]) -> Any:
        batch = self._columns.batch(records)
        arrays = list(map(_flat, batch.columns))
        table = pa.Table.from_arrays(arrays, names=batch.schema.names)
        sink = pa.BufferOutputStream()
        options = pa_csv.WriteOptions(include_header=not self._parts)
        pa_csv.write_csv(table, sink, options)
        return sink.getvalue()


def _flat(column: Any) -> Any:
    kind = column.type
    if pa.types.is_nested(kind):
        texts = [None if v is None else json.dumps(v, default=str) for v in column.to_pylist()]
        return pa.array(texts, pa.string())
    if pa.types.is_binary(kind):
        return pa.array([None if v is None else b64encode(v).decode() for v in column.to_pylist()])
    return column


class Encoders:
    """Makes the encoders of one task."""

    def __init__(self, written: Format, files: FileSettings) -> None:
        self._format = written
        self._files = files
        self._columns: Columns | None = None

    @property
    def uses_schemas(self) -> bool:
        """Whether all values of a file are of one schema."""
        return self._format is not Format.JSON

    @property
    def suffix(self) -> str:
        if self._format is Format.PARQUET:
            codec = self._files.codec
            return ".parquet" if codec == "none" else f".{codec}.parquet"
        return f".{self._format}{'.gz' if self._files.gzip else ''}"

    def open(self, schema: Schema | None) -> Encoder:
        """Return the encoder of a new file; DataException for values without a fit schema."""
        if self._format is Format.JSON:
            return JsonEncoder(compressed=self._files.gzip)
        if schema is None:
            raise DataException(f"The value has no schema, which format.class={self._format} needs")
        if self._columns is None or self._columns.connect_schema is not schema:
            self._columns = Columns(schema)
        if self._format is Format.CSV:
            return CsvEncoder(self._columns, compressed=self._files.gzip)
        return ParquetEncoder(self._columns, self._files.codec)
