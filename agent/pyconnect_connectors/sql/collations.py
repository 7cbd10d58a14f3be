"""Collations: which columns take different texts for equal.

Keys and names are compared letter by letter. A collation that ignores case, accents or spaces at
the end makes one row of two keys, and one offset of two connectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Table, types
from sqlalchemy.dialects.postgresql import CITEXT

from pyconnect_connectors.sql.column_types import MYSQL, pragma

_TELLS_APART = re.compile(r"binary|.*_nopad_bin|utf8mb4_0900_bin")
_POSTGRES = (
    "SELECT attname, collname FROM pg_attribute JOIN pg_collation l ON l.oid = attcollation"
    " WHERE attrelid = %s::regclass AND attnum > 0 AND NOT collisdeterministic"
)


def folding_columns(
    connection: Connection, table: Table, names: Sequence[str]
) -> Mapping[str, str]:
    """Return the columns of text in which different texts are equal, with their collations."""
    texts = [
        column
        for column in table.columns
        if column.name in names and isinstance(column.type, types.String)
    ]
    if not texts:
        return {}
    if connection.dialect.name in MYSQL:
        found = {c.name: str(getattr(c.type, "collation", None) or "") for c in texts}
        unknown = [name for name, collation in found.items() if not collation]
        if unknown:
            # SHOW CREATE TABLE leaves out the table's own collation.
            found |= _mysql_collations(connection, table, unknown)
        return {n: collation for n, collation in found.items() if not tells_apart(collation)}
    if connection.dialect.name == "postgresql":
        quoted = connection.dialect.identifier_preparer.format_table(table).replace("%%", "%")
        rows = connection.exec_driver_sql(_POSTGRES, (quoted,))
        found = {column.name: "citext" for column in texts if isinstance(column.type, CITEXT)}
        return found | {n: collation for n, collation in rows if n in {c.name for c in texts}}
    if connection.dialect.name == "sqlite":
        return _sqlite_collations(connection, table, {column.name for column in texts})
    return {}


def tells_apart(collation: str) -> bool:
    """Return whether a collation of MariaDB or MySQL tells all texts apart."""
    return _TELLS_APART.fullmatch(collation) is not None


def _mysql_collations(
    connection: Connection, table: Table, names: Sequence[str]
) -> Mapping[str, str]:
    quoted = connection.dialect.identifier_preparer.format_table(table)
    rows = connection.exec_driver_sql(f"SHOW FULL COLUMNS FROM {quoted}").mappings()
    return {row["Field"]: row["Collation"] for row in rows if row["Field"] in names}


def _sqlite_collations(connection: Connection, table: Table, names: set[str]) -> Mapping[str, str]:
    return {
        part["name"]: part["coll"]
        for index in pragma(connection, table.schema, "index_list", table.name)
        for part in pragma(connection, table.schema, "index_xinfo", index["name"])
        if index["unique"] and part["name"] in names and part["coll"] != "BINARY"
    }
