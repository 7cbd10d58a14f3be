"""Tables of SQLite, copied to JSON lines by Python's own driver.

One read transaction holds rows and offsets, and no other process waits for it in WAL mode. Values
of any class may be in a column of SQLite. A column is read by its declared type; a value of
another class, or with more digits, keeps its form: its token is in the column `TOKENS`, by name.
"""

from __future__ import annotations

import base64
import json
import math
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pyconnect_reconcile.data_sides import (
    HELD,
    MARK,
    NUMERIC,
    OFFSET_COLUMNS,
    SQLITE,
    TIME,
    TOKENS,
    TableSide,
    committed_bounds,
)
from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_DIGITS = 38
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
    ("TIME", TIME),
    ("NUMERIC", NUMERIC),
    ("DECIMAL", NUMERIC),
)
"""Parts of declared types, which SQLite itself looks for, and Spark's types."""
_OWN_TYPES = frozenset({"boolean", "binary", "bigint", "double"})
"""Types that JSON lines have; other values are texts, which Spark casts."""
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,3})?")


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
            f"{names[name]} {kind if kind in _OWN_TYPES else 'string'}"
            for name, kind in self.columns.items()
        )
        schema = f"{schema}, `{TOKENS}` MAP<STRING, STRING>"
        frame = spark.read.schema(schema).json(rows.absolute().as_uri())
        columns = (
            sql.col(names[name]).alias(name, metadata={HELD: kind})
            if kind in {NUMERIC, TIME}
            else sql.col(names[name]).cast(kind).alias(name)
            for name, kind in self.columns.items()
        )
        return frame.select(*columns, TOKENS)


def copied(side: TableSide, rows: Path) -> SqliteCopy:
    """Write a table's rows to a new file; ReconcileError when it cannot be read."""
    file = Path(side.url.removeprefix(SQLITE))
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=WAIT_S)
        ) as connection:
            connection.isolation_level = None
            # The first statement of the transaction fixes the snapshot of the others. Names of
            # tables cannot be parameters; the connection only reads.
            connection.execute("BEGIN")
            committed: Bounds = {}
            if side.offsets is not None:
                query = f"SELECT {', '.join(OFFSET_COLUMNS)} FROM {side.offsets.table}"  # noqa: S608
                committed = committed_bounds(side.offsets.connector, connection.execute(query))
            connection.execute(f"CREATE TEMP VIEW {VIEW} AS SELECT * FROM {side.table}")  # noqa: S608
            columns = {
                str(name): spark_type(str(declared))
                for _, name, declared, *_ in connection.execute(f"PRAGMA table_info({VIEW})")
            }
            kinds = list(columns.items())
            # json.dumps would make an encoder for each row.
            encode = json.JSONEncoder(ensure_ascii=False).encode
            with rows.open("w", encoding="utf-8") as stream:
                for row in connection.execute(f"SELECT * FROM {VIEW}"):  # noqa: S608
                    line: dict[str, object] = {}
                    tokens = {}
                    for (name, kind), value in zip(kinds, row, strict=True):
                        written = None if value is None else _written(value, kind)
                        if written is not None:
                            line[name] = written
                        elif value is not None:
                            tokens[name] = _token(value)
                    if tokens:
                        line[TOKENS] = tokens
                    stream.write(encode(line) + "\n")
    except sqlite3.Error as exc:
        raise ReconcileError(f"{file}: {side.table} cannot be read: {exc}") from exc
    return SqliteCopy(columns=columns, committed=committed)


def spark_type(declared: str) -> str:
    """Return Spark's type for a declared type of a column."""
    kind = declared.upper()
    if (sized := _SIZED.search(kind)) and int(sized[1]) <= MOST_DIGITS:
        return f"decimal({sized[1]},{sized[2] or 0})"
    return next((found for part, found in _TYPES if part in kind), "string")


def _written(value: object, kind: str) -> object:
    """Return a value as JSON for a column of a type; None if the type would change it."""
    match kind:
        case "boolean":
            return bool(value) if value in (0, 1) and isinstance(value, int) else None
        case "bigint":
            return value if isinstance(value, int) else None
        case "double":
            is_number = isinstance(value, int | float) and abs(value) <= 2**53
            return value if is_number or isinstance(value, float) else None
        case "binary":
            return base64.b64encode(value).decode() if isinstance(value, bytes) else None
        case "string" | "time":
            return value if isinstance(value, str) else None
        case "numeric":
            return None
        case "date":
            return value if _is_moment(value, _DAY) else None
        case "timestamp_ntz":
            return value if _is_moment(value, _MOMENT) else None
    # The decimal type must hold all digits of the value.
    if isinstance(value, bytes) or not _NUMBER.fullmatch(str(value)):
        return None
    precision, scale = map(int, kind.removeprefix("decimal(").rstrip(")").split(","))
    sign_and_whole, _, fraction = format(Decimal(str(value)), "f").partition(".")
    whole = sign_and_whole.lstrip("-0")
    fits = len(fraction.rstrip("0")) <= scale and len(whole) <= precision - scale
    return str(value) if fits else None


def _is_moment(value: object, form: re.Pattern[str]) -> bool:
    """Return whether a value matches `form` and is a day or time that exists."""
    if not isinstance(value, str) or not form.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value[:19])
    except ValueError:
        return False
    return True


def _token(value: object) -> str:
    """Return the token of a value, as `values.canonical` describes it."""
    if isinstance(value, bytes):
        return f"{MARK}b{value.hex().upper()}"
    if isinstance(value, str):
        return f"{MARK}s{value}" if value[:1] in {"{", "[", MARK} else value
    if isinstance(value, float) and not math.isfinite(value):
        return f"{MARK}{str(value).replace('inf', 'Infinity')}"
    text = format(Decimal(str(value)), "f")
    plain = text.rstrip("0").rstrip(".") if "." in text else text
    return f"{MARK}{'0' if plain == '-0' else plain}"
