"""The tables that a source reads: the search for them, their choice by settings, and their names.

A query takes the place of a table: the session knows its columns, and reads its rows, under one
name. MariaDB and MySQL have no temporary views. There an empty temporary table has the columns, and
a common table expression of the same name hides it from the statement that reads.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, Inspector, Select, TextClause, inspect, text

from pyconnect_connectors.sql.column_types import MYSQL
from pyconnect_connectors.sql.database import connected, database_errors, open_engine
from pyconnect_connectors.sql.settings import (
    OFFSETS_TABLE,
    SCHEMA,
    WHITELIST,
    SourceSettings,
    sink_config_def,
)

_Place: TypeAlias = tuple[str | None, str]  # schema and table
_PARENTS = text(
    "SELECT cn.nspname, c.relname, pn.nspname, p.relname FROM pg_inherits i"
    " JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace"
    " JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = p.relnamespace"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTables:
    """Tables found: `names` are sorted; `missing` are names of the whitelist without a table.

    `no_schema` is the schema of the config if the database does not have it.
    """

    names: tuple[str, ...]
    missing: tuple[str, ...]
    no_schema: str | None

    @property
    def problem(self) -> tuple[str, str] | None:
        """The first problem, as a pair of a setting and a text, or None."""
        if self.no_schema is not None:
            return SCHEMA, f"The database has no schema {self.no_schema}; it is a name, no pattern"
        if not self.missing:
            return None
        return WHITELIST, (
            f"The database has no table or view {', '.join(self.missing)}; a name is compared "
            "letter by letter, and schema.table names one of another schema"
        )


def found_tables(settings: SourceSettings) -> FoundTables:
    """Return the tables to read: all that the lists allow, and views that the whitelist names.

    The table of a sink's offsets is read only if the whitelist names it.
    A partition or child of PostgreSQL is left out when its parent is read, which has its rows.
    """
    engine = open_engine(settings.connection, writes=False)
    with database_errors("Cannot list the tables"), connected(engine) as connection:
        inspector = inspect(connection)
        names = set(inspector.get_table_names(schema=settings.schema))
        if not settings.whitelist:
            names.discard(str(sink_config_def().keys[OFFSETS_TABLE].default))
        further = settings.whitelist - names
        places = {name: place_of(inspector, name, settings.schema) for name in further}
        found = {n for n, (at, name) in places.items() if inspector.has_table(name, schema=at)}
        chosen = {
            name
            for name in names | found
            if (not settings.whitelist or name in settings.whitelist)
            and name not in settings.blacklist
            and (not settings.include or any(re.fullmatch(p, name) for p in settings.include))
            and not any(re.fullmatch(pattern, name) for pattern in settings.exclude)
        }
        if connection.dialect.name == "postgresql":
            chosen -= _parts(connection, inspector, chosen, settings.schema)
        schema = settings.schema
        lacks_schema = schema is not None and schema not in inspector.get_schema_names()
    return FoundTables(
        names=tuple(sorted(chosen)),
        missing=tuple(sorted(further - found)),
        no_schema=schema if lacks_schema else None,
    )


def place_of(inspector: Inspector, name: str, schema: str | None) -> tuple[str | None, str]:
    """Return the schema and the table that a name means; a table's own name may have a point."""
    if "." not in name or inspector.has_table(name, schema=schema):
        return schema, name
    other, _, table = name.rpartition(".")
    return other, table


def _parts(
    connection: Connection, inspector: Inspector, names: Iterable[str], schema: str | None
) -> set[str]:
    """Return those names whose rows belong to the table of another name too."""
    parents: defaultdict[_Place, set[_Place]] = defaultdict(set)
    for child_schema, child, parent_schema, parent in connection.execute(_PARENTS):
        parents[child_schema, child].add((parent_schema, parent))
    places: dict[str, _Place] = {}
    for name in names:
        place, table = place_of(inspector, name, schema)
        places[name] = (place or inspector.default_schema_name, table)
    chosen = set(places.values())
    parts = set()
    for name, found in places.items():
        above = parents[found]
        while above and not above & chosen:
            above = {each for parent in above for each in parents[parent]}
        if above:
            parts.add(name)
    return parts


QUERY_VIEW = "pyconnect_query"


def describe_query(connection: Connection, query: str) -> None:
    """Make the columns of a query known to the session under QUERY_VIEW."""
    if connection.dialect.name in MYSQL:
        statement = f"CREATE TEMPORARY TABLE {QUERY_VIEW} SELECT * FROM ({_inner(query)}) q LIMIT 0"  # noqa: S608  the user's own
    else:
        statement = f"CREATE TEMPORARY VIEW {QUERY_VIEW} AS {query}"
    connection.execute(_plain(statement))
    connection.commit()


def with_rows_of(connection: Connection, query: str, select: Select[Any]) -> Select[Any]:
    """Return a select of QUERY_VIEW that reads the rows of the query."""
    if connection.dialect.name in MYSQL:
        return select.add_cte(_plain(_inner(query)).columns().cte(QUERY_VIEW))
    return select


def _inner(query: str) -> str:
    """Return a query that can stand in brackets: it may end with a comment."""
    return query.rstrip().rstrip(";") + "\n"


def _plain(statement: str) -> TextClause:
    """Return a statement without parameters, in which colons are literal."""
    return text(statement.replace(":", "\\:"))
