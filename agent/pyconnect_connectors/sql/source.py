"""SqlSource: tables of a database, or a query, to topics, one batch a poll.

A task has one connection, with one transaction for each pass over a table. Between passes it has
neither.
"""

import logging
import re
import threading
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from pyconnect_api import (
    ConnectException,
    ExactlyOnceSupport,
    RetriableException,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceRecords,
    SourceTask,
)
from pyconnect_connectors.connectors import Attempts, ConfiguredConnector
from pyconnect_connectors.sql.column_types import reflected
from pyconnect_connectors.sql.database import abandon, connected, database_errors, open_engine
from pyconnect_connectors.sql.reading import INCREMENTING_FIELD, TIMESTAMP_FIELD, TableReader
from pyconnect_connectors.sql.settings import (
    INCREMENTING,
    MODE,
    QUERY,
    TABLES,
    TIMESTAMP,
    URL,
    Mode,
    SourceSettings,
    as_entry,
    source_config_def,
)
from pyconnect_connectors.sql.source_tables import (
    QUERY_VIEW,
    describe_query,
    found_tables,
    place_of,
)

LONGEST_WAIT_S = 1.0


class SqlSourceTask(SourceTask):
    """A task that reads the `tables` of its config, or the query."""

    def __init__(self) -> None:
        self._settings: SourceSettings
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._readers: dict[str, TableReader] = {}
        self._due_s: dict[str, float] = {}
        self._batches: Generator[SourceRecords, None, None] | None = None
        self._reading = ""
        self._pass_ended = True
        self._attempts: Attempts

    def start(self, props: Mapping[str, str]) -> None:
        self._settings = SourceSettings.parse(props)
        self._engine = open_engine(self._settings.connection, writes=False)
        self._attempts = Attempts("reading failed and is repeated", self._settings.connection)
        names = (QUERY_VIEW,) if self._settings.query is not None else self._settings.tables
        self._due_s = dict.fromkeys(map(unquote, names), 0.0)

    def stop(self) -> None:
        self._disconnect()

    def poll(self) -> SourceRecords | None:
        if not self._attempts.wait(self.context.stop_requested):
            return None
        with self._attempts.limited():
            try:
                with database_errors("Cannot read from the database"):
                    if self._batches is None and not self._begin():
                        return None
                assert self._batches is not None
                with database_errors(f"Cannot read {self._readers[self._reading].place}"):
                    batch = next(self._batches, None)
                    if batch is None:
                        self._end_pass()
                        self._pass_ended = True
                        self._due_s[self._reading] = (
                            time.monotonic() + self._settings.poll_ms / 1000
                        )
                    elif self._connection is not None and (
                        self._connection.dialect.name == "sqlite"
                        and self._settings.mode.has_total_order
                    ):
                        # The batch is a page; the table's next turn reads on from there.
                        self._end_pass()
                        self._due_s[self._reading] = time.monotonic()
                    return batch
            except RetriableException:
                self._disconnect()
                raise

    def _begin(self) -> bool:
        """Begin to read the table that has waited longest; False, after a wait, if none is due."""
        if not self._due_s:
            self.context.stop_requested.wait(LONGEST_WAIT_S)
            return False
        name = min(self._due_s, key=self._due_s.__getitem__)
        wait_s = self._due_s[name] - time.monotonic()
        if wait_s > 0:
            self.context.stop_requested.wait(min(wait_s, LONGEST_WAIT_S))
            return False
        if self._connection is None:
            assert self._engine is not None
            self._connection = connected(self._engine)
            if self._settings.query is not None:
                describe_query(self._connection, self._settings.query)
        connection = self._connection
        if name != self._reading or self._pass_ended:
            # The table is reflected again: columns may have changed since the last pass.
            settings, query = self._settings, self._settings.query
            known = self._readers.get(name)
            schema, table = place_of(inspect(connection), name, settings.schema)
            partition = {"table": name} if query is None else {"query": "query"}
            self._readers[name] = TableReader(
                reflected(connection, table, schema),
                settings,
                partition=partition,
                topic=settings.prefix + (name if query is None else ""),
                offset=(
                    self.context.offset_storage_reader.offset(partition)
                    if known is None
                    else known.position
                ),
            )
        self._reading, self._pass_ended = name, False
        self._batches = self._readers[name].batches(connection)
        return True

    def _end_pass(self) -> None:
        """Close the cursor and end the transaction."""
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close()
        if self._connection is not None:
            self._connection.rollback()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            abandon(connection)
        with suppress(SQLAlchemyError):
            self._end_pass()


LOG = logging.getLogger(__name__)
_TIME = re.compile(
    r"-?infinity|\d{4,}-(0\d|1[0-2])-([0-2]\d|3[01])"
    r"([ T]([01]\d|2[0-4]):[0-5]\d(:[0-5]\d(\.\d+)?)? ?(Z|[+-]\d\d(:?\d\d){0,2})?)?( BC)?",
    re.ASCII,
)


class SqlSourceConnector(ConfiguredConnector[SourceSettings], SourceConnector):
    """SqlSource: it deals tables to tasks, and deals again when tables come or go."""

    task_type = SqlSourceTask

    def __init__(self) -> None:
        super().__init__(source_config_def, SourceSettings, URL)
        self._settings: SourceSettings
        self._tables: tuple[str, ...] = ()
        self._stopped = threading.Event()

    def problems(self, settings: SourceSettings) -> Iterable[tuple[str, str]]:
        if settings.query is None:
            if problem := found_tables(settings).problem:
                yield problem
            return
        with connected(open_engine(settings.connection, writes=False)) as connection:
            try:
                # The database describes the query without running it.
                with database_errors("Cannot describe the query"):
                    describe_query(connection, settings.query)
                    found = reflected(connection, QUERY_VIEW, None).columns
            except ConnectException as error:
                yield QUERY, str(error)
                return
        wanted = [(TIMESTAMP, name) for name in settings.timestamps if settings.mode.has_timestamp]
        if settings.incrementing is not None and settings.mode.has_total_order:
            wanted.append((INCREMENTING, settings.incrementing))
        for key, name in wanted:
            if name not in found:
                yield key, f"The query has no column {name}"

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        """Return UNSUPPORTED for modes in which rows have no position of their own."""
        mode = Mode(str(source_config_def().parse(connector_configs)[MODE]))
        if mode.has_total_order:
            return ExactlyOnceSupport.SUPPORTED
        return ExactlyOnceSupport.UNSUPPORTED

    def start(self, props: Mapping[str, str]) -> None:
        self.props = props
        self._settings = SourceSettings.parse(props)
        # A thread of an earlier start keeps its own event, which ends it.
        self._stopped = threading.Event()
        if self._settings.query is None:
            found = found_tables(self._settings)
            self._tables = found.names
            if found.problem is not None:
                text = ": ".join(found.problem)
                if not self._tables:
                    raise ConnectException(text)
                LOG.warning("tables are missing", extra={"reason": text})
            elif not self._tables:
                LOG.warning("no table is read: the database has none that the lists allow")
            watch = threading.Thread(
                target=self._look, args=(self._stopped,), name="tables", daemon=True
            )
            watch.start()

    def stop(self) -> None:
        self._stopped.set()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        if self._settings.query is not None:
            return [self.props]
        count = min(max_tasks, len(self._tables))
        return [
            {**self.props, TABLES: ",".join(map(as_entry, self._tables[number::count]))}
            for number in range(count)
        ]

    def _look(self, stopped: threading.Event) -> None:
        while not stopped.wait(self._settings.table_poll_ms / 1000):
            try:
                tables = found_tables(self._settings).names
            except ConnectException as error:
                # The tasks have the same problem, and repeat their calls themselves.
                LOG.warning("tables not found and looked for again", extra={"reason": str(error)})
                continue
            except Exception as error:  # noqa: BLE001  fails the connector
                self.context.raise_error(error)
                return
            if tables != self._tables and not stopped.is_set():
                self._tables = tables
                self.context.request_task_reconfiguration()

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        settings = SourceSettings.parse(connector_config)
        wanted = {TIMESTAMP_FIELD} if settings.mode.has_timestamp else set()
        if settings.mode.has_total_order:
            wanted.add(INCREMENTING_FIELD)
        name = "table" if settings.query is None else "query"
        for partition, offset in offsets:
            if offset is None:
                continue
            if not wanted:
                raise ConnectException(f"mode={settings.mode} has no offsets")
            if partition is None or set(partition) != {name}:
                raise ConnectException(f"A partition must have the key '{name}' and no other")
            if not isinstance(partition[name], str) or (
                name == "query" and partition[name] != name
            ):
                raise ConnectException(
                    "The partition of a table is its name, and that of the query is 'query'"
                )
            if set(offset) != wanted:
                raise ConnectException(
                    f"With mode={settings.mode} an offset must have these keys: "
                    + ", ".join(sorted(wanted))
                )
            number, time = offset.get(INCREMENTING_FIELD, 0), offset.get(TIMESTAMP_FIELD)
            is_time = isinstance(time, str) and _TIME.fullmatch(time) is not None
            if (
                not isinstance(number, int | float | str)
                or isinstance(number, bool)
                or not (is_time or TIMESTAMP_FIELD not in offset)
            ):
                # With null, or another text, a database would find no row, or all of them again.
                raise ConnectException(
                    f"'{INCREMENTING_FIELD}' must be a number or a text, and '{TIMESTAMP_FIELD}' a "
                    "text such as 2024-06-01 10:00:00"
                )
        return True
