"""Rows into PostgreSQL through COPY, which is faster than a statement for each of them.

Upserts go through a temporary table of the session, which is empty at the end of each transaction.
Of rows with equal keys the last is written, as if each were written by a statement of its own;
PostgreSQL compares the keys, so that its own equality holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any  # the driver's classes

from sqlalchemy import Connection, Table
from sqlalchemy.engine import Transaction

from pyconnect_connectors.sql.database import driver_cursor
from pyconnect_connectors.sql.rows import Row

FEWEST_ROWS = 50
"""For fewer rows the further statements cost more than COPY saves."""
_MAY_STAGE = (
    "SELECT has_database_privilege(current_database(), 'TEMP') "
    "AND has_table_privilege(%s, 'SELECT')"
)


def copy_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Row]
) -> None:
    """Insert rows in the open transaction."""
    preparer = connection.dialect.identifier_preparer
    names = ", ".join(map(preparer.quote, columns))
    with driver_cursor(connection) as cursor:
        _copy(cursor, f"{preparer.format_table(table)} ({names})", rows)


class StagedUpserts:
    """Rows of one connection. Each round trip counts: most of a write is waiting for them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._allowed: dict[str, bool] = {}
        self._filled: dict[str, Transaction | None] = {}

    def takes(self, table: Table, rows: Sequence[Row]) -> bool:
        """Return whether rows can be written this way."""
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

        ProgrammingError if the session's temporary table is gone: the caller repeats the
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
                # It may be there, of a transaction whose outcome is unknown, or with other types.
                cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{staged}")
                cursor.execute(
                    _unescaped(
                        f"CREATE TEMPORARY TABLE {staged} ON COMMIT DELETE ROWS "  # noqa: S608
                        f"AS SELECT {names}, 0::bigint AS {order} FROM {target} WITH NO DATA"
                    )
                )
            elif self._filled[staged] is transaction:
                # With the rows of another run.
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
    """Write rows to a target, which is a table with columns."""
    with cursor.copy(_unescaped(f"COPY {target} FROM STDIN")) as copy:
        for row in rows:
            copy.write_row(row)


def _unescaped(statement: str) -> str:
    """SQLAlchemy doubles the signs in quoted names for statements with parameters."""
    return statement.replace("%%", "%")
