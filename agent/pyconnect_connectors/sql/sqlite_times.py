"""Times of SQLite, which has no type for them: texts in any form of ISO 8601, with or without zone.

Texts of the form 2024-06-01 10:00:00, with or without a fraction, are in the order of their times,
so that an index helps. A table with other forms is ordered by instants, which a function of this
module computes.
"""

import sqlite3
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import ColumnElement, Connection, Function, String, Table, and_, func, or_, select

INSTANT = "pyconnect_instant"
_FORM = "-".join(("[0-9]" * 4, "[0-9]" * 2, "[0-9]" * 2)) + " " + ":".join(["[0-9]" * 2] * 3) + "*"
_FRACTION = len("2024-06-01 10:00:00.")


def add_functions(connection: sqlite3.Connection) -> None:
    """Add the SQL function that `instant` calls to a connection."""
    connection.create_function(
        INSTANT, 2, lambda time, zone: instant_text(time, ZoneInfo(zone)), deterministic=True
    )


def begun_version(connection: Connection) -> object:
    """Begin a transaction, in which the file does not change, and return the file's version.

    The version stays the same until another connection changes the file.
    """
    driver: Any = connection.connection.driver_connection
    if not driver.in_transaction:
        connection.exec_driver_sql("BEGIN")
    return connection.exec_driver_sql("PRAGMA data_version").scalar()


def instant_text(value: object, zone: ZoneInfo) -> str | None:
    """Return a time as a text in UTC, in the order of instants; None if it is not a time.

    `zone` is that of times without one.
    """
    try:
        moment = datetime.fromisoformat(value)  # type: ignore[arg-type]  # of any class
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(UTC).isoformat(" ", "microseconds")
    except (TypeError, ValueError, OverflowError):
        return None


def instant(time: ColumnElement[Any], zone: ZoneInfo) -> ColumnElement[Any]:
    """Return the SQL expression that calls `instant_text`."""
    return Function(INSTANT, time, zone.key, type_=String())


def is_ordered(time: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition that a text has the form in which texts sort as times do."""
    return and_(
        func.typeof(time) == "text",
        time.op("GLOB")(_FORM),
        func.substr(time, _FRACTION, 1).in_(("", ".")),
        func.ltrim(func.substr(time, _FRACTION + 1), "0123456789") == "",
    )


def other_forms(
    connection: Connection, table: Table, time: ColumnElement[Any], zone: ZoneInfo
) -> tuple[bool, dict[str, object] | None]:
    """Return whether times of other forms exist, and the key of a row whose value is not a time.

    The key is None if there is no such row, and empty if the table has no primary key.
    """
    found = or_(time.is_(None), is_ordered(time))
    others = select(func.count()).select_from(table).where(~found)
    if not connection.scalar(others):
        return False, None
    keys = list(table.primary_key)
    odd = connection.execute(
        select(*keys, time).where(~found, instant(time, zone).is_(None)).limit(1)
    ).first()
    if odd is None:
        return True, None
    return True, {column.name: value for column, value in zip(keys, odd, strict=False)}
