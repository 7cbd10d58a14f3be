"""Tables of SQLite, copied to JSON lines by Python's own driver.

One read transaction holds rows and offsets, and no other process waits for it in WAL mode. Values
are of any class in SQLite: each column is read as its declared type says.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyconnect_reconcile.database_tables.committed import OFFSET_COLUMNS, bounds_of
from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.table_side import SQLITE, TableSide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VIEW = "pyconnect_side"
WAIT_S = 60.0
_SIZED = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_TYPES = (
    ("BOOL", "boolean"),
    ("INT", "bigint"),
    ("CHAR", "string"),
    ("CLOB", "string"),
    ("TEXT", "string"),
    ("BLOB", "binary"),
    ("REAL", "double"),
    ("FLOA", "double"),
    ("DOUB", "double"),
    ("DATETIME", "timestamp_ntz"),
    ("TIMESTAMP", "timestamp_ntz"),
    ("DATE", "date"),
)
"""Parts of declared types, as SQLite itself looks for them, and Spark's types."""
_WRITTEN: Mapping[str, Callable[[object], object]] = {
    "boolean": bool,
    "binary": lambda value: base64.b64encode(_bytes(value)).decode(),
    "bigint": lambda value: value,
    "double": lambda value: value,
}
"""Conversions of values to JSON; values of other types are texts, which Spark casts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteCopy:
    """The columns of a copy with their types, and the offsets beside the rows."""

    columns: Mapping[str, str]
    committed: Bounds = field(default_factory=dict)

    def read(self, spark: SparkSession, rows: Path) -> DataFrame:
        """Return the rows with the types of their columns."""
        from pyspark.sql import functions as sql

        names = {name: f"`{name.replace('`', '``')}`" for name in self.columns}
        schema = ", ".join(
            f"{names[name]} {kind if kind in _WRITTEN else 'string'}"
            for name, kind in self.columns.items()
        )
        frame = spark.read.schema(schema).json(rows.absolute().as_uri())
        return frame.select(
            *(sql.col(names[name]).cast(kind).alias(name) for name, kind in self.columns.items())
        )


def copied(side: TableSide, rows: Path) -> SqliteCopy:
    """Write a table's rows to a new file; ReconcileError when it cannot be read."""
    with _opened(side) as connection:
        # The first statement of the transaction fixes what the others see. Names of tables cannot
        # be parameters; the connection only reads.
        connection.execute("BEGIN")
        committed: Bounds = {}
        if side.offsets is not None:
            query = f"SELECT {', '.join(OFFSET_COLUMNS)} FROM {side.offsets.table}"  # noqa: S608
            committed = bounds_of(side.offsets.connector, connection.execute(query))
        connection.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM {side.table}")  # noqa: S608
        columns = {
            str(name): spark_type(str(declared))
            for _, name, declared, *_ in connection.execute(f"PRAGMA table_info({VIEW})")
        }
        writers = [(name, _WRITTEN.get(kind, str)) for name, kind in columns.items()]
        # json.dumps would make an encoder for each row.
        encode = json.JSONEncoder(ensure_ascii=False).encode
        with rows.open("w", encoding="utf-8") as stream:
            for row in connection.execute(f"SELECT * FROM {VIEW}"):  # noqa: S608
                line = {
                    name: None if value is None else write(value)
                    for (name, write), value in zip(writers, row, strict=True)
                }
                stream.write(encode(line) + "\n")
    return SqliteCopy(columns=columns, committed=committed)


def spark_type(declared: str) -> str:
    """Return Spark's type for a column's declared one."""
    kind = declared.upper()
    if sized := _SIZED.search(kind):
        return f"decimal({sized[1]},{sized[2] or 0})"
    return next((found for part, found in _TYPES if part in kind), "string")


@contextmanager
def _opened(side: TableSide) -> Iterator[sqlite3.Connection]:
    file = Path(side.url.removeprefix(SQLITE))
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=WAIT_S)
        ) as connection:
            connection.isolation_level = None
            yield connection
    except sqlite3.Error as exc:
        raise ReconcileError(f"{file}: {side.table} cannot be read: {exc}") from exc


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
