"""Rows of the table of a SqlSource, read again by their keys, as records.

The reader is the connector's own, so a record is that of the row as it is now. A row beyond the
position of the report has changed since: the source itself writes it when it is resumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import date
from decimal import Decimal

from sqlalchemy import ColumnElement, Connection, and_, inspect, types

from pyconnect_api import ConnectException, SourceRecord, Struct
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.column_types import reflected
from pyconnect_connectors.sql.database import connected, database_errors, open_engine
from pyconnect_connectors.sql.reading import (
    INCREMENTING_FIELD,
    TIMESTAMP_FIELD,
    Offset,
    TableReader,
)
from pyconnect_connectors.sql.settings import SourceSettings
from pyconnect_connectors.sql.source_tables import QUERY_VIEW, describe_query, place_of
from pyconnect_reconcile.data_sides import TablePosition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import count_of
from pyconnect_repair.plan import Refused

_VALUES: Mapping[type, Callable[[str], object]] = {
    int: int,
    str: str,
    Decimal: Decimal,
    date: date.fromisoformat,
}
"""Values of the texts that a report has of keys."""


class SourceTable:
    """The table that has a topic's rows, or the query, over one connection."""

    def __init__(
        self, connection: Connection, settings: SourceSettings, topic: str, position: TablePosition
    ) -> None:
        name, self._partition = topic.removeprefix(settings.prefix), "table"
        if settings.query is not None:
            describe_query(connection, settings.query)
            name, self._partition = QUERY_VIEW, "query"
        schema, table = place_of(inspect(connection), name, settings.schema)
        self._connection = connection
        # A row with an odd value is refused, not left out.
        self._settings = replace(settings, tolerates_errors=False)
        self._topic = topic
        self._table = reflected(connection, table, schema)
        number: object = position.number
        column = self._table.columns.get(settings.incrementing or "")
        if position.number is not None and column is not None:
            is_whole = isinstance(column.type, types.Integer)
            number = int(position.number) if is_whole else position.number
        offset = {TIMESTAMP_FIELD: position.timestamp, INCREMENTING_FIELD: number}
        self._position = {name: part for name, part in offset.items() if part is not None}

    def record(self, key: Mapping[str, str]) -> SourceRecord:
        """Return the record of a row; ReconcileError when the row is not that of the report."""
        conditions = []
        for name, text in key.items():
            column = self._table.columns.get(name)
            value = None if column is None else _VALUES.get(column.type.python_type)
            if column is None or value is None:
                raise Refused(f"a row cannot be found by its column {name}")
            conditions.append(column == value(text))
        only = and_(*conditions)
        try:
            found = self._read(None, only, key)
            beyond = self._read(self._position, only, key)
        except OddValueException as exc:
            raise Refused(str(exc)) from exc
        if len(found) == 1 and not beyond:
            return found[0]
        number = count_of(len(found) - len(beyond), "row")
        raise ReconcileError(
            f"{self._table.fullname} has changed since the report: {number} of"
            f" {', '.join(f'{name}={text}' for name, text in key.items())} would have been read"
            " by then, not 1",
            hint="audit again, and repair by the new report",
        )

    def _read(
        self, offset: Offset | None, only: ColumnElement[bool], key: Mapping[str, str]
    ) -> list[SourceRecord]:
        reader = TableReader(
            self._table,
            self._settings,
            partition={self._partition: self._table.name},
            topic=self._topic,
            offset=offset,
            only=only,
        )
        records = [each for batch in reader.batches(self._connection) for each in batch]
        # A collation finds other texts of the key, too.
        return [
            each
            for each in records
            if isinstance(each.value, Struct)
            and all(
                text == value
                for name, text in key.items()
                if isinstance(value := each.value.get(name), str)
            )
        ]


@contextmanager
def source_table(
    config: Mapping[str, str], topic: str, position: TablePosition
) -> Iterator[SourceTable]:
    """Yield the table that a source of this config reads for a topic."""
    settings = SourceSettings.parse(config)
    try:
        engine = open_engine(settings.connection, writes=False)
        with database_errors("the repair"), closing(connected(engine)) as connection:
            yield SourceTable(connection, settings, topic, position)
    except ConnectException as exc:
        raise ReconcileError(str(exc)) from exc
