"""The task of SqlSource: reads its tables in turn, one batch a poll.

One connection, one transaction for each pass over a table. Between passes there is neither.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import suppress
from urllib.parse import unquote

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from pyconnect_api import RetriableException, SourceRecords, SourceTask
from pyconnect_connectors import version
from pyconnect_connectors.connectors import Attempts
from pyconnect_connectors.sql.column_types import reflected
from pyconnect_connectors.sql.database import abandon, connected, database_errors, open_engine
from pyconnect_connectors.sql.reading import TableReader
from pyconnect_connectors.sql.settings import SourceSettings
from pyconnect_connectors.sql.source_tables import QUERY_VIEW, describe_query, place_of

LONGEST_WAIT_S = 1.0


class SqlSourceTask(SourceTask):
    """`tables` of the task's config, or the query."""

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

    def version(self) -> str:
        return version()

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
                        # A page. There may be more, which the table's next turn begins with.
                        self._end_pass()
                        self._due_s[self._reading] = time.monotonic()
                    return batch
            except RetriableException:
                self._disconnect()
                raise

    def _begin(self) -> bool:
        """Begin to read the table that has waited longest; wait and return False if none is due."""
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
            # Of the table as it is now: columns may have changed since the last pass.
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
