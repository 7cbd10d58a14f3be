"""Rows made of records, and the statements or the COPY that write them.

A run is a sequence of records that one statement writes: of one topic and of the same schemas, all
of them with a value or all without.

COPY of PostgreSQL is faster than a statement for each row. Upserts go through a temporary table of
the session, which is empty at the end of each transaction. Of rows with equal keys the last is
written, as if each were written by a statement of its own; PostgreSQL compares the keys.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection, Table, UpdateBase, bindparam, delete, func, insert, types, update
from sqlalchemy import column as named
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Transaction

from pyconnect_api import (
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    DataException,
    Schema,
    SinkRecord,
    Struct,
)
from pyconnect_connectors.odd_values import OddValueException, OddValues, place_of, required_default
from pyconnect_connectors.sql.column_types import MYSQL
from pyconnect_connectors.sql.database import driver_cursor
from pyconnect_connectors.sql.settings import (
    DELETES,
    PK_FIELDS,
    InsertMode,
    PrimaryKeyMode,
    SinkSettings,
)
from pyconnect_connectors.sql.target_tables import further_keys
from pyconnect_connectors.sql.writing_columns import WriteColumn
from pyconnect_connectors.sql.writing_postgres import UNFIT, Unfit

CONVERTED = MYSQL | {"postgresql", "sqlite"}
"""Dialects whose values `writing_columns` converts; for others SQLAlchemy converts once more."""
KAFKA_COLUMNS = ("__connect_topic", "__connect_partition", "__connect_offset")
_KAFKA_SCHEMAS = (STRING_SCHEMA, INT32_SCHEMA, INT64_SCHEMA)
Row: TypeAlias = tuple[object, ...]
_Take: TypeAlias = Callable[[SinkRecord], Iterable[object]]


class _AsGiven(types.TypeEngine[Any]):
    """A type whose values the driver takes as they are."""

    cache_ok = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The columns of a run's rows; key columns that are not part of the value come first."""

    columns: Mapping[str, Schema | None]
    keys: tuple[str, ...]
    deletes: bool
    take: _Take

    def rows(self, records: Sequence[SinkRecord], columns: Sequence[WriteColumn]) -> list[Row]:
        """Return the records' rows as the driver takes them; raise one of UNFIT for an odd value.

        `columns` are those of the shape, in its order.
        """
        values = zip(*map(self.take, records), strict=True)
        written = [column.values(found) for column, found in zip(columns, values, strict=True)]
        return list(zip(*written, strict=True))

    def odd_value(
        self, record: SinkRecord, table: Table, columns: Sequence[WriteColumn]
    ) -> OddValueException | None:
        """Return the error of the first value that its column cannot hold, None if all fit."""
        for column, value in zip(columns, self.take(record), strict=True):
            try:
                column.values([value])
            except UNFIT as error:
                return OddValueException(
                    f"table {table.fullname}",
                    column=column.name,
                    row=f"record {place_of(record)}",
                    kind=str(error) if isinstance(error, Unfit) else "a value of another type",
                    target=column.target,
                    is_key=column.name in self.keys or not table.columns[column.name].nullable,
                )
        return None

    def parameters(self, mode: InsertMode) -> list[str]:
        """Return the names of a statement's parameters; an update's are not those of columns."""
        prefix = "p"
        while mode is InsertMode.UPDATE and any(name.startswith(prefix) for name in self.columns):
            prefix = f"_{prefix}"
        return [f"{prefix}{index}" for index in range(len(self.columns))]

    def is_key(self, mode: InsertMode, column: str) -> bool:
        """Return whether the statement finds rows by a column."""
        return column in self.keys and (self.deletes or mode is not InsertMode.INSERT)

    def statement(self, table: Table, mode: InsertMode, dialect: str) -> UpdateBase:
        """Return the statement that writes a row, with a parameter for each column."""
        # With the column's type SQLAlchemy would convert once more, and cast.
        kind = _AsGiven() if dialect in CONVERTED else None
        parameters: dict[str, Any] = {
            name: bindparam(parameter, type_=kind)
            for name, parameter in zip(self.columns, self.parameters(mode), strict=True)
        }
        conditions = [table.columns[name] == parameters[name] for name in self.keys]
        if self.deletes:
            return delete(table).where(*conditions)
        others = {name: p for name, p in parameters.items() if name not in self.keys}
        match mode:
            case InsertMode.INSERT:
                return insert(table).values(parameters)
            case InsertMode.UPDATE:
                return update(table).where(*conditions).values(others or parameters)
        if dialect in MYSQL:
            # SQLAlchemy would double the percent signs of names in `added.inserted` twice.
            replaced = {name: func.VALUES(named(name)) for name in others or self.keys}
            return mysql.insert(table).values(parameters).on_duplicate_key_update(replaced)
        if dialect not in ("postgresql", "sqlite"):
            raise DataException(f"insert.mode=upsert is not supported for {dialect}")
        added: postgresql.Insert | sqlite.Insert
        added = (postgresql if dialect == "postgresql" else sqlite).insert(table).values(parameters)
        if not others:
            return added.on_conflict_do_nothing(index_elements=self.keys)
        changed = {name: added.excluded[name] for name in others}
        return added.on_conflict_do_update(index_elements=self.keys, set_=changed)


def runs(records: Sequence[SinkRecord]) -> Iterator[list[SinkRecord]]:
    """Split records, in their order, into runs."""

    def likeness(record: SinkRecord) -> tuple[object, ...]:
        key, value = record.key, record.value
        names = tuple(value) if isinstance(value, dict) else None
        key_names = tuple(key) if isinstance(key, dict) else None
        return record.topic, record.value_schema, value is None, record.key_schema, names, key_names

    for _, run in groupby(records, likeness):
        yield list(run)


def shape_of(record: SinkRecord, settings: SinkSettings) -> Shape:
    """Return the shape of a run that begins with this record; DataException if it has none."""
    if record.value is None:
        if not settings.deletes:
            raise DataException(f"The record has no value; {DELETES}=true would delete its row")
        columns, take = _key_part(record, settings)
        return Shape(columns=columns, keys=tuple(columns), deletes=True, take=take)
    fields, values = _value_part(record)
    match settings.pk_mode:
        case PrimaryKeyMode.NONE:
            if not fields:
                raise DataException("The value has no fields, and so no columns")
            return Shape(columns=fields, keys=(), deletes=False, take=values)
        case PrimaryKeyMode.RECORD_VALUE:
            keys = settings.pk_fields
            if not fields.keys() >= set(keys):
                raise DataException(f"The value lacks fields that {PK_FIELDS} names")
            return Shape(columns=fields, keys=keys, deletes=False, take=values)
        case PrimaryKeyMode.KAFKA:
            names = settings.pk_fields or KAFKA_COLUMNS
            key_columns: Mapping[str, Schema | None] = dict(zip(names, _KAFKA_SCHEMAS, strict=True))
            key_take: _Take = attrgetter(
                "original_topic", "original_kafka_partition", "original_kafka_offset"
            )
        case PrimaryKeyMode.RECORD_KEY:
            key_columns, key_take = _key_part(record, settings)
    kept = [index for index, name in enumerate(fields) if name not in key_columns]
    names_kept = [name for name in fields if name not in key_columns]

    def take_both(found: SinkRecord) -> Row:
        value = tuple(values(found))
        return (*key_take(found), *(value[index] for index in kept))

    return Shape(
        columns={**key_columns, **{name: fields[name] for name in names_kept}},
        keys=tuple(key_columns),
        deletes=False,
        take=take_both,
    )


def write_columns(
    shape: Shape, table: Table, connection: Connection, settings: SinkSettings
) -> list[WriteColumn]:
    """Return the columns that a shape writes to a table, in the shape's order."""
    nulls = settings.odd_values is OddValues.NULL
    return [
        WriteColumn(
            column,
            connection.dialect,
            settings.connection.zone,
            becomes_null=nulls and bool(column.nullable) and column.name not in shape.keys,
            is_key=shape.is_key(settings.insert_mode, column.name),
            connection=connection,
        )
        for column in (table.columns[name] for name in shape.columns)
    ]


def _value_part(record: SinkRecord) -> tuple[Mapping[str, Schema | None], _Take]:
    value, schema = record.value, record.value_schema
    if isinstance(value, Struct):
        assert schema is not None
        fields: dict[str, Schema | None] = {f.name: f.schema for f in schema.fields}
        return fields, _struct_values(schema, lambda found: found.value)
    if isinstance(value, dict):
        return dict.fromkeys(map(str, value)), lambda found: found.value.values()
    raise DataException("The value is neither a struct nor a map, so that it has no columns")


def _key_part(
    record: SinkRecord, settings: SinkSettings
) -> tuple[Mapping[str, Schema | None], _Take]:
    key, schema, wanted = record.key, record.key_schema, settings.pk_fields
    if isinstance(key, Struct):
        assert schema is not None
        names = wanted or tuple(field.name for field in schema.fields)
        found = {name: schema.field(name) for name in names}
        if None in found.values():
            raise DataException(f"The key lacks fields that {PK_FIELDS} names")
        columns = {name: None if f is None else f.schema for name, f in found.items()}
        indexes = [schema.fields.index(field) for field in found.values() if field is not None]
        stored = _struct_values(schema, lambda r: r.key)

        def values(record: SinkRecord) -> list[object]:
            key_values = list(stored(record))
            return [key_values[index] for index in indexes]

        return columns, values
    if isinstance(key, dict):
        names = wanted or tuple(map(str, key))
        if not set(names) <= key.keys():
            raise DataException(f"The key lacks fields that {PK_FIELDS} names")
        return dict.fromkeys(names), lambda r: [r.key[name] for name in names]
    if key is None:
        raise DataException("The record has no key, which pk.mode=record_key needs")
    if len(wanted) != 1:
        raise DataException(f"The key is a single value; {PK_FIELDS} must name one column for it")
    return {wanted[0]: schema}, lambda r: [r.key]


def _struct_values(schema: Schema, value: Callable[[SinkRecord], Any]) -> _Take:
    # Null is a value of an optional field: the converter has already put a default in its place if
    # `replace.null.with.default` says so.
    defaults = [required_default(field.schema) for field in schema.fields]
    if not any(default is not None for default in defaults):
        return lambda record: value(record).stored_values()
    return lambda record: [
        default if found is None else found
        for found, default in zip(value(record).stored_values(), defaults, strict=True)
    ]


FEWEST_ROWS = 50
"""With fewer rows the further statements cost more than COPY saves."""
_MAY_STAGE = (
    "SELECT has_database_privilege(current_database(), 'TEMP') "
    "AND has_table_privilege(%s, 'SELECT')"
)


class StagedUpserts:
    """Upserts of one connection through temporary tables; most of a write waits for round trips."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._allowed: dict[str, bool] = {}
        self._filled: dict[str, Transaction | None] = {}

    def takes(self, table: Table, rows: Sequence[Row]) -> bool:
        """Return whether the rows can be written through a temporary table."""
        if len(rows) < FEWEST_ROWS:
            return False
        name = self._connection.dialect.identifier_preparer.format_table(table)
        if name not in self._allowed:
            parameters = (name.replace("%%", "%"),)
            found = self._connection.exec_driver_sql(_MAY_STAGE, parameters).scalar()
            self._allowed[name] = bool(found)
        return self._allowed[name]

    def write(
        self, table: Table, columns: Sequence[str], keys: Sequence[str], rows: Sequence[Row]
    ) -> None:
        """Write rows in the open transaction.

        Raise ProgrammingError if the session's temporary table is gone; the caller then repeats the
        transaction with another object.
        """
        preparer = self._connection.dialect.identifier_preparer
        target = preparer.format_table(table)
        quoted = [preparer.quote(name) for name in columns]
        key_names = ", ".join(preparer.quote(name) for name in keys)
        names = ", ".join(quoted)
        order = "__connect_row"
        while order in columns:
            order += "_"
        staged = f"pyconnect_rows_{zlib.crc32(f'{target} {names}'.encode()):08x}"
        changes = ", ".join(
            f"{name} = excluded.{name}"
            for name, column in zip(quoted, columns, strict=True)
            if column not in keys
        )
        conflict = f"UPDATE SET {changes}" if changes else "NOTHING"
        with driver_cursor(self._connection) as cursor:
            transaction = self._connection.get_transaction()
            if staged not in self._filled:
                # The table may exist with other types, or from a transaction of unknown outcome.
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{staged}")
                cursor.execute(
                    _unescaped(
                        f"CREATE TEMPORARY TABLE {staged} ON COMMIT DELETE ROWS "  # noqa: S608
                        f"AS SELECT {names}, 0::bigint AS {order} FROM {target} WITH NO DATA"
                    )
                )
            elif self._filled[staged] is transaction:
                # The table has the rows of another run of this transaction.
                cursor.execute(f"DELETE FROM pg_temp.{staged}")  # noqa: S608
            self._filled[staged] = transaction
            numbered = ((*row, number) for number, row in enumerate(rows))
            _copy(cursor, f"pg_temp.{staged} ({names}, {order})", numbered)
            cursor.execute(
                _unescaped(
                    f"INSERT INTO {target} ({names}) "  # noqa: S608  the names are quoted
                    f"SELECT DISTINCT ON ({key_names}) {names} FROM pg_temp.{staged} "
                    f"ORDER BY {key_names}, {order} DESC "
                    f"ON CONFLICT ({key_names}) DO {conflict}"
                )
            )


def _copy(cursor: Any, target: str, rows: Iterable[Row]) -> None:
    """Copy rows to a target, which is a table with columns."""
    with cursor.copy(_unescaped(f"COPY {target} FROM STDIN")) as copy:
        for row in rows:
            copy.write_row(row)


def _unescaped(statement: str) -> str:
    """Return a statement with the percent signs that SQLAlchemy doubled as single ones."""
    return statement.replace("%%", "%")


class Write(NamedTuple):
    """The rows of a run and their table."""

    shape: Shape
    table: Table
    mode: InsertMode
    rows: list[Row]

    def execute(self, connection: Connection, staged: StagedUpserts | None) -> None:
        """Write the rows in the open transaction; `staged` None: without temporary tables."""
        columns, keys = tuple(self.shape.columns), self.shape.keys
        if connection.dialect.driver == "psycopg" and not self.shape.deletes:
            if self.mode is InsertMode.INSERT and self.table.info.get("copied"):
                preparer = connection.dialect.identifier_preparer
                quoted = ", ".join(map(preparer.quote, columns))
                with driver_cursor(connection) as cursor:
                    _copy(cursor, f"{preparer.format_table(self.table)} ({quoted})", self.rows)
                return
            upserts = staged if self.mode is InsertMode.UPSERT else None
            if upserts is not None and upserts.takes(self.table, self.rows):
                upserts.write(self.table, columns, keys, self.rows)
                return
        dialect = connection.dialect.name
        names = self.shape.parameters(self.mode)
        if (
            dialect in MYSQL
            and self.mode is InsertMode.UPSERT
            and not self.shape.deletes
            and further_keys(self.table, columns, keys)
        ):
            # ON DUPLICATE KEY UPDATE would change a row of another key with an equal value.
            change, add = (
                self.shape.statement(self.table, mode, dialect)
                for mode in (InsertMode.UPDATE, InsertMode.INSERT)
            )
            updated = self.shape.parameters(InsertMode.UPDATE)
            for row in self.rows:
                if connection.execute(change, dict(zip(updated, row, strict=True))).rowcount == 0:
                    connection.execute(add, dict(zip(names, row, strict=True)))
            return
        statement = self.shape.statement(self.table, self.mode, dialect)
        compiled = statement.compile(dialect=connection.dialect)
        if compiled.positional and compiled.positiontup == names and dialect in CONVERTED:
            # The columns' conversions did what SQLAlchemy does for each row.
            connection.exec_driver_sql(str(compiled), self.rows)
        else:
            rows = [dict(zip(names, row, strict=True)) for row in self.rows]
            # psycopg sends several rows as a pipeline, which logs a warning for each error in it.
            for part in [rows] if staged is not None else [[row] for row in rows]:
                connection.execute(statement, part)
