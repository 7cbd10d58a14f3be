"""Rows of one table as images: read with locks, and changed from one set of images to another.

Texts are those of the database, so that a row comes back exactly as it was:

    PostgreSQL   CAST(column AS text), and back by a cast to the column's type
    MariaDB      CAST(column AS char); bytes and bits as HEX; floats with all digits
    SQLite       values as they are stored; bytes as {"hex": "…"}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, types
from sqlalchemy.dialects import mysql

from pyconnect_connectors.sql.column_types import BINARIES
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import count_of
from pyconnect_repair.plan import Image, RowChange, RowState, difference

_Sql: TypeAlias = tuple[str, list[Any]]
_POSTGRES_TYPES = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = CAST(%s AS regclass) AND attnum > 0 AND NOT attisdropped"
)
_COMPARED = (types.Integer, types.String, types.Date, types.Numeric, types.Uuid)
"""Types whose equality can use an index."""
_HEX = (*BINARIES, mysql.BIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """SQL of a column: its name, the text of its value, the value of a text (`{}`)."""

    name: str
    text: str
    value: str
    indexed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A row that is there; `handle` finds it again in the transaction, empty in MariaDB."""

    handle: Sequence[Any]
    image: Image


class TableImages:
    """Rows of a table over one connection; transactions are the caller's."""

    def __init__(self, connection: Connection, table: Table) -> None:
        dialect = connection.dialect
        self._connection = connection
        self._family = {"mariadb": "mysql"}.get(dialect.name, dialect.name)
        if self._family not in {"postgresql", "mysql", "sqlite"}:
            raise ReconcileError(f"tables of {dialect.name} cannot be repaired")
        self._mark = "?" if self._family == "sqlite" else "%s"
        self._table = dialect.identifier_preparer.format_table(table)
        self._columns = self._described(table)
        self._written_names = [column.name for column in table.columns if column.computed is None]
        self._selected = ", ".join(column.text for column in self._columns.values())
        if table.dialect_options["sqlite"]["with_rowid"] is False:
            raise ReconcileError(
                f"{self._table} is a table WITHOUT ROWID, whose rows a repair cannot tell apart",
                hint="write the rows by hand, or into a table with a rowid",
            )
        # Partitions of a table have rows of the same ctid.
        handles = {"postgresql": ("tableoid", "CAST(ctid AS text)"), "sqlite": ("_rowid_",)}
        self._handle: Sequence[str] = handles.get(self._family, ())
        by_handle = {
            "postgresql": "tableoid = %s AND ctid = CAST(%s AS tid)",
            "sqlite": "_rowid_ = ?",
        }
        self._by_handle = by_handle.get(self._family, "")

    def written(self, statement: str, values: Any) -> list[Image]:
        """Write rows by a statement without RETURNING; return their images."""
        if self._family == "mysql":
            query = f"{statement} RETURNING {self._selected}"
            return [self._image(row) for row in self._connection.exec_driver_sql(query, values)]
        query = f"{statement} RETURNING {', '.join(self._handle)}"
        handles = list(map(tuple, self._connection.exec_driver_sql(query, values)))
        # RETURNING of SQLite shows numbers in another form than SELECT does.
        query = f"SELECT {self._selected} FROM {self._table} WHERE {self._by_handle}"  # noqa: S608
        rows = [self._connection.exec_driver_sql(query, handle).one() for handle in handles]
        return [self._image(row) for row in rows]

    def rows(self, identity: Image) -> list[Image]:
        """Return the images of the rows of an identity, locked until the transaction ends."""
        return [found.image for found in self._found(identity)]

    def move(self, change: RowChange) -> bool:
        """Carry a change out, unless that was done; ReconcileError when the rows are others."""
        images = (*change.before, *change.after)
        if any(image.keys() != self._columns.keys() for image in images):
            raise ReconcileError(
                f"{self._table} has other columns than when the repair was planned: nothing of"
                " this batch was changed",
                hint="give the table its columns of that time, or audit again and repair by the"
                " new report",
            )
        found = self._found(change.identity)
        match change.state_of(each.image for each in found):
            case RowState.DONE:
                return False
            case RowState.CHANGED:
                raise ReconcileError(
                    f"{change.name} has changed in the table meanwhile: nothing of this batch was"
                    " changed",
                    hint="audit again, and repair by the new report",
                )
        gone = difference(change.before, change.after)
        added = difference(change.after, change.before)
        if len(gone) == len(added) == 1:
            self._replace(found, gone[0], added[0])
        else:
            for image in gone:
                row, values = self._row_of(found, image)
                self._execute(f"DELETE FROM {self._table} WHERE {row}", values)  # noqa: S608
            for image in added:
                self._insert(image)
        if change.state_of(self.rows(change.identity)) is not RowState.DONE:
            raise ReconcileError(
                f"{change.name} is not what was written: a trigger or a rule of the table"
                " changes rows; nothing of this batch was changed"
            )
        return True

    def _image(self, values: Sequence[Any]) -> Image:
        shown = ({"hex": v.hex()} if isinstance(v, bytes) else v for v in values)
        return dict(zip(self._columns, shown, strict=True))

    def _found(self, identity: Image) -> list[_Found]:
        where, values = self._where(identity)
        lock = "" if self._family == "sqlite" else " FOR UPDATE"
        selected = ", ".join((*self._handle, self._selected))
        query = f"SELECT {selected} FROM {self._table} WHERE {where}{lock}"  # noqa: S608
        rows = self._connection.exec_driver_sql(query, tuple(values)).all()
        count = len(self._handle)
        return [_Found(handle=row[:count], image=self._image(row[count:])) for row in rows]

    def _replace(self, found: list[_Found], old: Image, new: Image) -> None:
        # MariaDB gives columns with ON UPDATE a new time, unless a statement sets them.
        is_set = self._family == "mysql"
        names = [name for name in self._written_names if is_set or old[name] != new[name]]
        columns = [self._columns[name] for name in names]
        set_to = ", ".join(f"{c.name} = {c.value.format(self._mark)}" for c in columns)
        row, values = self._row_of(found, old)
        values = [*(_driver_value(new[name]) for name in names), *values]
        self._execute(f"UPDATE {self._table} SET {set_to} WHERE {row}", values)  # noqa: S608

    def _insert(self, image: Image) -> None:
        columns = [self._columns[name] for name in self._written_names]
        names = ", ".join(column.name for column in columns)
        given = ", ".join(column.value.format(self._mark) for column in columns)
        values = [_driver_value(image[name]) for name in self._written_names]
        # Or columns that are GENERATED ALWAYS AS IDENTITY would refuse their values.
        own = "OVERRIDING SYSTEM VALUE " if self._family == "postgresql" else ""
        self._execute(f"INSERT INTO {self._table} ({names}) {own}VALUES ({given})", values)

    def _row_of(self, found: list[_Found], image: Image) -> _Sql:
        """Return the condition of one of the rows that have an image; it is taken from `found`."""
        at = next(index for index, each in enumerate(found) if each.image == image)
        handle = found.pop(at).handle
        if self._by_handle:
            return self._by_handle, list(handle)
        row, values = self._where(image)
        return f"{row} LIMIT 1", values

    def _where(self, identity: Image) -> _Sql:
        parts, values = [], []
        for name, value in identity.items():
            column = self._columns[name]
            if value is None:
                parts.append(f"{column.name} IS NULL")
                continue
            given = _driver_value(value)
            match self._family:
                case "sqlite":
                    binary = "IS ? COLLATE BINARY"
                    parts.append(
                        f"({column.name} {binary} OR CAST({column.name} AS TEXT) {binary})"
                    )
                    values += [given, given]
                    continue
                case "mysql":
                    parts.append(f"CAST({column.text} AS BINARY) = CAST(%s AS BINARY)")
                case _:
                    parts.append(f'{column.text} COLLATE "C" = %s')
            values.append(given)
            if column.indexed:
                parts.append(f"{column.name} = {column.value.format(self._mark)}")
                values.append(given)
        return " AND ".join(parts), values

    def _execute(self, statement: str, values: Sequence[Any]) -> None:
        count = self._connection.exec_driver_sql(statement, tuple(values)).rowcount
        if count != 1:
            raise ReconcileError(
                f"a statement changed {count_of(count, 'row')} of {self._table} instead of 1"
            )

    def _described(self, table: Table) -> Mapping[str, _Column]:
        quote = self._connection.dialect.identifier_preparer.quote
        kinds: dict[str, str] = {}
        if self._family == "postgresql":
            name = self._table.replace("%%", "%")
            rows = self._connection.exec_driver_sql(_POSTGRES_TYPES, (name,))
            kinds = {str(row[0]): str(row[1]) for row in rows}
        found = {}
        for column in table.columns:
            name = quote(column.name)
            text, value = name, "{}"
            if self._family == "postgresql":
                kind = kinds[column.name]
                text, value = f"CAST({name} AS text)", f"CAST({{}} AS {kind})"
                if kind.startswith("character("):
                    # With its blanks, as an audit shows it; a cast takes them away.
                    text = f"textin(bpcharout({name}))"
            elif self._family == "mysql":
                text = f"CAST({name} AS CHAR)"
                if isinstance(column.type, _HEX):
                    text, value = f"HEX({name})", "UNHEX({})"
                elif isinstance(column.type, types.Float):
                    text = f"CAST({name} * 1E0 AS CHAR)"
            found[column.name] = _Column(
                name=name, text=text, value=value, indexed=isinstance(column.type, _COMPARED)
            )
        return found


def _driver_value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value
