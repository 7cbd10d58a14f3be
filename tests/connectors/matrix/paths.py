"""Runs of the matrix's cells: from a source through a topic into a target."""

import itertools
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from pyconnect_api import Schema, SourceRecord, TopicPartition
from pyconnect_api.testing import SinkHarness, SourceHarness
from pyconnect_connectors.sql.sink import SqlSinkTask
from pyconnect_connectors.sql.source import SqlSourceTask
from tests.connectors.matrix.columns import Cell
from tests.connectors.matrix.databases import Database, Rows, define, fill, grid
from tests.connectors.matrix.meanings import Kind, Odd, equal, of_text
from tests.connectors.matrix.topics import TOPIC

PARTITION = TopicPartition(TOPIC, 0)
Message = tuple[Schema | None, object]
NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
EMPTY_POLLS = 4
_numbers = itertools.count(1)


class Source(Protocol):
    """A system that values come from."""

    @property
    def name(self) -> str: ...
    def read(
        self, cells: Sequence[Cell], settings: Mapping[str, str] = NO_SETTINGS
    ) -> list[SourceRecord]:
        """Store the values in the source, and return the connector's records for them."""


class Target(Protocol):
    """A system that values go to."""

    @property
    def name(self) -> str: ...
    def write(
        self, cells: Sequence[Cell], messages: Sequence[Message], kinds: Mapping[str, Kind]
    ) -> Rows:
        """Write the messages; return the target's content."""


def polled(harness: SourceHarness) -> list[SourceRecord]:
    """Return all records of a source: poll until several polls return nothing."""
    harness.start()
    records: list[SourceRecord] = []
    empty = 0
    try:
        while empty < EMPTY_POLLS:
            found = harness.poll()
            records += found
            empty = 0 if found else empty + 1
    finally:
        harness.stop()
    return records


def delivered(task: type[Any], props: Mapping[str, str], messages: Sequence[Message]) -> None:
    """Have a sink write the messages."""
    sink = SinkHarness(task, props, partitions=[PARTITION])
    sink.start()
    try:
        for schema, value in messages:
            sink.send(value, value_schema=schema, partition=PARTITION, timestamp=1_717_237_230_000)
        taken = sink.deliver(max(len(messages), 1))
        assert len(taken) == len(messages), "the sink asks for the records again"
    except BaseException:
        sink.task.stop()
        raise
    sink.stop()


class DatabaseSource:
    """A source of SqlSource: a table with a column for each type."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.name = database.name

    def read(
        self, cells: Sequence[Cell], settings: Mapping[str, str] = NO_SETTINGS
    ) -> list[SourceRecord]:
        table = TOPIC
        try:
            fill(self.database, table, cells)
        except Exception as error:
            raise MisstatedError(f"{self.name}: {error}") from error
        stored = self.database.read(table, {c.name: c.kind for c, _ in grid(cells)})
        check_stated(cells, stored)
        props = {
            **self.database.settings(),
            "mode": "incrementing",
            "incrementing.column.name": "id",
            "tables": table,
            "topic.prefix": "",
            "poll.interval.ms": "1",
            "retry.backoff.ms": "0",
            "max.retries": "0",
            **settings,
        }
        return polled(SourceHarness(SqlSourceTask, props))


def check_stated(cells: Sequence[Cell], stored: Rows) -> None:
    """Check that the database holds the values as the matrix states them."""
    wrong = []
    for column, found in grid(cells):
        for row, cell in enumerate(found):
            stated, held = own_meaning(cell), stored[row][column.name]
            if isinstance(stated, Odd) and isinstance(held, Odd):
                continue
            if not equal(column.kind, stated, held):
                wrong.append(f"{column.type}: {cell.value.name}: {stated!r}, but it holds {held!r}")
    if wrong:
        raise MisstatedError("; ".join(wrong))


def own_meaning(cell: Cell) -> object:
    """Return the meaning of the source's own text form."""
    own = cell.value.own
    return cell.value.meaning if own is None else of_text(cell.column.kind, own)


class MisstatedError(Exception):
    """The error of a matrix that states a wrong value, while no connector is wrong."""


def sink_props(database: Database, table: str) -> dict[str, str]:
    """Return the config of SqlSink for one table."""
    return {
        "name": "matrix",
        **database.settings(),
        "auto.create": "true",
        "table.name.format": table,
        "offsets.table.name": f"o{table}",
        "retry.backoff.ms": "0",
        "max.retries": "0",
    }


class UnreadableError(Exception):
    """The error of a target with a value that its own reader cannot read."""


class DatabaseTarget:
    """SqlSink writes a table that it creates, or one with the types of the source."""

    def __init__(self, database: Database, *, same_types: bool = False) -> None:
        self.database = database
        self._same_types = same_types
        self.name = f"{database.name}, same types" if same_types else database.name

    def write(
        self, cells: Sequence[Cell], messages: Sequence[Message], kinds: Mapping[str, Kind]
    ) -> Rows:
        database, table = self.database, f"t{next(_numbers)}"
        if self._same_types:
            define(database, table, {c.name: c.type for c, _ in grid(cells)})
        elif messages[0][0] is None:
            define(database, table, {n: database.natural[k] for n, k in kinds.items()})
        delivered(SqlSinkTask, sink_props(database, table), messages)
        return database.read(table, kinds)


class Scratch:
    """Directories for a path, one after the other."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def new(self) -> Path:
        shutil.rmtree(self._root, ignore_errors=True)
        self._root.mkdir(parents=True)
        return self._root
