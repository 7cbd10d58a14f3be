"""Copies of tables: the result of one statement, so that all rows are of one moment.

While a sink writes a table, two reads differ. SQLite is read by Python's own driver, other
databases by Spark over JDBC.

Columns of PostgreSQL, MariaDB and MySQL keep the types of their tables. Spark's reader keeps 38
digits of a number, moves early dates to another calendar, and supports neither infinity nor times
beyond a day. Columns of such types are therefore read as the texts that the database writes. A text
that is valid for the column's type becomes a value; another one keeps its form, as a token in the
column `TOKENS`. `HELD` in a column's metadata names a type that Spark lacks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField

from pyconnect_reconcile.data_sides import (
    DOCUMENT,
    HELD,
    MARK,
    NUMERIC,
    OFFSET_COLUMNS,
    SQLITE,
    TIME,
    TOKENS,
    TablePosition,
    TableSide,
    committed_bounds,
)
from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import NotAuditable, ReconcileError, spark_errors_translated
from pyconnect_reconcile.files import FixedFiles
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.properties import table_properties
from pyconnect_reconcile.stores import sqlite

Read = Callable[[str], DataFrame]
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "postgresql": {
        "sessionInitStatement": (
            "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'"
        )
    },
    # A tinyint(1) is a number, not a boolean; texts of times are in UTC.
    "mysql": {
        "sessionVariables": "time_zone='+00:00'",
        "tinyInt1isBit": "false",
        "uuidAsString": "true",
    },
}
"""Options of the sessions that return values as texts."""
# Java does not find a driver by its URL in the jars of a session.
_DRIVERS = {"postgresql": {"driver": "org.postgresql.Driver"}}
_MARIADB = "jdbc:mariadb:"
_JOINED = {"sessionInitStatement": "; ", "sessionVariables": ","}
MOST_DIGITS, UNLIMITED = 38, 31
AS_TEXTS = "have the database write them as texts: --table '(SELECT … AS …) rows'"
FETCH_ROWS = "10000"
# The type of a column by its name; for a domain, its base type.
_KINDS = (
    "SELECT format_type(coalesce(b.oid, t.oid), NULL) FROM pg_catalog.pg_type AS t"
    " LEFT JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype"
    " WHERE t.oid = pg_catalog.pg_typeof({name})::oid"
)
_TEXTS = frozenset({"text", "character varying"})
_AS_THEY_ARE = frozenset(
    {"smallint", "integer", "bigint", "real", "double precision", "boolean", "bytea"}
)
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""The key of Spark's metadata for columns of CHAR, whose texts it fills with spaces."""
_DAY = r"(?!0000)\d{4}-\d\d-\d\d"
_CLOCK = r" ([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
_FORMS = {
    "date": f"^{_DAY}$",
    "timestamp_ntz": f"^{_DAY}{_CLOCK}$",
    "timestamp": rf"^{_DAY}{_CLOCK}(\+00)?$",
    "decimal": r"^-?\d+(\.\d+)?$",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column's expression in SQL, and its type; None: as Spark reads it."""

    name: str
    selected: str
    kind: str | None = None


def _family(url: str) -> str:
    """Return the name of a family of databases with the same texts and drivers."""
    scheme = url.removeprefix("jdbc:").partition(":")[0]
    return "mysql" if scheme == "mariadb" else scheme


def exact_options(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the user's options with those that exact texts of values need, which win."""
    options = {**_DRIVERS.get(_family(url), {}), **given}
    for name, needed in _OPTIONS.get(_family(url), {}).items():
        before = given.get(name) if name in _JOINED else None
        options[name] = f"{before}{_JOINED[name]}{needed}" if before else needed
    return options


def exact_address(url: str) -> dict[str, str]:
    """Return the options of an address; MariaDB's gets MySQL's scheme, whose quotes Spark knows.

    Under MariaDB's own scheme, Spark would read the names of columns as their values.
    """
    if not url.startswith(_MARIADB):
        return {"url": url}
    # The driver accepts MySQL's scheme with this parameter.
    permitted = f"{'&' if '?' in url else '?'}permitMysqlScheme=true"
    address = f"jdbc:mysql:{url.removeprefix(_MARIADB)}{permitted}"
    return {"url": address, "driver": "org.mariadb.jdbc.Driver"}


def exact_rows(read: Read, url: str, table: str, zone: str) -> DataFrame:
    """Return the rows of a table, or of a query with its alias, with the values that are stored.

    Timestamps without a zone are in `zone`.
    """
    rows = read(table)
    fields = rows.schema.fields
    if _family(url) == "mysql" and zone != "UTC" and rows.sparkSession.version.startswith("3."):
        raise ReconcileError(
            f"{table} is not audited with the zone {zone}: Spark 3.5 does not tell DATETIME from"
            " TIMESTAMP",
            hint="run the audit on Spark 4.0 or newer",
        )
    match _family(url):
        case "postgresql":
            names = [_quoted(field.name, '"') for field in fields]
            kinds = ", ".join(
                f"({_KINDS.format(name=f'pyconnect_table.{name}')}) AS kind_{number}"
                for number, name in enumerate(names)
            )
            # The join has one row without values: the query reads no row of the table.
            one = f"(SELECT 1) AS one LEFT JOIN {_aliased(table)} ON false"
            [row] = read(f"(SELECT {kinds} FROM {one}) AS kinds").collect()  # noqa: S608
            columns = [
                _of_postgres(field, name, str(kind))
                for field, name, kind in zip(fields, names, row, strict=True)
            ]
        case "mysql":
            columns = [_of_mysql(field, _quoted(field.name, "`")) for field in fields]
        case _:
            # Oracle's NUMBER is such a type: Spark would round it to ten digits behind the point.
            if rounded := [field.name for field in fields if _decimal(field) == NUMERIC]:
                raise NotAuditable(
                    f"Spark may round the numbers of {', '.join(rounded)} in {table}", hint=AS_TEXTS
                )
            # Spark reads microseconds of timestamps, but only seconds of times of day.
            clocks = {each.name for each in fields if "logical_time_type" in each.metadata}
            cut = [
                each.name
                for each in fields
                if each.dataType.simpleString().startswith("timestamp")
                and each.metadata.get("scale", 0) > (0 if each.name in clocks else 6)
            ]
            if cut:
                raise NotAuditable(
                    f"times of {', '.join(cut)} in {table} may have more digits than Spark reads",
                    hint=AS_TEXTS,
                )
            return rows
    quote = "`" if _family(url) == "mysql" else '"'
    selected = ", ".join(
        f"{column.selected} AS {_quoted(column.name, quote)}" for column in columns
    )
    texts = f"(SELECT {selected} FROM {_aliased(table)}) AS pyconnect_rows"  # noqa: S608
    return _typed(read(texts), columns)


def _quoted(name: str, quote: str) -> str:
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"


def _aliased(table: str) -> str:
    return f"(SELECT * FROM {table}) AS pyconnect_table"  # noqa: S608


def _of_postgres(field: StructField, name: str, kind: str) -> _Column:
    type_ = field.dataType.simpleString()
    match kind:
        case "money":
            selected, kept = f"{name}::numeric::text", "string"
        case "json" | "jsonb":
            selected, kept = f"{name}::text", DOCUMENT
        case _ if kind.endswith("[]"):
            selected, kept = f"to_json({name})::text", DOCUMENT
        case "numeric":
            selected, kept = f"{name}::text", _decimal(field)
        case "date":
            selected, kept = f"{name}::text", "date"
        case "time without time zone":
            selected, kept = f"{name}::text", TIME
        case "timestamp without time zone":
            selected, kept = f"{name}::text", "timestamp_ntz"
        case "timestamp with time zone":
            selected, kept = f"{name}::text", "timestamp"
        case _ if kind in _TEXTS or (type_ != "string" and kind in _AS_THEY_ARE):
            return _Column(name=field.name, selected=name)
        case _:
            # format writes the type's own text: a cast would add the length of its network to an
            # address. IS NOT NULL would be false for a row with a null in it.
            selected = f"CASE WHEN {name} IS DISTINCT FROM NULL THEN format('%s', {name}) END"
            kept = "string"
    return _Column(name=field.name, selected=selected, kind=kept)


def _of_mysql(field: StructField, name: str) -> _Column:
    type_ = field.dataType.simpleString()
    selected, kind = f"CAST({name} AS CHAR)", None
    match type_:
        case _ if field.metadata.get("logical_time_type"):
            kind = TIME
        # Before Spark 4 a FLOAT is a double.
        case "float" | "double" if field.metadata.get("scale", UNLIMITED) >= UNLIMITED:
            # The text of a FLOAT has only six digits.
            return _Column(name=field.name, selected=f"{name} * 1E0")
        case "float" | "double":
            kind = "double"
        case "boolean":
            selected, kind = f"LPAD(HEX({name}), 2, '0')", "binary"
        case _ if "binarylong" in field.metadata:
            selected, kind = f"LPAD(HEX({name}), 2 * LENGTH({name}), '0')", "binary"
        case "date" | "timestamp" | "timestamp_ntz":
            kind = type_
        case _ if type_.startswith("decimal"):
            kind = _decimal(field)
        case _ if not field.metadata.get(_CHAR, "").startswith("char"):
            return _Column(name=field.name, selected=name)
    return _Column(name=field.name, selected=selected, kind=kind)


def _decimal(field: StructField) -> str:
    """Return the type of a decimal column; NUMERIC for 38 digits, Spark's cap for larger ones."""
    type_ = field.dataType.simpleString()
    return NUMERIC if type_.startswith(f"decimal({MOST_DIGITS},") else type_


def _typed(frame: DataFrame, columns: list[_Column]) -> DataFrame:
    """Return the rows with the types of their columns, and tokens of values that the types lack."""
    found, tokens = [], []
    for column in columns:
        value = text = sql.col(_quoted(column.name, "`"))
        kind = column.kind or ""
        if kind == "binary":
            value = sql.unhex(text)
        elif kind == "double":
            value = text.cast(kind)
        elif form := _FORMS.get(kind.partition("(")[0]):
            read = sql.regexp_replace(text, r"\+00$", "").cast(kind)
            value = sql.when(text.rlike(form), read)
            # A text that is not a value of the type becomes a token; NaN is a number.
            odd = sql.concat(sql.lit(MARK), text) if kind.startswith("decimal") else text
            tokens += [sql.lit(column.name), sql.when(value.isNull(), odd)]
        # New metadata replaces that of the driver.
        metadata = {HELD: kind if kind in {NUMERIC, TIME, DOCUMENT} else ""}
        found.append(value.alias(column.name, metadata=metadata))
    if tokens:
        all_of_them = sql.create_map(*tokens)
        found.append(sql.map_filter(all_of_them, lambda _, token: token.isNotNull()).alias(TOKENS))
    return frame.select(*found)


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedTable:
    """A table's rows in files, and the offsets that were committed before they were read."""

    frame: DataFrame
    files: FixedFiles
    committed: Bounds = field(default_factory=dict)


def copied(session: Callable[[], SparkSession], side: TableSide, directory: Path) -> CopiedTable:
    """Copy a table below `directory`; ReconcileError when the database refuses it."""
    from pyspark.sql.utils import is_remote

    rows = directory / "rows"
    files = FixedFiles(copies={rows: side.table})
    if side.url.startswith(SQLITE):
        copy = sqlite.copied(side, rows)
        with spark_errors_translated():
            frame = copy.read(session(), rows)
        return CopiedTable(frame=frame, files=files, committed=copy.committed)

    def read(table: str) -> DataFrame:
        options = {
            "fetchsize": FETCH_ROWS,
            "preferTimestampNTZ": "true",
            **exact_options(side.url, side.options),
            **table_properties(side.properties),
            **exact_address(side.url),
            "dbtable": table,
        }
        return session().read.format("jdbc").options(**options).load()

    with spark_errors_translated():
        committed: Bounds = {}
        if side.offsets is not None:
            # The offsets come first: the rows may be newer than the offsets, never older.
            kept = read(side.offsets.table).select(*OFFSET_COLUMNS).collect()
            committed = committed_bounds(side.offsets.connector, kept)
        # Executors write: to them a relative path would be in the directory of the driver's JVM.
        place = rows.absolute().as_uri()
        exact_rows(read, side.url, side.table, side.zone).write.parquet(place)
        if not is_remote() and not any(rows.glob("*.parquet")):
            # The rows are on the disks of executors: Spark would read an empty table.
            raise ReconcileError(
                f"{rows.parent} is not the same directory for the driver and its executors",
                hint="tables are copied into the report's directory: name one with --report on"
                " storage that all machines share",
            )
        return CopiedTable(frame=session().read.parquet(place), files=files, committed=committed)


def with_tail_of(rows: DataFrame, position: TablePosition) -> DataFrame:
    """Return the rows that the source can find, with `tail`: whether it had not read them yet.

    A source never reads rows without a position. NotAuditable for values that have no order here.
    """
    time = number = None
    if position.timestamps:
        time = sql.coalesce(*(sql.col(f"`{name}`") for name in position.timestamps))
    # A value that the column's type lacks is null, and would be left out.
    odd = sql.lit(False)
    names = [*position.timestamps, *filter(None, [position.incrementing])]
    if TOKENS in rows.columns:
        odd = reduce(or_, (sql.col(TOKENS)[name].isNotNull() for name in names), odd)
    if (name := position.incrementing) is not None:
        column = sql.col(f"`{name}`")
        # Numbers of any length are texts.
        is_long = rows.schema[name].metadata.get(HELD) == NUMERIC
        number = column.cast("decimal(38,10)") if is_long else column
        odd = odd | (number.isNull() & column.isNotNull())
    if count := rows.where(odd).count():
        raise NotAuditable(
            f"{count_of(count, 'row has')} a value in {' or '.join(names)} that has no place among"
            " the positions of the source, such as infinity or a text of another form",
            hint="correct these values, or compare the rows with --table and --column",
        )
    found = sql.lit(True)
    for column in (time, number):
        if column is not None:
            found = found & column.isNotNull()
    beyond = sql.lit(False)
    if number is not None:
        beyond = _after(rows, number, position.number)
    if time is not None:
        later = _after(rows, time, position.timestamp)
        same = sql.lit(position.timestamp).cast(_type(rows, time)) == time
        beyond = later | (same & beyond) if position.timestamp is not None else later
    return rows.where(found).withColumn("tail", beyond)


def _after(rows: DataFrame, column: Column, value: str | None) -> Column:
    if value is None:
        return sql.lit(True)
    return column > sql.lit(value).cast(_type(rows, column))


def _type(rows: DataFrame, column: Column) -> str:
    return str(rows.select(column.alias("column")).schema["column"].dataType.simpleString())
