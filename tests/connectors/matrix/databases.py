"""The databases of the matrix, for preparing tables and looking at results."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Protocol

from tests.connectors.matrix.columns import Cell, Column, Kind
from tests.connectors.matrix.meanings import of_python, of_text
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

Rows = list[dict[str, object]]
"""The meanings of a table's rows by column, in the order of `id` (a text if CSV was read)."""


class Database(Protocol):
    """One database; names of tables need no quotes."""

    @property
    def name(self) -> str: ...

    natural: ClassVar[Mapping[Kind, str]]
    """Types of columns that hold the values of JSON without a schema."""

    def close(self) -> None: ...
    def settings(self) -> dict[str, str]: ...
    def execute(self, *statements: str) -> None: ...
    def read(self, table: str, kinds: Mapping[str, Kind]) -> Rows: ...
    def change(self, table: str, column: str, row: int, value: object) -> None:
        """Change a value in the row of an `id`."""


def grid(cells: Sequence[Cell]) -> list[tuple[Column, list[Cell]]]:
    """Return the cells of each column."""
    found: dict[str, tuple[Column, list[Cell]]] = {}
    for cell in cells:
        found.setdefault(cell.column.type, (cell.column, []))[1].append(cell)
    return list(found.values())


def quoted(database: Database, name: str) -> str:
    return f"`{name}`" if database.name == "MariaDB" else f'"{name}"'


def fill(database: Database, table: str, cells: Sequence[Cell]) -> None:
    """Create a table with a column for each type, and a row for each number of a value."""
    columns = grid(cells)
    define(database, table, {column.name: column.type for column, _ in columns})
    quote = lambda name: quoted(database, name)  # noqa: E731
    for row in range(max(len(found) for _, found in columns)):
        present = [(c, found[row]) for c, found in columns if row < len(found)]
        names = ", ".join(["id", *(quote(c.name) for c, _ in present)])
        values = ", ".join([str(row), *(str(cell.value.given) for _, cell in present)])
        database.execute(f"INSERT INTO {quote(table)} ({names}) VALUES ({values})")


def define(database: Database, table: str, types: Mapping[str, str]) -> None:
    quote = lambda name: quoted(database, name)  # noqa: E731
    # MariaDB gives a timestamp without NULL a default of its own.
    null = " NULL" if database.name == "MariaDB" else ""
    columns = "".join(
        f", {quote(name)} {type_}{'' if 'CHECK' in type_ or 'NULL' in type_ else null}"
        for name, type_ in types.items()
    )
    database.execute(
        f"DROP TABLE IF EXISTS {quote(table)}",
        f"CREATE TABLE {quote(table)} (id integer NOT NULL PRIMARY KEY{columns})",
    )


class Postgres:
    """A PostgreSQL database of its own; texts are those of the server's output functions."""

    name = "PostgreSQL"
    natural: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOL: "boolean",
        Kind.INT: "bigint",
        Kind.FLOAT64: "double precision",
        Kind.FLOAT32: "double precision",
        Kind.TEXT: "text",
        Kind.JSON: "jsonb",
        Kind.DECIMAL: "text",
        Kind.NUMBER: "numeric",
    }

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._database = server.new_database()
        self._connection = server.connect(self._database)
        self.execute("SET TIME ZONE 'UTC'")

    def close(self) -> None:
        self._connection.close()

    def settings(self) -> dict[str, str]:
        return self._server.settings(self._database)

    def execute(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement.encode())

    def read(self, table: str, kinds: Mapping[str, Kind]) -> Rows:
        # The output functions keep the spaces of char(n), which a cast to text would cut.
        names = ", ".join(f'"{name}"' for name in kinds)
        statement = f'SELECT {names} FROM "{table}" ORDER BY CAST(id AS integer)'.encode()
        result = self._connection.execute(statement).pgresult
        assert result is not None
        raw = [[result.get_value(r, c) for c in range(len(kinds))] for r in range(result.ntuples)]
        texts = [[None if v is None else v.decode() for v in row] for row in raw]
        return _meant(texts, kinds)

    def change(self, table: str, column: str, row: int, value: object) -> None:
        instant = value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
        statement = f'UPDATE "{table}" SET "{column}" = %s WHERE id = %s'
        self._connection.execute(statement.encode(), [instant, row])


class MariaDb:
    """A MariaDB database of its own in utf8mb4, with a session that takes zero dates."""

    name = "MariaDB"
    natural: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOL: "boolean",
        Kind.INT: "bigint",
        Kind.FLOAT64: "double",
        Kind.FLOAT32: "double",
        Kind.TEXT: "longtext",
        Kind.JSON: "json",
        Kind.DECIMAL: "longtext",
        Kind.NUMBER: "decimal(65,30)",
    }

    def __init__(self, server: MariaDbServer) -> None:
        self._server = server
        self._database = server.new_database()
        self._connection = server.connect(self._database)
        self.execute(
            f"ALTER DATABASE `{self._database}` CHARACTER SET utf8mb4",
            "SET SESSION sql_mode = 'ALLOW_INVALID_DATES,STRICT_ALL_TABLES'",
            "SET NAMES utf8mb4",
        )

    def close(self) -> None:
        self._connection.close()

    def settings(self) -> dict[str, str]:
        return self._server.settings(self._database)

    def execute(self, *statements: str) -> None:
        with self._connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def read(self, table: str, kinds: Mapping[str, Kind]) -> Rows:
        texts = ", ".join(_maria_text(name, kind) for name, kind in kinds.items())
        with self._connection.cursor() as cursor:
            cursor.execute(f"SELECT {texts} FROM `{table}` ORDER BY CAST(id AS SIGNED)")
            return _meant(cursor.fetchall(), kinds)

    def change(self, table: str, column: str, row: int, value: object) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(f"UPDATE `{table}` SET `{column}` = %s WHERE id = %s", (value, row))


def _maria_text(name: str, kind: Kind) -> str:
    match kind:
        case Kind.BYTES:
            return f"HEX(`{name}`)"
        case Kind.FLOAT32:
            # The text of a FLOAT has only six digits.
            return f"CAST(CAST(`{name}` AS DOUBLE) AS CHAR)"
    return f"CONVERT(`{name}` USING utf8mb4)"


class Sqlite:
    """A SQLite file; values have the driver's classes, which are those that are stored."""

    name = "SQLite"
    natural: ClassVar[Mapping[Kind, str]] = {
        Kind.BOOL: "BOOLEAN",
        Kind.INT: "INTEGER",
        Kind.FLOAT64: "REAL",
        Kind.FLOAT32: "REAL",
        Kind.TEXT: "TEXT",
        Kind.JSON: "TEXT",
        Kind.DECIMAL: "TEXT",
        Kind.NUMBER: "TEXT",
    }

    def __init__(self, file: Path) -> None:
        self._file = file

    def close(self) -> None:
        """Do nothing: each use has a connection of its own."""

    def settings(self) -> dict[str, str]:
        return {"connection.url": f"sqlite:///{self._file}"}

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._file, isolation_level=None)) as connection:
            connection.text_factory = lambda found: found.decode("utf-8", "surrogateescape")
            yield connection

    def execute(self, *statements: str) -> None:
        with self._connected() as connection:
            for statement in statements:
                connection.execute(statement)

    def read(self, table: str, kinds: Mapping[str, Kind]) -> Rows:
        names = ", ".join(f'"{name}"' for name in kinds)
        with self._connected() as connection:
            found = connection.execute(
                f'SELECT {names} FROM "{table}" ORDER BY CAST(id AS integer)'
            ).fetchall()
        return [
            {name: of_python(kinds[name], value) for name, value in zip(kinds, row, strict=True)}
            for row in found
        ]

    def change(self, table: str, column: str, row: int, value: object) -> None:
        # The texts are in the form that the sink writes.
        stored = f"{value}" if isinstance(value, datetime | date | time | Decimal) else value
        with self._connected() as connection:
            connection.execute(f'UPDATE "{table}" SET "{column}" = ? WHERE id = ?', (stored, row))


def _meant(rows: Sequence[Sequence[Any]], kinds: Mapping[str, Kind]) -> Rows:
    return [
        {
            name: None if text is None else of_text(kinds[name], text)
            for name, text in zip(kinds, row, strict=True)
        }
        for row in rows
    ]
