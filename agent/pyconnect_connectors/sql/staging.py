"""Upserts into PostgreSQL through a temporary table, which COPY fills faster than statements would.

The temporary table is the session's. It is empty at the end of each transaction. Of rows with equal
keys the last is written, as if each were written by a statement of its own; PostgreSQL compares the
keys, so that its own equality holds.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence

from sqlalchemy import Connection, Table
from sqlalchemy.engine import Transaction

from pyconnect_connectors.sql.rows import Row

FEWEST_ROWS = 50
"""For fewer rows the further statements cost more than COPY saves."""
_ORDER = "__connect_row"
_MAY_STAGE = (
    "SELECT has_database_privilege(current_database(), 'TEMP') "
    "AND has_table_privilege(%s, 'SELECT')"
)


class StagedUpserts:
    """Rows of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._allowed: dict[str, bool] = {}
        self._filled: dict[str, Transaction | None] = {}

    def takes(
        self, table: Table, columns: Sequence[str], keys: Sequence[str], rows: Sequence[Row]
    ) -> bool:
        """Return whether rows can be written this way, with the result of single statements."""
        places = [index for index, name in enumerate(columns) if name in keys]
        if len(rows) < FEWEST_ROWS or any(row[place] is None for row in rows for place in places):
            # Rows without a key do not replace each other.
            return False
        name = self._connection.dialect.identifier_preparer.format_table(table)
        if name not in self._allowed:
            parameters = (name.replace("%%", "%"),)
            found = self._connection.exec_driver_sql(_MAY_STAGE, parameters).scalar()
            self._allowed[name] = bool(found)
        return self._allowed[name]

    def write(
        self,
        table: Table,
        columns: Sequence[str],
        keys: Sequence[str],
        rows: Sequence[Row],
        copy: Callable[[str, Iterable[Row]], None],
    ) -> None:
        """Write rows in the open transaction; `copy` has a target with columns, and rows."""
        preparer = self._connection.dialect.identifier_preparer
        target = preparer.format_table(table)
        quoted = [preparer.quote(name) for name in columns]
        key_names = ", ".join(preparer.quote(name) for name in keys)
        names = ", ".join(quoted)
        staged = f"pyconnect_rows_{zlib.crc32(f'{target} {names}'.encode()):08x}"
        execute = self._connection.exec_driver_sql
        transaction = self._connection.get_transaction()
        # Not once for a session: the transaction that made it may have been rolled back.
        if execute("SELECT to_regclass(%s)", (f"pg_temp.{staged}",)).scalar() is None:
            execute(
                f"CREATE TEMPORARY TABLE {staged} ON COMMIT DELETE ROWS AS "  # noqa: S608
                f"SELECT {names}, 0::bigint AS {_ORDER} FROM {target} WITH NO DATA"
            )
        elif self._filled.get(staged) is transaction:
            # With the rows of another run.
            execute(f"DELETE FROM pg_temp.{staged}")  # noqa: S608
        self._filled[staged] = transaction
        copy(
            f"pg_temp.{staged} ({names}, {_ORDER})",
            ((*row, number) for number, row in enumerate(rows)),
        )
        changes = ", ".join(
            f"{name} = excluded.{name}"
            for name, column in zip(quoted, columns, strict=True)
            if column not in keys
        )
        conflict = f"UPDATE SET {changes}" if changes else "NOTHING"
        execute(
            f"INSERT INTO {target} ({names}) "  # noqa: S608  the names are quoted
            f"SELECT DISTINCT ON ({key_names}) {names} FROM pg_temp.{staged} "
            f"ORDER BY {key_names}, {_ORDER} DESC "
            f"ON CONFLICT ({key_names}) DO {conflict}"
        )
