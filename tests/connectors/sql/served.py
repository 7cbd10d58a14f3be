"""A database of a server for one test, and both connectors on it."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pyconnect_api import SourceRecord, Struct
from pyconnect_api.testing import RecordingReporter, SinkHarness, SourceHarness
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_connectors.sql.source import SqlSourceTask
from tests.support.servers.mariadb import MariaDbServer
from tests.support.servers.postgres import PostgresServer

BY_ID = {"mode": "incrementing", "incrementing.column.name": "id", "tables": "odd"}
BY_BOTH = {
    "mode": "timestamp+incrementing",
    "timestamp.column.name": "changed",
    "incrementing.column.name": "id",
    "tables": "orders",
}


@dataclass(frozen=True, kw_only=True)
class Database:
    """A database; `reads` and `writes` are settings of tasks; `session` runs before statements."""

    server: PostgresServer | MariaDbServer
    name: str
    reads: Mapping[str, str]
    writes: Mapping[str, str] = field(default_factory=dict)
    session: str = ""
    started: list[SourceHarness | SinkHarness] = field(default_factory=list)

    def close(self) -> None:
        """Stop the tasks that still run."""
        for harness in self.started:
            harness.task.stop()

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def connect(self) -> Any:  # of the driver, as a test looks at what came of it
        return self.server.connect(self.name)

    def execute(self, *statements: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Run statements in a connection of their own; return the rows of the last one."""
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for text in filter(None, (self.session, *statements)):
                # A session of SQL_ASCII takes no letters in a text but those of ASCII.
                statement = text.encode() if isinstance(self.server, PostgresServer) else text
                cursor.execute(statement, *([values] if values else []))
            return list(cursor.fetchall()) if cursor.description else []

    def config(self, **settings: str) -> dict[str, str]:
        """Return the settings of the connection, and `more` with points in place of _ in names."""
        named = {name.replace("_", "."): value for name, value in settings.items()}
        return {**self.server.settings(self.name), "retry.backoff.ms": "0", **named}

    def source(self, **settings: str) -> SourceHarness:
        config = {"poll.interval.ms": "1", **self.reads, **self.config(**settings)}
        harness = SourceHarness(SqlSourceTask, config)
        self.started.append(harness)
        harness.start()
        return harness

    def new_sink(self, *reporters: RecordingReporter, **settings: str) -> SinkHarness:
        config = {"name": "to-sql", **self.writes, **self.config(**settings)}
        harness = SinkHarness(SqlSinkTask, config, reporter=next(iter(reporters), None))
        self.started.append(harness)
        return harness

    def sink(self, *reporters: RecordingReporter, **settings: str) -> SinkHarness:
        harness = self.new_sink(*reporters, **settings)
        harness.start()
        return harness


def values(records: Sequence[SourceRecord], name: str = "id") -> list[object]:
    """Return a field of each record."""
    return [record.value.get(name) for record in records if isinstance(record.value, Struct)]
