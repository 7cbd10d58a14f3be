"""Columns of PostgreSQL, MariaDB and MySQL as their tables have them.

Spark's reader keeps 38 digits of a number, moves early dates to another calendar, and knows neither
infinity nor times beyond a day. Columns of such types are therefore read as the texts that the
database writes. A text that the column's type has becomes its value; another one stays what it is,
as a token in the column `TOKENS`. `HELD` in a column's metadata names a type that Spark lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import StructField

from pyconnect_reconcile.errors import NotAuditable, ReconcileError
from pyconnect_reconcile.tokens import DOCUMENT, HELD, MARK, NUMERIC, TIME, TOKENS

Read = Callable[[str], DataFrame]
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "postgresql": {
        "sessionInitStatement": (
            "SET TimeZone = 'UTC'; SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'postgres'"
        )
    },
    # One byte is a number, not a boolean; texts of times are those of UTC.
    "mysql": {
        "sessionVariables": "time_zone='+00:00'",
        "tinyInt1isBit": "false",
        "uuidAsString": "true",
    },
}
"""Options of sessions whose texts are read."""
# Java finds no driver by its URL in the jars of a session.
_DRIVERS = {"postgresql": {"driver": "org.postgresql.Driver"}}
_MARIADB = "jdbc:mariadb:"
_JOINED = {"sessionInitStatement": "; ", "sessionVariables": ","}
MOST_DIGITS, UNLIMITED = 38, 31
_KINDS = (
    "SELECT format_type(coalesce(b.oid, t.oid), NULL) FROM pg_catalog.pg_type AS t"
    " LEFT JOIN pg_catalog.pg_type AS b ON b.oid = t.typbasetype"
    " WHERE t.oid = pg_catalog.pg_typeof({name})::oid"
)
_TEXTS = frozenset({"text", "character varying"})
_CHAR = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the type of a column whose texts it fills with spaces."""
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
    """The selected text of a column, and its type; None: as Spark reads it."""

    name: str
    selected: str
    kind: str | None = None


def _family(url: str) -> str:
    """Return the name of the databases whose texts and drivers are alike."""
    scheme = url.removeprefix("jdbc:").partition(":")[0]
    return "mysql" if scheme == "mariadb" else scheme


def exact_options(url: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return options of a user with those that the texts of values need; these come last."""
    options = {**_DRIVERS.get(_family(url), {}), **given}
    for name, needed in _OPTIONS.get(_family(url), {}).items():
        before = given.get(name) if name in _JOINED else None
        options[name] = f"{before}{_JOINED[name]}{needed}" if before else needed
    return options


def exact_address(url: str) -> dict[str, str]:
    """Return the options of an address: Spark knows MariaDB's quotes under MySQL's scheme only.

    Under its own one, Spark would read the names of columns as their values.
    """
    if not url.startswith(_MARIADB):
        return {"url": url}
    # The driver accepts MySQL's scheme with this parameter.
    permitted = f"{'&' if '?' in url else '?'}permitMysqlScheme=true"
    address = f"jdbc:mysql:{url.removeprefix(_MARIADB)}{permitted}"
    return {"url": address, "driver": "org.mariadb.jdbc.Driver"}


def exact_rows(read: Read, url: str, table: str, zone: str) -> DataFrame:
    """Return the rows of a table, or of a query with its alias; each value is what is stored.

    `zone` is that of timestamps without one.
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
            kinds = _kinds_of_postgres(read, table, names)
            columns = [
                _of_postgres(field, name, kind)
                for field, name, kind in zip(fields, names, kinds, strict=True)
            ]
        case "mysql":
            columns = [_of_mysql(field, _quoted(field.name, "`")) for field in fields]
        case _:
            _require_exact(fields, table)
            return rows
    quote = "`" if _family(url) == "mysql" else '"'
    selected = ", ".join(
        f"{column.selected} AS {_quoted(column.name, quote)}" for column in columns
    )
    texts = f"(SELECT {selected} FROM {_aliased(table)}) AS pyconnect_rows"  # noqa: S608
    return _typed(read(texts), columns)


def _require_exact(fields: Iterable[StructField], table: str) -> None:
    """Refuse numbers that Spark reads with the most digits it has, of a database not known here.

    Oracle's NUMBER is one: Spark would round it to ten digits behind the point.
    """
    rounded = [field.name for field in fields if _decimal(field) == NUMERIC]
    if rounded:
        raise NotAuditable(
            f"Spark may round the numbers of {', '.join(rounded)} in {table}",
            hint="have the database write them as texts: --table '(SELECT … AS …) rows'",
        )


def _quoted(name: str, quote: str) -> str:
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"


def _aliased(table: str) -> str:
    return f"(SELECT * FROM {table}) AS pyconnect_table"  # noqa: S608


def _kinds_of_postgres(read: Read, table: str, names: list[str]) -> list[str]:
    """Return the names of the columns' types, of domains those below them."""
    asked = ", ".join(
        f"({_KINDS.format(name=f'pyconnect_table.{name}')}) AS kind_{number}"
        for number, name in enumerate(names)
    )
    # One row without values: no row of the table is read.
    rows = f"(SELECT 1) AS one LEFT JOIN {_aliased(table)} ON false"
    query = f"(SELECT {asked} FROM {rows}) AS kinds"  # noqa: S608
    [row] = read(query).collect()
    return [str(kind) for kind in row]


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
            # The type's own text: a cast would add the length of its network to an address.
            # IS NOT NULL would be false for a row with a null in it.
            selected = f"CASE WHEN {name} IS DISTINCT FROM NULL THEN format('%s', {name}) END"
            kept = "string"
    return _Column(name=field.name, selected=selected, kind=kept)


_AS_THEY_ARE = frozenset(
    {"smallint", "integer", "bigint", "real", "double precision", "boolean", "bytea"}
)


def _of_mysql(field: StructField, name: str) -> _Column:
    type_ = field.dataType.simpleString()
    selected, kind = f"CAST({name} AS CHAR)", None
    match type_:
        case _ if field.metadata.get("logical_time_type"):
            kind = TIME
        # A FLOAT is a double before Spark 4.
        case "float" | "double" if field.metadata.get("scale", UNLIMITED) >= UNLIMITED:
            # The text of a FLOAT has six digits only.
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
    """Return the type of a decimal column; Spark gives those of more digits than it has 38."""
    type_ = field.dataType.simpleString()
    return NUMERIC if type_.startswith(f"decimal({MOST_DIGITS},") else type_


def _typed(frame: DataFrame, columns: list[_Column]) -> DataFrame:
    """Return the rows with the types of their columns, and tokens of what the types lack."""
    found, tokens = [], []
    for column in columns:
        text = sql.col(_quoted(column.name, "`"))
        value = _value(text, column.kind)
        # Metadata of the driver ends here.
        metadata = {HELD: column.kind if column.kind in {NUMERIC, TIME, DOCUMENT} else ""}
        found.append(value.alias(column.name, metadata=metadata))
        if (column.kind or "").partition("(")[0] in _FORMS:
            odd = sql.when(value.isNull(), _odd(text, column.kind or ""))
            tokens += [sql.lit(column.name), odd]
    if tokens:
        all_of_them = sql.create_map(*tokens)
        found.append(sql.map_filter(all_of_them, lambda _, token: token.isNotNull()).alias(TOKENS))
    return frame.select(*found)


def _value(text: Column, kind: str | None) -> Column:
    if kind == "binary":
        return sql.unhex(text)
    if kind == "double":
        return text.cast(kind)
    form = _FORMS.get((kind or "").partition("(")[0])
    if kind is None or form is None:
        return text
    return sql.when(text.rlike(form), sql.regexp_replace(text, r"\+00$", "").cast(kind))


def _odd(text: Column, kind: str) -> Column:
    """Return the token of a text that is no value of the type: NaN is a number."""
    return sql.concat(sql.lit(MARK), text) if kind.startswith("decimal") else text
