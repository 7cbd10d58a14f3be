"""The documentation's promise for each cell: equal, or refused at reading or writing.

The rules follow from the types alone, never from the connectors' code. Where a promise differs from
Debezium or Confluent's connectors on purpose, the rule says so.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal

from tests.connectors.matrix.columns import Cell, Column
from tests.connectors.matrix.meanings import Kind, Odd
from tests.connectors.matrix.topics import Topic

INT64 = range(-(2**63), 2**63)
SAME_TYPES = "same types"
NEEDS_SCHEMA = ("Parquet", "CSV", "Iceberg")
WITHOUT_SIGN_OF_ZERO = ("MariaDB", "SQLite")
"""Databases that do not store the sign of a zero."""
WITHOUT_NAN = ("MariaDB", "SQLite", "JSON")
WITHOUT_INFINITY = ("MariaDB", "JSON")
ARROW_DIGITS = 38
"""The most digits of a decimal in Parquet, Iceberg and CSV, which use the same columns."""
MARIADB_DIGITS, MARIADB_SCALE = 65, 30
NARROW_SCALE = 18
"""Up to this scale, columns that SqlSink creates have 38 digits, above it more."""
EXACT = Context(prec=2000)
BYTES_OF_NUMBERS = (Kind.BYTES, Kind.DATE, Kind.TIME, Kind.STAMP, Kind.DECIMAL)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A promised refusal; `place` is reading or writing, `reason` a noun phrase."""

    place: str
    reason: str


def unsupported(source: str, topic: Topic, target: str) -> str:
    """Return why a whole path is refused, an empty text if it is not."""
    if source == "JSON" and topic is Topic.AVRO:
        return "a file of JSON has no schema, which Avro needs"
    if (source == "JSON" or topic is Topic.PLAIN) and target in NEEDS_SCHEMA:
        return "the target needs a schema"
    return ""


def omitted(column: Column, topic: Topic, target: str) -> str:
    """Return why a column is not tried on a path, an empty text if it is."""
    if topic is Topic.PLAIN and target.endswith(SAME_TYPES) and column.kind in BYTES_OF_NUMBERS:
        return "without a schema the topic has a number or base64 text"
    return ""


def refused_at_reading(cell: Cell) -> str:
    """Return why a source refuses a value, an empty text if it does not."""
    meaning, column = cell.value.meaning, cell.column
    if cell.value.refused:
        return cell.value.refused
    if isinstance(meaning, Odd):
        is_text = column.kind is Kind.DECIMAL and column.scale is None
        return "" if is_text or meaning.text == "null" else cell.value.name
    if column.kind is Kind.INT and meaning is not None and meaning not in INT64:
        return "an integer beyond 64 bits"
    return ""


def refused_at_writing(cell: Cell, topic: Topic, target: str) -> str:
    """Return why a sink refuses a value, an empty text if it does not."""
    meaning, column = cell.value.meaning, cell.column
    system = target.partition(",")[0]
    match meaning:
        case str() if "\0" in meaning and system == "PostgreSQL":
            return "NUL"
        case 0 if (
            column.type == "year" and topic is Topic.PLAIN and not target.endswith(SAME_TYPES)
        ):
            # The value is the text 0000, and the columns there hold numbers.
            return "" if system in ("JSON", *NEEDS_SCHEMA) else "zeros before a number"
        case float() if topic is Topic.PLAIN:
            # Apache's JsonConverter writes NaN and Infinity as texts, which stay texts.
            return ""
        case float() if math.isnan(meaning) and system in WITHOUT_NAN:
            return "NaN"
        case float() if math.isinf(meaning) and system in WITHOUT_INFINITY:
            return "Infinity"
        case Decimal() if column.kind is Kind.NUMBER:
            return "more than 65 digits" if target == "MariaDB" and abs(meaning) > 10**35 else ""
        case Decimal() if column.kind is Kind.DECIMAL and column.scale is not None:
            return "" if topic is Topic.PLAIN else _digits(meaning, column.scale, target)
    return ""


def _digits(value: Decimal, scale: int, target: str) -> str:
    digits, exponent = value.normalize(EXACT).as_tuple()[1:]
    assert isinstance(exponent, int)
    whole = len(digits) + exponent
    if target in NEEDS_SCHEMA:
        fits = whole + scale <= ARROW_DIGITS or not 0 <= scale <= ARROW_DIGITS
        return "" if fits else f"more than {ARROW_DIGITS} digits"
    if target not in ("PostgreSQL", "MariaDB"):
        return ""
    if scale <= NARROW_SCALE:
        return "" if whole <= ARROW_DIGITS - max(scale, 0) else f"more than {ARROW_DIGITS} digits"
    if target == "PostgreSQL":
        return "" if whole <= ARROW_DIGITS else f"more than {ARROW_DIGITS} digits before the point"
    # A larger scale has a text column, which keeps all digits.
    fits = scale > MARIADB_SCALE or whole <= MARIADB_DIGITS - scale
    return "" if fits else f"more than {MARIADB_DIGITS} digits"


def refusal(cell: Cell, topic: Topic, target: str) -> Refusal | None:
    """Return the promised refusal of a cell, None if it arrives equal."""
    if reason := refused_at_reading(cell):
        return Refusal("reading", reason)
    if reason := refused_at_writing(cell, topic, target):
        return Refusal("writing", reason)
    return None


_INTEGERS = {
    "PostgreSQL": {"smallint": 16, "integer": 32, "bigint": 64, "posint": 32},
    "MariaDB": {
        "tinyint": 32,
        "smallint": 16,
        "smallint unsigned": 32,
        "mediumint": 32,
        "int": 32,
        "bigint": 64,
        "boolean": 32,
    },
    "Parquet": {
        "int8": 8,
        "int16": 16,
        "int32": 32,
        "int64": 64,
        "uint8": 16,
        "uint16": 32,
        "uint32": 64,
    },
}
_NAMES = {
    Kind.BOOL: "BOOLEAN",
    Kind.FLOAT32: "FLOAT32",
    Kind.FLOAT64: "FLOAT64",
    Kind.TEXT: "STRING",
    Kind.BYTES: "BYTES",
    Kind.DATE: "Date",
    Kind.TIME: "Time",
    Kind.STAMP: "Timestamp",
}


def in_topic(system: str, column: Column) -> str:
    """Return the Connect type of a column's values."""
    if system == "JSON":
        return "no schema"
    match column.kind:
        case Kind.NUMBER:
            return "STRING"
        case Kind.FLOAT32 if system == "MariaDB":
            # SQL has no other name for a double; REAL of MariaDB is a double.
            return "FLOAT64"
        case Kind.INT:
            if column.type == "year":
                return "STRING"
            return f"INT{_INTEGERS.get(system, {}).get(column.type, 64)}"
        case Kind.DECIMAL:
            return "STRING" if column.scale is None else f"Decimal({column.scale})"
        case Kind.JSON:
            return _nested(column.type) if system == "Parquet" else "STRING"
    return _NAMES[column.kind]


def _nested(type_: str) -> str:
    return "MAP" if type_.startswith("map") else "STRUCT" if type_.startswith("struct") else "ARRAY"
