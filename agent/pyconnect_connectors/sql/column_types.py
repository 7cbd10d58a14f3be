"""Column types of databases: reflected from tables, and chosen for schemas of Connect."""

import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, MetaData, Table, types
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.exc import SAWarning

from pyconnect_api import STRING_SCHEMA, Schema, Type
from pyconnect_api.logical import scale_of
from pyconnect_api.schema import DATE_NAME, DECIMAL_NAME, TIME_NAME, TIMESTAMP_NAME

MYSQL = frozenset({"mysql", "mariadb"})


class Geometry(types.TypeEngine[bytes]):
    """A geometry of MariaDB or MySQL: the bytes that it stores, which are the SRID and WKB."""


class Name(types.String):
    """A text type that PostgreSQL cuts at `longest_bytes` without an error."""

    longest_bytes = 63


class Char(Name):
    """The type "char" (with quotes) of PostgreSQL's system tables."""

    longest_bytes = 1


class NumericAffinity(types.NullType):
    """A type of SQLite, such as STRING or UUID, in which a text that is a number becomes one."""


BINARIES = (
    types.LargeBinary,
    types.BINARY,
    types.VARBINARY,
    mysql.TINYBLOB,
    mysql.MEDIUMBLOB,
    mysql.LONGBLOB,
    Geometry,
)
"""Types whose values are bytes."""
_GEOMETRIES = (
    "geometry point linestring polygon multipoint multilinestring multipolygon geometrycollection"
)
_FURTHER_MYSQL_TYPES: Mapping[str, type[types.TypeEngine[Any]]] = {
    **dict.fromkeys(_GEOMETRIES.split(), Geometry),
    **dict.fromkeys(("inet4", "inet6", "uuid"), types.String),
}


_BASE_TYPES_OF_DOMAINS = """
    WITH RECURSIVE base (name, type, modifier) AS (
        SELECT attname, atttypid, atttypmod FROM pg_attribute
        WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
        UNION ALL
        SELECT name, typbasetype, typtypmod FROM base JOIN pg_type ON oid = type
        WHERE typtype = 'd'
    )
    SELECT name, format_type(type, modifier) FROM base
    WHERE type NOT IN (SELECT oid FROM pg_type WHERE typtype = 'd')
"""
"""Finds the types below domains, whose arguments SQLAlchemy drops."""
_NUMBERS = ("NUM", "DEC", "MONEY", "CURRENCY")
"""Prefixes of SQLite's names of types for decimals."""


def reflected(connection: Connection, name: str, schema: str | None) -> Table:
    """Return a table or view as it is now, with the types below PostgreSQL's domains.

    NullType is the type of a column whose type SQLAlchemy does not know.
    """
    if connection.dialect.name in MYSQL:
        known: Any = connection.dialect
        known.ischema_names = {**_FURTHER_MYSQL_TYPES, **known.ischema_names}
    if connection.dialect.name == "postgresql":
        known = connection.dialect
        further = {"name": Name, '"char"': Char, "bpchar": types.CHAR, "xml": types.Text}
        known.ischema_names = {**known.ischema_names, **further}

    def unquote(_inspector: object, _table: Table, column: dict[str, Any]) -> None:
        # SQLAlchemy leaves quotes within names of MariaDB doubled.
        column["name"] = column["name"].replace("``", "`")

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Did not recognize type", SAWarning)
        is_mysql = connection.dialect.name in MYSQL
        listeners = [("column_reflect", unquote)] if is_mysql else []
        table = Table(
            name, MetaData(), schema=schema, autoload_with=connection, listeners=listeners
        )
    default = next((v for k, v in table.kwargs.items() if k.endswith("_default charset")), None)
    for each in table.columns if default is not None else ():
        text_type: Any = each.type
        if getattr(text_type, "charset", "") is None:
            text_type.charset = default
    if any(isinstance(column.type, postgresql.DOMAIN) for column in table.columns):
        named = regclass(connection, table)
        for column_name, form in connection.exec_driver_sql(_BASE_TYPES_OF_DOMAINS, named):
            column = table.columns[column_name]
            kind: types.TypeEngine[Any] = column.type
            while isinstance(kind, postgresql.DOMAIN):
                column.nullable = column.nullable and not kind.not_null
                kind = kind.data_type
                column.type = _with_arguments(kind, form)
    if connection.dialect.name == "sqlite":
        # SQLAlchemy takes a type of SQLite that it does not know for a decimal.
        for row in pragma(connection, schema, "table_xinfo", name):
            column = table.columns.get(row["name"])
            is_number = row["type"].upper().startswith(_NUMBERS)
            if column is not None and type(column.type) is types.NUMERIC and not is_number:
                column.type = NumericAffinity()
    return table


def regclass(connection: Connection, table: Table) -> tuple[str]:
    """Return the parameters of a statement that asks for a table of PostgreSQL by its name."""
    # Percent signs are doubled in a statement, but not in a parameter.
    return (connection.dialect.identifier_preparer.format_table(table).replace("%%", "%"),)


def pragma(
    connection: Connection, schema: str | None, name: str, argument: str
) -> Sequence[Mapping[str, Any]]:
    """Return the rows of a pragma of SQLite."""
    quote = connection.dialect.identifier_preparer.quote_identifier
    prefix = f"{quote(schema)}." if schema else ""
    found = connection.exec_driver_sql(f"PRAGMA {prefix}{name}({quote(argument)})")
    return [dict(row) for row in found.mappings()]


def _with_arguments(found: types.TypeEngine[Any], form: str) -> types.TypeEngine[Any]:
    """Return a type with the arguments in its text form, such as numeric(10,2)[]."""
    matched = re.search(r"\((\d+)(?:,(-?\d+))?\)", form)
    first = None if matched is None else int(matched[1])
    match found:
        case postgresql.ARRAY():
            return postgresql.ARRAY(_with_arguments(found.item_type, form))
        case postgresql.INTERVAL():
            fields = re.match(r"interval ?([a-z ]*)", form)
            return postgresql.INTERVAL(precision=first, fields=(fields and fields[1]) or None)
        case _ if matched is None or first is None:
            return found
        case _ if is_decimal(found):
            return types.Numeric(first, int(matched[2] or 0))
        case types.DateTime():
            return postgresql.TIMESTAMP(timezone=found.timezone, precision=first)
        case types.Time():
            return postgresql.TIME(timezone=found.timezone, precision=first)
        case types.CHAR() | types.VARCHAR():
            return type(found)(first)
    return found


def has_zone(found: types.TypeEngine[Any]) -> bool:
    """Return whether a column holds instants; TIMESTAMP of MariaDB does, in UTC."""
    return isinstance(found, types.DateTime) and (
        found.timezone or isinstance(found, mysql.TIMESTAMP)
    )


def fraction_step(found: Any, dialect: str) -> int:
    """Return the microseconds of the smallest fraction of a second that a column stores."""
    if dialect in MYSQL:
        digits = getattr(found, "fsp", None) or 0
    else:
        digits = getattr(found, "precision", None)
        digits = 6 if digits is None else digits
    return int(10 ** (6 - digits))


def most_bytes(found: types.TypeEngine[Any]) -> int:
    """Return the most bytes that a text column of MariaDB without a length stores."""
    match found:
        case mysql.TINYTEXT():
            return 2**8 - 1
        case mysql.MEDIUMTEXT():
            return 2**24 - 1
        case mysql.LONGTEXT():
            return 2**32 - 1
    return 2**16 - 1


def stored_bytes(text: str, column: types.TypeEngine[Any]) -> int:
    """Return the most bytes that a text has in the character set of a column of MariaDB."""
    match getattr(column, "charset", None):
        case "latin1":
            return len(text)
        case "ucs2":
            return 2 * len(text)
        case "utf16" | "utf16le" | "utf32":
            return 4 * len(text)
    return len(text.encode())


def is_unknown(found: types.TypeEngine[Any]) -> bool:
    """Return whether SQLAlchemy does not know a type of PostgreSQL, or that of its elements."""
    item = getattr(found, "item_type", None)
    # For elements of a domain, the arguments of its type are not known.
    return isinstance(item or found, types.NullType) or isinstance(item, postgresql.DOMAIN)


def is_decimal(found: types.TypeEngine[Any]) -> bool:
    return isinstance(found, types.Numeric) and not isinstance(found, types.Float)


_BASE_TYPES: Mapping[Type, type[types.TypeEngine[Any]]] = {
    Type.INT8: types.SmallInteger,
    Type.INT16: types.SmallInteger,
    Type.INT32: types.Integer,
    Type.INT64: types.BigInteger,
    Type.FLOAT32: types.REAL,
    Type.FLOAT64: types.Double,
    Type.BOOLEAN: types.Boolean,
}


def binary_collation(dialect: Dialect) -> str | None:
    """Return the collation that distinguishes all texts; None if the default one does.

    utf8mb4_bin would not do: it ignores spaces at the end.
    """
    if dialect.name not in MYSQL:
        return None
    return "utf8mb4_nopad_bin" if getattr(dialect, "is_mariadb", False) else "utf8mb4_0900_bin"


def key_text(dialect: Dialect, length: int) -> types.TypeEngine[Any]:
    """Return the type of a text that identifies a row."""
    collation = binary_collation(dialect)
    if collation is None:
        return types.String(length)
    return mysql.VARCHAR(length, charset="utf8mb4", collation=collation)


def column_type(schema: Schema, dialect: Dialect, *, is_key: bool) -> types.TypeEngine[Any]:
    """Return the type of a column that the sink creates for a field."""
    in_mysql = dialect.name in MYSQL
    match schema.name:
        case str(name) if name == DECIMAL_NAME:
            scale = scale_of(schema)
            if dialect.name == "sqlite" or scale > 900 or (scale > 30 and in_mysql):
                # SQLite would turn decimals into binary floats.
                return column_type(STRING_SCHEMA, dialect, is_key=is_key)
            if scale <= 18:
                return types.Numeric(38, max(scale, 0))
            # The database refuses a value with digits beyond the precision.
            return types.Numeric(65 if in_mysql else scale + 38, scale)
        case str(name) if name == TIMESTAMP_NAME:
            return mysql.DATETIME(fsp=3) if in_mysql else types.DateTime(timezone=True)
        case str(name) if name == DATE_NAME:
            return types.Date()
        case str(name) if name == TIME_NAME:
            return mysql.TIME(fsp=3) if in_mysql else types.Time()
    match schema.type:
        case Type.STRING if is_key and in_mysql:
            return key_text(dialect, 255)
        case Type.STRING:
            return mysql.LONGTEXT(charset="utf8mb4") if in_mysql else types.Text()
        case Type.BYTES if is_key and in_mysql:
            return mysql.VARBINARY(255)
        case Type.BYTES:
            return mysql.LONGBLOB() if in_mysql else types.LargeBinary()
    base = _BASE_TYPES.get(schema.type)
    if base is None:
        return postgresql.JSONB() if dialect.name == "postgresql" else types.JSON()
    return base()
