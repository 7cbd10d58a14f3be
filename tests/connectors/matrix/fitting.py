"""Values of records against columns that exist: stored as they are, or refused.

Databases cut, round and convert without an error in many of these cases: fractions of a number or
of a second, spaces at an end, the time of a date, the zone of a text. Confluent's JDBC sink leaves
that to the database; here a value that would change is refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema as IcebergSchema

from pyconnect_api import (
    Schema,
    SchemaBuilder,
    Struct,
    date_builder,
    decimal_builder,
    time_builder,
    timestamp_builder,
)
from pyconnect_connectors.lake.sink import LakeSinkTask
from pyconnect_connectors.sql.sink import SqlSinkTask
from tests.connectors.matrix.columns import Cell, Column, Value
from tests.connectors.matrix.databases import Database, define
from tests.connectors.matrix.files import iceberg_props
from tests.connectors.matrix.meanings import Kind, equal, of_python
from tests.connectors.matrix.outcomes import missing
from tests.connectors.matrix.paths import Message, Scratch, delivered, sink_props

_INT32, _INT64 = SchemaBuilder.int32(), SchemaBuilder.int64()
_TEXT, _BYTES, _DOUBLE = SchemaBuilder.string(), SchemaBuilder.bytes(), SchemaBuilder.float64()
_AT = datetime(2024, 6, 1, 10, 20, 30, tzinfo=UTC)
_FINE = _AT.replace(microsecond=123_000)
_ZONED = "2024-06-01 10:20:30+02:00"
_MIDNIGHT = datetime(2024, 6, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A value and the column it is written to; `meaning` is what the column then holds."""

    type: str
    kind: Kind
    schema: Any
    given: object
    meaning: object = None
    refused: bool = False

    @property
    def shown(self) -> str:
        """The value with its Connect type, in a few words."""
        schema: Schema = self.schema.build()
        kind = (schema.name or schema.type.name).rpartition(".")[2]
        is_text = isinstance(self.given, str | bytes)
        given = ascii(self.given) if is_text else str(self.given)
        return f"{kind} {given if len(given) < 60 else given[:50]}"

    @property
    def name(self) -> str:
        return f"{self.type} <- {self.shown}"


def _holds(type_: str, kind: Kind, schema: Any, given: object, meaning: object = None) -> Fit:
    return Fit(
        type=type_,
        kind=kind,
        schema=schema,
        given=given,
        meaning=given if meaning is None else meaning,
    )


def _not(type_: str, schema: Any, *values: object, kind: Kind = Kind.TEXT) -> list[Fit]:
    return [Fit(type=type_, kind=kind, schema=schema, given=v, refused=True) for v in values]


_WIDE = Decimal("9" * 28 + "." + "9" * 10)
_STAMP = timestamp_builder
_COMMON = (
    _holds("smallint", Kind.INT, _INT32, 5),
    *_not("smallint", _INT32, 40_000),
    *_not("integer", _INT64, 2**40),
    _holds("numeric(5,2)", Kind.DECIMAL, decimal_builder(2), Decimal("123.45")),
    _holds("numeric(5,2)", Kind.DECIMAL, decimal_builder(4), Decimal("1.2300"), Decimal("1.23")),
    *_not("numeric(5,2)", decimal_builder(4), Decimal("1.2345"), Decimal("-0.0001")),
    *_not("numeric(5,2)", decimal_builder(2), Decimal("1234.56")),
    *_not("numeric(5,2)", _DOUBLE, 1.2345),
    *_not("integer", _DOUBLE, 5.7, -0.5),
    *_not("integer", decimal_builder(1), Decimal("5.7")),
    *_not("double precision", decimal_builder(20), Decimal("0.12345678901234567890")),
    *_not("double precision", decimal_builder(-400), Decimal("1E400")),
    *_not("double precision", _TEXT, "1e400", "007", "1_0"),
    _holds("numeric(5,2)", Kind.DECIMAL, _TEXT, "1.5", Decimal("1.50")),
    *_not("numeric(5,2)", _TEXT, "007", "+7", " 7", "1_0", "٣"),
    _holds("integer", Kind.INT, _TEXT, "-5", -5),
    *_not("integer", _TEXT, "5.7", "five", "", "007", "+7", "٣"),
    _holds("varchar(3)", Kind.TEXT, _TEXT, "abc"),
    *_not("varchar(3)", _TEXT, "abcd", "abc  ", "äöüé"),
    _holds("date", Kind.DATE, date_builder(), date(2024, 6, 1)),
    _holds("date", Kind.DATE, _STAMP(), _MIDNIGHT, date(2024, 6, 1)),
    *_not("date", _STAMP(), _AT),
    *_not("date", _TEXT, "soon", "2024-02-30"),
    *_not("date", _INT32, 19_875, 240_601),
    *_not("time", _INT32, 1000),
    *_not("timestamp", _INT64, 1_717_237_230_123, 20_240_601_102_030),
)
_DIGITS = 0.123456789
_POSTGRES = (
    *_COMMON,
    _holds("real", Kind.FLOAT32, _DOUBLE, 0.1),
    *_not("real", _DOUBLE, _DIGITS, 1e300, 1e-300),
    *_not("real", decimal_builder(9), Decimal("0.123456789")),
    *_not("real", _INT32, 2**24 + 1),
    _holds("timestamp(3)", Kind.STAMP, _STAMP(), _FINE, _FINE.replace(tzinfo=None)),
    _holds("timestamp(0)", Kind.STAMP, _STAMP(), _AT, _AT.replace(tzinfo=None)),
    *_not("timestamp(0)", _STAMP(), _FINE),
    *_not("timestamp(2) with time zone", _STAMP(), _FINE),
    *_not("time(0)", time_builder(), time(10, 20, 30, 123_000)),
    _holds(
        "timestamp",
        Kind.STAMP,
        _TEXT,
        "2024-06-01 10:20:30+02:00",
        _AT.replace(hour=8, tzinfo=None),
    ),
    *_not("boolean", _INT32, 5),
    *_not("uuid", _TEXT, "x"),
    *_not("jsonb", _TEXT, "not JSON", "{"),
    *_not("bytea", _TEXT, "\\x41", "abc"),
    *_not("text", _BYTES, b"abc"),
    *_not("bit(3)", _TEXT, "1010"),
    *_not("inet", _TEXT, "x"),
    *_not("ltree", _TEXT, "a b"),
    *_not("hstore", _TEXT, "x", '{"a":"1"}'),
    *_not("cube", _TEXT, "x"),
    *_not("tsquery", _TEXT, "&"),
    *_not("tsvector", _TEXT, "'"),
    *_not("jsonpath", _TEXT, "$$$"),
    *_not("regrole", _TEXT, "x y"),
    *_not("int4range", _TEXT, "x"),
    *_not("money", _TEXT, "x"),
    *_not("ean13", _TEXT, "978-0-393-04002-1"),
    *_not("hstore[]", _TEXT, '[{"a":"1"}]'),
    *_not("text", _TEXT, "a\0b", "\ud800"),
    *_not("varchar(9) NOT NULL CHECK (v_c <> 'bad')", _TEXT, "bad"),
    *_not("integer NOT NULL", SchemaBuilder.int32().optional(), None),
)
_MARIADB = (
    *_COMMON,
    _holds("float", Kind.FLOAT32, _DOUBLE, 0.1),
    *_not("float", _DOUBLE, _DIGITS, 1e300, 1e-300),
    *_not("float", decimal_builder(9), Decimal("0.123456789")),
    *_not("float", _INT32, 2**24 + 1),
    *_not("float(7,3)", _DOUBLE, 1.2345),
    *_not("double(10,2)", _DOUBLE, 1.234),
    _holds("bigint unsigned", Kind.INT, _TEXT, "18446744073709551615", 2**64 - 1),
    *_not("bigint unsigned", _TEXT, "18446744073709551616", "-1"),
    *_not("bigint", _TEXT, "9223372036854775808"),
    _holds("datetime(3)", Kind.STAMP, _STAMP(), _FINE, _FINE.replace(tzinfo=None)),
    _holds("datetime", Kind.STAMP, _STAMP(), _AT, _AT.replace(tzinfo=None)),
    *_not("datetime", _STAMP(), _FINE),
    *_not("timestamp(2)", _STAMP(), _FINE),
    *_not(
        "timestamp", _STAMP(), datetime(1960, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    ),
    *_not("time", time_builder(), time(10, 20, 30, 123_000)),
    _holds("datetime", Kind.STAMP, _TEXT, _ZONED, _AT.replace(hour=8, tzinfo=None)),
    _holds("datetime", Kind.STAMP, _TEXT, "2024-06-01T10:20:30Z", _AT.replace(tzinfo=None)),
    *_not("tinyint unsigned", _INT32, -1, 300),
    *_not("year", _INT32, 1900, 3000),
    *_not("enum('a','b')", _TEXT, "c", "", "A"),
    *_not("set('a','b')", _TEXT, "c", "a,c"),
    *_not("varchar(9) character set latin1", _TEXT, "中"),
    *_not("varchar(9) character set utf8mb3", _TEXT, "😀"),
    _holds("binary(3)", Kind.BYTES, _BYTES, b"abc"),
    *_not("binary(3)", _BYTES, b"ab", b"abcd"),
    *_not("char(5)", _TEXT, "ab "),
    *_not("bit(3)", _BYTES, b"\xff"),
    *_not("json", _TEXT, "not JSON", "{"),
    *_not("tinytext", _TEXT, "x" * 300),
    *_not("varchar(9) NOT NULL CHECK (v_c <> 'bad')", _TEXT, "bad"),
    *_not("integer NOT NULL", SchemaBuilder.int32().optional(), None),
    *_not("text", _TEXT, "\ud800"),
)
_SQLITE = (
    _holds("INTEGER", Kind.INT, _INT32, 5),
    *_not("INTEGER", _TEXT, "five", ""),
    *_not("REAL", _TEXT, "five"),
    *_not("REAL", _DOUBLE, float("nan")),
    _holds("DECIMAL(10,2)", Kind.DECIMAL, decimal_builder(2), Decimal("123.45")),
    *_not("DECIMAL(38,10)", decimal_builder(10), _WIDE),
    *_not("NUMERIC", decimal_builder(0), Decimal(2**63 + 1)),
    *_not("NUMERIC", _TEXT, "007", "tea"),
    *_not("REAL", decimal_builder(-400), Decimal("1E400")),
    *_not("REAL", _TEXT, "007", "1e400"),
    *_not("INTEGER", _TEXT, "007"),
    *_not("JSON", _TEXT, "007", "12345678901234567890"),
    *_not("DATE", _TEXT, "20240601", "2024"),
    *_not("BOOLEAN", _TEXT, "1"),
    _holds("STRING", Kind.TEXT, _TEXT, "tea"),
    _holds("UUID", Kind.TEXT, _TEXT, "7e5d-1"),
    *_not("STRING", _TEXT, "007", "5", " 5 ", "1e3", ".5", "5."),
    *_not("UUID", _TEXT, "7e5"),
    _holds("", Kind.TEXT, _TEXT, "007"),
    _holds("VARCHAR(9)", Kind.TEXT, _TEXT, "007"),
    _holds("BLOB", Kind.BYTES, _BYTES, b"007"),
    *_not("TEXT", _TEXT, "\ud800"),
    *_not("TEXT CHECK (v_c <> 'bad')", _TEXT, "bad"),
    *_not("INTEGER NOT NULL", SchemaBuilder.int32().optional(), None),
)
_ICEBERG = (
    _holds("int", Kind.INT, _INT64, 2**31 - 1),
    *_not("int", _INT64, 2**31, -(2**31) - 1),
    _holds("int", Kind.INT, SchemaBuilder.int16(), 5),
    _holds("long", Kind.INT, _INT32, 5),
    *_not("int", _DOUBLE, 5.0),
    _holds("decimal(5,2)", Kind.DECIMAL, decimal_builder(2), Decimal("123.45")),
    *_not("decimal(5,2)", decimal_builder(2), Decimal("1234.56")),
    _holds("decimal(38,2)", Kind.DECIMAL, decimal_builder(2), Decimal("1234.56")),
    *_not("decimal(5,2)", decimal_builder(3), Decimal("1.234")),
    _holds("double", Kind.FLOAT64, SchemaBuilder.float32(), 0.5),
    *_not("float", _DOUBLE, 0.1),
    *_not("timestamp", _STAMP(), _AT),
    *_not("string", _INT32, 5),
    *_not("int", _TEXT, "5"),
    *_not("uuid", _TEXT, "8d2f1c3e-0000-4000-8000-00000000000a"),
    *_not("fixed[3]", _BYTES, b"abc"),
)
FITS = {"PostgreSQL": _POSTGRES, "MariaDB": _MARIADB, "SQLite": _SQLITE, "Iceberg": _ICEBERG}


class Columns(Protocol):
    """Tables that exist, with a column `v_c`."""

    @property
    def name(self) -> str: ...
    def stored(self, table: str, fit: Fit, message: Message) -> object:
        """Write a value into a new table; return the meaning of the stored value."""


class DatabaseColumns:
    """Tables of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.name = database.name

    def stored(self, table: str, fit: Fit, message: Message) -> object:
        define(self._database, table, {"v_c": fit.type})
        delivered(SqlSinkTask, sink_props(self._database, table), [message])
        return self._database.read(table, {"v_c": fit.kind})[0]["v_c"]


class IcebergColumns:
    """Iceberg tables as another program created them."""

    name = "Iceberg"

    def __init__(self, scratch: Path) -> None:
        self._lake = Scratch(scratch / "columns-of-iceberg").new()

    def stored(self, table: str, fit: Fit, message: Message) -> object:
        uri = f"sqlite:///{self._lake}/catalog.db"
        catalog = load_catalog("iceberg", type="sql", uri=uri, warehouse=str(self._lake))
        catalog.create_namespace_if_not_exists("lake")
        fields = [
            {"id": number, "name": name, "type": type_, "required": False}
            for number, name, type_ in ((1, "id", "int"), (2, "v_c", fit.type))
        ]
        schema = IcebergSchema.model_validate({"type": "struct", "fields": fields})
        catalog.create_table(f"lake.{table}", schema)
        delivered(LakeSinkTask, iceberg_props(self._lake, table), [message])
        (row,) = catalog.load_table(f"lake.{table}").scan().to_arrow().to_pylist()
        return of_python(fit.kind, row["v_c"])


def faults(columns: Columns) -> Iterator[str]:
    """Yield a line for each value with another outcome than the expected one."""
    for number, fit in enumerate(FITS[columns.name]):
        table = f"t{number}fit"
        schema = (
            SchemaBuilder.struct()
            .field("id", SchemaBuilder.int32())
            .field("v_c", fit.schema.build())
        ).build()
        record = Struct.of_checked(schema, [number, fit.given])
        try:
            found = columns.stored(table, fit, (schema, record))
        except Exception as error:
            column = Column(type="c", kind=fit.kind, values=())
            cell = Cell(column, Value(name="", given=f"'{fit.given}'", meaning=None))
            if not fit.refused:
                yield f"unclear  {fit.name} | {type(error).__name__}: {error} | expected: equal"
            elif lacks := missing(error, cell):
                yield f"unclear  {fit.name} | no {', '.join(lacks)} in: {error!r}"
            continue
        if fit.refused:
            yield f"wrong    {fit.name} | {found!r} | expected: refused"
        elif not equal(fit.kind, fit.meaning, found):
            yield f"wrong    {fit.name} | {found!r} | expected: {fit.meaning!r}"
