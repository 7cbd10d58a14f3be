"""The tables that SqlSink writes: it finds them, creates them, and adds columns.

Keys and names are compared letter by letter. A collation that ignores case, accents or spaces at
the end makes one row of two keys, and one offset of two connectors.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Dialect, MetaData, Table, inspect, types
from sqlalchemy.dialects.postgresql import CITEXT
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateColumn

from pyconnect_api import ConnectException, RetriableException, Schema
from pyconnect_connectors.connectors import GUARANTEE
from pyconnect_connectors.sql.column_types import (
    MYSQL,
    column_type,
    is_unknown,
    pragma,
    reflected,
    regclass,
)
from pyconnect_connectors.sql.database import create_once
from pyconnect_connectors.sql.settings import (
    AUTO_CREATE,
    AUTO_EVOLVE,
    FOLDING_KEYS,
    PK_FIELDS,
    TABLE_FORMAT,
    FoldingKeys,
    InsertMode,
    SinkSettings,
)

# Collations of MariaDB or MySQL that distinguish all texts.
_TELLS_APART = re.compile(r"binary|.*_nopad_bin|utf8mb4_0900_bin")
_POSTGRES_COLLATIONS = (
    "SELECT attname, collname FROM pg_attribute JOIN pg_collation l ON l.oid = attcollation"
    " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT collisdeterministic"
)


def folding_columns(
    connection: Connection, table: Table, names: Sequence[str]
) -> Mapping[str, str]:
    """Return the columns of text that treat different texts as equal, with their collations."""
    texts = [
        column
        for column in table.columns
        if column.name in names and isinstance(column.type, types.String)
    ]
    if not texts:
        return {}
    wanted = {column.name for column in texts}
    if connection.dialect.name in MYSQL:
        found = {c.name: str(getattr(c.type, "collation", None) or "") for c in texts}
        unknown = [name for name, collation in found.items() if not collation]
        if unknown:
            # SHOW CREATE TABLE leaves out the table's own collation, so this asks for it.
            quoted = connection.dialect.identifier_preparer.format_table(table)
            rows = connection.exec_driver_sql(f"SHOW FULL COLUMNS FROM {quoted}").mappings()
            found |= {row["Field"]: row["Collation"] for row in rows if row["Field"] in unknown}
        return {
            n: collation for n, collation in found.items() if not _TELLS_APART.fullmatch(collation)
        }
    if connection.dialect.name == "postgresql":
        described = connection.exec_driver_sql(_POSTGRES_COLLATIONS, regclass(connection, table))
        found = {column.name: "citext" for column in texts if isinstance(column.type, CITEXT)}
        return found | {n: collation for n, collation in described if n in wanted}
    if connection.dialect.name == "sqlite":
        return {
            part["name"]: part["coll"]
            for index in pragma(connection, table.schema, "index_list", table.name)
            for part in pragma(connection, table.schema, "index_xinfo", index["name"])
            if index["unique"] and part["name"] in wanted and part["coll"] != "BINARY"
        }
    return {}


LONGEST_NAME_BYTES = 63
_POSTGRES_COPIED = (
    "SELECT relkind IN ('r', 'p', 'f') AND NOT relhasrules AND NOT row_security_active(oid)"
    " FROM pg_class WHERE oid = %s::regclass"
)
"""Whether COPY writes as INSERT does: it does not write views, or follow rules and policies."""
_POSTGRES_UNKNOWN = (
    "SELECT attname, format_type(atttypid, atttypmod),"
    " coalesce(e.typtype, t.typtype) IN ('c', 'r', 'm') OR coalesce(e.typtype = 'd', false)"
    " OR coalesce(e.typcategory, t.typcategory) = 'G'"
    " AND t.typnamespace = 'pg_catalog'::regnamespace"
    " FROM pg_attribute JOIN pg_type t ON t.oid = atttypid"
    " LEFT JOIN pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem"
    " WHERE attrelid = %s::regclass AND attname = ANY (%s)"
)
_POSTGRES_FORM = (
    "SELECT attnum, attname, atttypid, atttypmod, attcollation, attnotnull FROM pg_attribute"
    " WHERE attrelid = to_regclass(%s) AND attnum > 0 ORDER BY attnum"
)
_MYSQL_FORM = (
    "SELECT column_name, column_type, collation_name, is_nullable FROM information_schema.columns"
    " WHERE table_schema = coalesce(%s, database()) AND table_name = %s ORDER BY ordinal_position"
)
_WITHOUT_TRANSACTIONS = frozenset({"myisam", "aria", "memory", "csv", "archive"})


def table_name(table_format: str, topic: str) -> tuple[str | None, str]:
    """Return the schema, None for the connection's own, and the name of a topic's table."""
    name = table_format.replace("${topic}", topic)
    if "." in table_format:
        schema, _, table = name.partition(".")
        return schema, table
    return None, name


class TableChanged(RetriableException):
    """A table has changed since its rows were made; the task repeats the write."""


class TargetTables:
    """Reflected tables by topic, kept until a topic needs a column that is missing."""

    def __init__(self, settings: SinkSettings) -> None:
        self._settings = settings
        self._tables: dict[str, Table] = {}
        self._forms: dict[str, object] = {}

    def forget(self) -> None:
        """Have each table reflected again: another client may have changed it."""
        self._tables.clear()

    def check(self, connection: Connection, topics: Iterable[str | None]) -> None:
        """Raise TableChanged if a table is not as it was when it was reflected.

        The check follows the writes of a transaction, whose locks keep the table as it is. The
        database would otherwise round values for a narrower column until the task ends.
        """
        for topic in topics:
            if topic in self._forms and self._forms[topic] != self._form(connection, topic):
                raise TableChanged(f"The table of topic {topic} was changed meanwhile")

    def _form(self, connection: Connection, topic: str) -> object:
        """Return a value that changes with the columns of a topic's table."""
        schema, name = table_name(self._settings.table_format, topic)
        match connection.dialect.name:
            case "postgresql":
                named = regclass(connection, Table(name, MetaData(), schema=schema))
                found = connection.exec_driver_sql(_POSTGRES_FORM, named)
            case "mysql" | "mariadb":
                found = connection.exec_driver_sql(_MYSQL_FORM, (schema, name))
            case "sqlite":
                found = connection.exec_driver_sql("PRAGMA schema_version")
            case _:
                return None
        return found.fetchall()

    def _found(self, connection: Connection, topic: str) -> Table | None:
        self._forms[topic] = self._form(connection, topic)
        return found_table(connection, self._settings, topic)

    def prepared(
        self,
        connection: Connection,
        topic: str,
        columns: Mapping[str, Schema | None],
        keys: Sequence[str],
    ) -> Table:
        """Return the table of a topic with these columns; changes of the table are committed.

        A column's schema is None for values without a schema, which do not create columns.
        """
        table = self._tables.get(topic)
        if table is None or not columns.keys() <= set(table.columns.keys()):
            table = self._found(connection, topic)
            if table is None:
                schema, name = table_name(self._settings.table_format, topic)
                if not self._settings.auto_create:
                    raise ConnectException(
                        f"There is no table {name}; create it, or set {AUTO_CREATE}=true"
                    )
                check_names(connection.dialect, name, *columns)
                made = [
                    _new_column(connection.dialect, column, found, is_key=column in keys)
                    for column, found in columns.items()
                ]
                create_once(connection, Table(name, MetaData(), *made, schema=schema))
                table = self._found(connection, topic)
                assert table is not None
            missing = {n: s for n, s in columns.items() if n not in table.columns}
            if missing:
                self._add_columns(connection, table, missing)
                table = self._found(connection, topic)
                assert table is not None
            refuse_folding(connection, self._settings, table, keys)
            refuse_without_key(connection.dialect, self._settings, table, keys)
            names = {each.fullname for each in self._tables.values()} - {table.fullname}
            check_case(connection.dialect, (*names, table.fullname))
            self._tables[topic] = table
        return table

    def _add_columns(
        self, connection: Connection, table: Table, missing: Mapping[str, Schema | None]
    ) -> None:
        if not self._settings.auto_evolve:
            raise ConnectException(
                f"Table {table.name} lacks the columns {', '.join(missing)}; add them, or set "
                f"{AUTO_EVOLVE}=true"
            )
        check_names(connection.dialect, *missing)
        name = connection.dialect.identifier_preparer.format_table(table)
        for column, schema in missing.items():
            if schema is not None and not schema.optional and schema.default is None:
                raise ConnectException(
                    f"Column {column} cannot be added to table {table.name}: the field is not "
                    "optional and has no default, so that the rows there would have no value"
                )
            added = _new_column(connection.dialect, column, schema, is_key=False, nullable=True)
            clause = CreateColumn(added).compile(dialect=connection.dialect)
            try:
                with connection.begin():
                    connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {clause}")
            except DBAPIError:
                # Another task may have added it at the same time.
                with connection.begin():
                    found = inspect(connection).get_columns(table.name, schema=table.schema)
                if column not in {described["name"] for described in found}:
                    raise


def found_table(connection: Connection, settings: SinkSettings, topic: str) -> Table | None:
    """Return the table of a topic as it is now; raise ConnectException if it cannot be written."""
    schema, name = table_name(settings.table_format, topic)
    exists = inspect(connection).has_table(name, schema=schema)
    table = reflected(connection, name, schema) if exists else None
    if table is not None and connection.dialect.name == "postgresql":
        named = regclass(connection, table)
        table.info["copied"] = connection.exec_driver_sql(_POSTGRES_COPIED, named).scalar()
        unknown = [c.name for c in table.columns if is_unknown(c.type)]
        found = connection.exec_driver_sql(_POSTGRES_UNKNOWN, (*named, unknown)) if unknown else ()
        for column, form, is_strict in found:
            table.columns[column].info["server"] = (form, is_strict)
    connection.rollback()
    if table is None or not settings.exactly_once:
        return table
    for key, engine in table.kwargs.items():
        if key.endswith("_engine") and str(engine).lower() in _WITHOUT_TRANSACTIONS:
            # MariaDB would not roll the table's rows back.
            raise ConnectException(
                f"Table {table.name} has no transactions (engine {engine}), which exactly-once "
                f"delivery needs; convert it to InnoDB, or set {GUARANTEE}=at-least-once"
            )
    return table


def refuse_folding(
    connection: Connection, settings: SinkSettings, table: Table, keys: Sequence[str]
) -> None:
    """Raise ConnectException for a key column in which different texts are equal."""
    if settings.folding_keys is FoldingKeys.ALLOW or not settings.replaces_rows:
        return
    with connection.begin():
        folding = folding_columns(connection, table, keys)
    for column, collation in folding.items():
        raise ConnectException(
            f"Key column {column} of table {table.fullname} takes different texts for equal "
            f"({collation}), so that rows of several keys would become one; give it a binary "
            f"collation without padding, or set {FOLDING_KEYS}=allow"
        )


def refuse_without_key(
    dialect: Dialect, settings: SinkSettings, table: Table, keys: Sequence[str]
) -> None:
    """Raise ConnectException if an upsert would never find a row in a table of MariaDB.

    Other databases refuse the statement. A view has no keys to look at.
    """
    is_table = any(name.endswith("_engine") for name in table.dialect_kwargs)
    if settings.insert_mode is not InsertMode.UPSERT or dialect.name not in MYSQL or not is_table:
        return
    if set(keys) not in _unique_keys(table):
        raise ConnectException(
            f"Table {table.fullname} has no primary or unique key of the columns "
            f"{', '.join(keys)}, so that insert.mode=upsert would add each row again; make one, "
            f"or set {PK_FIELDS}"
        )


def further_keys(table: Table, columns: Iterable[str], keys: Sequence[str]) -> bool:
    """Return whether a new row may meet another one in a unique key other than `keys`.

    A key whose number the database generates does not count.
    """
    numbered = {c.name for c in table.columns if c.autoincrement is True} - set(columns)
    return any(key != set(keys) and not key & numbered for key in _unique_keys(table))


def _unique_keys(table: Table) -> list[set[str]]:
    """Return the columns of each unique key; a key of prefixes of texts also has an empty name."""
    found = [set(table.primary_key.columns.keys())] if table.primary_key.columns else []
    for index in table.indexes:
        if index.unique:
            is_part = any(name.endswith("_length") for name in index.dialect_kwargs)
            found.append({*index.columns.keys(), *([""] if is_part else [])})
    return found


def check_case(dialect: Dialect, names: Iterable[str]) -> None:
    """Raise ConnectException if two names are one table, because the database ignores case."""
    if dialect.name != "sqlite" and not getattr(dialect, "_casing", 0):
        return
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.lower(), name)
        if other != name:
            raise ConnectException(
                f"The tables {other} and {name} are one for this database, which ignores case; "
                f"give their topics other names with a transformation, or set {TABLE_FORMAT}"
            )


def check_names(dialect: Dialect, *names: str) -> None:
    """Raise ConnectException for a name that PostgreSQL would cut, and then not find."""
    for name in names:
        if dialect.name == "postgresql" and len(name.encode()) > LONGEST_NAME_BYTES:
            raise ConnectException(
                f"The name {name} has {len(name.encode())} bytes, and PostgreSQL keeps "
                f"{LONGEST_NAME_BYTES}; set {TABLE_FORMAT} or rename the field with a "
                "transformation"
            )


def _new_column(
    dialect: Dialect, name: str, schema: Schema | None, *, is_key: bool, nullable: bool = False
) -> Column[Any]:
    if schema is None:
        raise ConnectException(
            f"Column {name} cannot be created: the records have no schema that says its type"
        )
    return Column(
        name,
        column_type(schema, dialect, is_key=is_key),
        primary_key=is_key,
        autoincrement=False,
        nullable=not is_key and (nullable or schema.optional),
    )
