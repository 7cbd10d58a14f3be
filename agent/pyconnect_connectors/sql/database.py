"""Connections to a database, and its errors as Connect's.

The text of an error is the first line of the database's own message, which names tables, columns
and constraints, without the values of rows and parameters.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from operator import methodcaller
from typing import Any

from sqlalchemy import Connection as DatabaseConnection
from sqlalchemy import Engine, Table, create_engine, event, exc, func, inspect, make_url, select
from sqlalchemy.pool import NullPool

from pyconnect_api import ConfigException, ConnectException, RetriableException
from pyconnect_connectors.sql.settings import Connection
from pyconnect_connectors.sql.sqlite_times import add_functions

CONNECT_TIMEOUT_S = 10
IDLE_IN_TRANSACTION_MS = 30_000
"""After this time the database ends the session of a sink that is frozen in a transaction."""
LOCK_TIMEOUT_MS = 60_000
"""Longer than `IDLE_IN_TRANSACTION_MS`: a successor gets the locks of a frozen predecessor."""
_MYSQL_PASSING = frozenset(
    # Too many connections, shutdown, network; locks, deadlocks, changed rows; killed, timed out;
    # read-only during a failover; the client's own: no connection, lost, out of order.
    {1040, 1053, *range(1156, 1162), 1020, 1205, 1213, 1317, 1927, 1969, 1290, 1836}
    | {0, 2002, 2003, 2006, 2013, 2014, 2055}
)
_VALUES = (
    # PostgreSQL: invalid input syntax for type integer: "5x"; value "9" is out of range
    (re.compile(r': ".*"', re.DOTALL), ": (hidden)"),
    (re.compile(r'value ".*" is', re.DOTALL), "value (hidden) is"),
    (re.compile(r'^".*" is not a valid', re.DOTALL), "(hidden) is not a valid"),
    (re.compile(r'near ".*"', re.DOTALL), "near (hidden)"),
    # MariaDB: Duplicate entry '5' for key 'PRIMARY'; Incorrect integer value: '5x' for column
    (re.compile(r"(entry|value:?) '.*'(?= for )", re.DOTALL), r"\1 (hidden)"),
    (re.compile(r"(value:?) '.*'", re.DOTALL), r"\1 (hidden)"),
)
"""The parts of database messages that contain values of rows."""
_POSTGRES_PASSING = frozenset({"25006", "25P03", "25P04"})
"""The session is read-only during a failover, or the database ended it because it did nothing, or
because its transaction took too long. Drivers raise InternalError for these codes.
"""
_POSTGRES_LIMITS = "54"
"""The class of limits such as that of 1600 columns; drivers raise OperationalError for them."""
_POSTGRES_ROW_CLASSES = frozenset({"22", "23", "44"})
"""Classes of data exceptions, constraints, and the check options of views."""
_POSTGRES_ROWS = frozenset({"42804", "42846", "54000", "P0001"})
"""A value of another type than the column's, a row that is too large, a trigger's own error."""
_POSTGRES_TEXTS = frozenset({"42601", "42602", "XX000"})
"""Errors of a statement's syntax, of a name, and internal ones. Types such as TSQUERY, JSONPATH and
HSTORE also raise them for a text that is not valid.
"""
_POSTGRES_VALUE = re.compile(r"\$\d+ = |^COPY .+, .+, .+: \"")
"""The context of an error of a value: a parameter, or a column of COPY."""
_MYSQL_ROWS = frozenset(
    # Null, unknown value of a column, too long, wrong value, out of range, wrong text; partitions;
    # constraints; a trigger's or function's own error; a row or packet that is too large.
    {1048, 1062, 1118, 1136, 1138, 1216, 1217, 1264, 1265, 1292, 1364, 1366, 1367, 1369, 1406}
    | {1411, 1416, 1451, 1452, 1526, 1644, 1690, 1748, 3819, 4025, 4031, 4079}
)
_STRICT = (
    "STRICT_ALL_TABLES,STRICT_TRANS_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,"
    # Without the last mode, 0 in an AUTO_INCREMENT column would become its next number.
    "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
)
_LIBPQ_ARGUMENTS = {
    "connect_timeout": CONNECT_TIMEOUT_S,
    # A server that vanished without closing the connection is noticed within half a minute, also
    # in the middle of COPY. The system's defaults are hours.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
    "client_encoding": "utf8",
}
_DRIVER_ARGUMENTS: Mapping[str, Mapping[str, object]] = {
    "psycopg": _LIBPQ_ARGUMENTS,
    "psycopg2": _LIBPQ_ARGUMENTS,
    "pymysql": {"connect_timeout": CONNECT_TIMEOUT_S},
    "pysqlite": {"timeout": CONNECT_TIMEOUT_S},
}


def open_engine(settings: Connection, *, writes: bool) -> Engine:
    """Return an engine that keeps no connections; ConfigException for a URL that is not usable.

    `writes` limits how long a session may hold locks without doing anything.
    """
    try:
        url = make_url(settings.url)
        if settings.user is not None:
            url = url.set(username=settings.user)
        if settings.password is not None:
            url = url.set(password=settings.password.value)
        if url.get_driver_name() in ("pymysql", "mysqldb"):
            # With another charset the server would replace letters that the charset lacks.
            url = url.update_query_dict({"charset": "utf8mb4"})
        arguments = _DRIVER_ARGUMENTS.get(url.get_driver_name(), {})
        engine = create_engine(
            url,
            poolclass=NullPool,
            hide_parameters=True,
            # Arguments in the URL take precedence.
            connect_args={name: v for name, v in arguments.items() if name not in url.query},
        )
    except (exc.ArgumentError, exc.NoSuchModuleError, ValueError):
        # The library's error may repeat the URL, which may hold a password.
        if settings.url.lstrip().lower().startswith("sqlite"):
            raise ConfigException(
                "connection.url is not that of a SQLite file, which has no host, user or password;"
                " example: sqlite:////path/file.db"
            ) from None
        raise ConfigException(
            "connection.url is not a SQLAlchemy URL of a known database; "
            "examples: sqlite:////path/file.db, postgresql+psycopg://host/database"
        ) from None
    except ModuleNotFoundError as error:
        raise ConfigException(
            f"The driver {error.name} of connection.url is not installed; install that package "
            "beside the worker, or name another driver in the URL"
        ) from error
    statements = _session_statements(engine.dialect.name, writes=writes)
    if statements:
        # The statements run before SQLAlchemy asks the session, for example, how it quotes names.
        @event.listens_for(engine, "connect", insert=True)
        def prepare(dbapi_connection: Any, _record: object) -> None:  # the driver's own class
            with closing(dbapi_connection.cursor()) as cursor:
                for statement in statements:
                    cursor.execute(statement)
            dbapi_connection.commit()

    if writes and url.get_driver_name() == "pymysql":
        event.listen(engine, "connect", _refuse_large_statements)

    if engine.dialect.name == "sqlite":

        @event.listens_for(engine, "connect")
        def prepare_file(dbapi_connection: Any, _record: object) -> None:  # the driver's own class
            add_functions(dbapi_connection)
            # A text that is not UTF-8 must fail its row, not the query.
            dbapi_connection.text_factory = methodcaller("decode", "utf-8", "surrogateescape")

    return engine


def _refuse_large_statements(dbapi_connection: Any, _record: object) -> None:
    """Have the driver raise error 1153: the server would only end the connection."""
    with closing(dbapi_connection.cursor()) as cursor:
        cursor.execute("SELECT @@max_allowed_packet")
        (most_bytes,) = cursor.fetchone()
    send, too_large = dbapi_connection.query, dbapi_connection.DataError

    def query(sql: str | bytes, unbuffered: bool = False) -> object:
        # A character has four bytes at most.
        if 4 * len(sql) >= most_bytes:
            sql = sql if isinstance(sql, bytes) else sql.encode("utf-8", "surrogateescape")
            if len(sql) >= most_bytes:
                raise too_large(1153, f"{len(sql)} bytes; max_allowed_packet is {most_bytes}")
        return send(sql, unbuffered)

    dbapi_connection.query = query


def _session_statements(dialect: str, *, writes: bool) -> tuple[str, ...]:
    """Return the statements that set up a session, independent of defaults of server and user."""
    if dialect == "postgresql":
        forms = (
            "SET TIME ZONE 'UTC'",
            "SET DateStyle = 'ISO, YMD'",
            "SET IntervalStyle = 'postgres'",
            "SET bytea_output = 'hex'",
            "SET extra_float_digits = 3",
            "SET lc_monetary = 'C'",
        )
        limits = (
            f"SET idle_in_transaction_session_timeout = {IDLE_IN_TRANSACTION_MS}",
            f"SET lock_timeout = {LOCK_TIMEOUT_MS}",
        )
        return forms + limits if writes else forms
    if dialect in ("mysql", "mariadb"):
        strict = (
            "SET time_zone = '+00:00'",
            "SET NAMES utf8mb4",
            # Strict: a value that does not fit is an error, and is not cut.
            f"SET SESSION sql_mode = '{_STRICT}'",
        )
        seconds = LOCK_TIMEOUT_MS // 1000
        waits = (
            f"SET SESSION innodb_lock_wait_timeout = {seconds}",
            f"SET SESSION lock_wait_timeout = {seconds}",
        )
        return strict + waits if writes else strict
    return ()


def connected(engine: Engine) -> DatabaseConnection:
    """Return a new connection; RetriableException or ConnectException if that fails."""
    settings = "connection.url, connection.user, connection.password"
    with database_errors(f"Cannot connect to the database ({settings})"):
        return engine.connect()


@contextmanager
def driver_cursor(connection: DatabaseConnection) -> Iterator[Any]:  # of the driver's own class
    """Yield a cursor of the driver in the same transaction; its errors become SQLAlchemy's."""
    driver: Any = connection.connection.driver_connection
    base: type[Exception] = connection.dialect.loaded_dbapi.Error
    try:
        with closing(driver.cursor()) as cursor:
            yield cursor
    except base as error:
        raise exc.DBAPIError.instance(None, None, error, base, dialect=connection.dialect) from None


@contextmanager
def database_errors(action: str) -> Iterator[None]:
    """Raise the database's errors as RetriableException or ConnectException."""
    try:
        yield
    except exc.NoSuchTableError as error:
        raise ConnectException(f"{action}: there is no table {error}") from error
    except exc.DBAPIError as error:
        text = f"{action}: {reason(error)}"
        # The cause's text may hold values of rows.
        raise (RetriableException if may_pass(error) else ConnectException)(text) from None
    except exc.SQLAlchemyError as error:
        raise ConnectException(f"{action}: {type(error).__name__}") from error


def reason(error: exc.DBAPIError) -> str:
    """Return the first line of the database's message, without values of rows."""
    text = str(error.orig)
    if isinstance(_mysql_code(error), int):
        text = str(error.orig.args[-1]) if error.orig is not None else text
    for pattern, hidden in _VALUES:
        text = pattern.sub(hidden, text)
    lines = text.strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__


def may_pass(error: exc.DBAPIError) -> bool:
    """Return whether the same call may succeed later."""
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_CANTOPEN)
    number = _mysql_code(error)
    if number is not None:
        return error.connection_invalidated or number in _MYSQL_PASSING
    code = str(_postgres_code(error) or "")
    if code.startswith(_POSTGRES_LIMITS):
        return False
    return (
        error.connection_invalidated
        or isinstance(error, exc.OperationalError | exc.InterfaceError)
        or code in _POSTGRES_PASSING
    )


def concerns_table(error: exc.DBAPIError) -> bool:
    """Return whether a table may have been dropped or changed since it was reflected."""
    is_gone = isinstance(error.orig, sqlite3.OperationalError) and re.match(
        r"no such table|table .* has no column", str(error.orig), re.DOTALL
    )
    unknown_column = 1054
    return bool(
        isinstance(error, exc.ProgrammingError) or is_gone or _mysql_code(error) == unknown_column
    )


def concerns_row(error: exc.DBAPIError) -> bool:
    """Return whether the database refused a row's values, so that other rows may be written.

    False for errors of the connection, of rights, or of a missing table.
    """
    number = _mysql_code(error)
    if number is not None:
        return isinstance(error, exc.DataError | exc.IntegrityError) or number in _MYSQL_ROWS
    state = _postgres_code(error)
    if state in _POSTGRES_TEXTS:
        context = getattr(getattr(error.orig, "diag", None), "context", None)
        return _POSTGRES_VALUE.search(context or "") is not None
    if state is not None:
        return str(state)[:2] in _POSTGRES_ROW_CLASSES or state in _POSTGRES_ROWS
    return not may_pass(error) and isinstance(error, exc.DataError | exc.IntegrityError)


def _mysql_code(error: exc.DBAPIError) -> int | None:
    """Return the number of an error of MariaDB or MySQL, None for other databases.

    Their drivers raise OperationalError also for lasting errors, such as a broken constraint.
    """
    original = error.orig
    if original is None or "mysql" not in type(original).__module__:
        return None
    number = original.args[0] if original.args else None
    return number if isinstance(number, int) else None


def _postgres_code(error: exc.DBAPIError) -> object:
    """Return the SQLSTATE of an error of PostgreSQL, None for other databases."""
    original: Any = error.orig
    return getattr(original, "sqlstate", None) or getattr(original, "pgcode", None)


def abandon(connection: DatabaseConnection) -> None:
    """Close a connection without reading the remaining rows of its query.

    PyMySQL would read all of them to close the cursor.
    """
    with suppress(exc.SQLAlchemyError):
        driver: Any = connection.connection.driver_connection
        result = getattr(driver, "_result", None)
        if result is not None and hasattr(result, "unbuffered_active"):
            result.unbuffered_active = False
    connection.invalidate()
    connection.close()


def create_once(connection: DatabaseConnection, table: Table) -> None:
    """Create a table unless it exists; another task may create it at the same time."""
    try:
        with connection.begin():
            table.create(connection, checkfirst=True)
    except exc.DBAPIError:
        with connection.begin():
            if not inspect(connection).has_table(table.name, schema=table.schema):
                raise


def database_time(connection: DatabaseConnection) -> datetime:
    """Return the database's time, with a time zone."""
    dialect = connection.dialect.name
    if dialect in ("mysql", "mariadb"):
        now = connection.scalar(select(func.utc_timestamp(6)))
    else:
        now = connection.scalar(select(func.current_timestamp()))
    if isinstance(now, str):
        now = datetime.fromisoformat(now)
    assert isinstance(now, datetime)
    return now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)
