"""A query in place of a table: its columns are reflected, its rows are read, under one name.

MariaDB and MySQL have no temporary views. There an empty temporary table has the columns, and a
common table expression of the same name hides it from the statement that reads.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, TextClause, text

QUERY_VIEW = "pyconnect_query"
_WITHOUT_VIEWS = frozenset({"mariadb", "mysql"})


def describe_query(connection: Connection, query: str) -> None:
    """Make the columns of a query known to the session under QUERY_VIEW."""
    if connection.dialect.name in _WITHOUT_VIEWS:
        statement = f"CREATE TEMPORARY TABLE {QUERY_VIEW} SELECT * FROM ({_inner(query)}) q LIMIT 0"  # noqa: S608  the user's own
    else:
        statement = f"CREATE TEMPORARY VIEW {QUERY_VIEW} AS {query}"
    connection.execute(_plain(statement))
    connection.commit()


def with_rows_of(connection: Connection, query: str, select: Select[Any]) -> Select[Any]:
    """Return a select of QUERY_VIEW as one that reads the rows of the query."""
    if connection.dialect.name in _WITHOUT_VIEWS:
        return select.add_cte(_plain(_inner(query)).columns().cte(QUERY_VIEW))
    return select


def _inner(query: str) -> str:
    """Return a query that may stand in brackets: a comment may be its end."""
    return query.rstrip().rstrip(";") + "\n"


def _plain(statement: str) -> TextClause:
    """Return a statement without parameters: colons are part of it."""
    return text(statement.replace(":", "\\:"))
