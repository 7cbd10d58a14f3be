"""Reads the new rows of one table into records.

Each pass is one query in the order of the mode, read through a cursor of the server and never held
as a whole. The position after each row is its record's source offset:

    incrementing             {"incrementing": id}
    timestamp+incrementing   {"timestamp": time, "incrementing": id}
    timestamp                {"timestamp": time}
    bulk                     none

In mode `timestamp` rows of equal time share a position. Only the last of them moves the offset to
their time, so that after a failure all of them are read again and none is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    String,
    Table,
    and_,
    func,
    or_,
    select,
    true,
    type_coerce,
    types,
)

from pyconnect_api import ConnectException, DataException, SchemaBuilder, SourceRecord, Struct, Type
from pyconnect_connectors.sql.column_types import (
    has_zone,
    prepare_types,
    reading,
    schema_of,
)
from pyconnect_connectors.sql.database import database_time
from pyconnect_connectors.sql.definitions import Mode
from pyconnect_connectors.sql.settings import SourceSettings

Offset: TypeAlias = Mapping[str, object]
TIMESTAMP_FIELD = "timestamp"
INCREMENTING_FIELD = "incrementing"

_SQLITE_CLASSES: Mapping[Type, type] = {
    Type.INT64: int,
    Type.STRING: str,
    Type.BYTES: bytes,
}


class TableReader:
    """One table, or the view of the query; `partition` names it in source offsets."""

    def __init__(
        self,
        table: Table,
        settings: SourceSettings,
        *,
        partition: Mapping[str, object],
        topic: str,
        offset: Offset | None,
    ) -> None:
        self.partition = partition
        self.position = offset
        self._table = table
        self._settings = settings
        self._topic = topic
        self._make: _RecordMaker | None = None

    def batches(self, connection: Connection) -> Generator[list[SourceRecord], None, None]:
        """Yield the rows after the position and move it behind each batch."""
        dialect = connection.dialect
        prepare_types(self._table, dialect)
        query, last_column = self._query(connection)
        size = self._settings.batch_rows
        if dialect.name == "sqlite" and self._settings.mode.has_total_order:
            # An unfinished query keeps other connections to the file from writing.
            query = query.limit(size)
        if self._make is None:
            self._make = _RecordMaker(
                self._table, connection, self._settings, self.partition, self._topic
            )
        make = self._make
        result = connection.execute(query, execution_options={"yield_per": size})
        with closing(result):
            rows = result.partitions(size)
            if self._settings.mode is Mode.TIMESTAMP:
                yield from self._by_timestamp(rows, make)
                return
            for part in rows:
                offsets = self._offsets(part, last_column)
                self.position = offsets[-1]
                yield make(part, offsets)

    def _by_timestamp(
        self, parts: Iterator[Sequence[Row[Any]]], make: _RecordMaker
    ) -> Generator[list[SourceRecord], None, None]:
        """Hold back the last row until the next one shows whether its time is complete."""
        held: list[Row[Any]] = []
        for part in parts:
            rows = [*held, *part]
            held = [rows.pop()]
            if rows:
                yield make(rows, self._group_offsets(rows, held[0]))
        if held:
            yield make(held, self._group_offsets(held, None))

    def _group_offsets(
        self, rows: Sequence[Row[Any]], following: Row[Any] | None
    ) -> list[Offset | None]:
        times = [row[-1] for row in rows] + [None if following is None else following[-1]]
        offsets: list[Offset | None] = []
        for index in range(len(rows)):
            if times[index] != times[index + 1]:
                self.position = {TIMESTAMP_FIELD: _stored(times[index])}
            offsets.append(self.position)
        return offsets

    def _offsets(self, rows: Sequence[Row[Any]], last: int) -> Sequence[Offset | None]:
        """Return the position after each row; `last` is the column of the incrementing one."""
        match self._settings.mode:
            case Mode.INCREMENTING:
                return [{INCREMENTING_FIELD: _stored(row[last])} for row in rows]
            case Mode.TIMESTAMP_INCREMENTING:
                return [
                    {
                        TIMESTAMP_FIELD: _stored(row[last - 1]),
                        INCREMENTING_FIELD: _stored(row[last]),
                    }
                    for row in rows
                ]
        return [None] * len(rows)

    def _query(self, connection: Connection) -> tuple[Select[Any], int]:
        """Return the query and the index of its last column, which is of the position."""
        settings, position = self._settings, self.position or {}
        order: list[ColumnElement[Any]] = []
        conditions: list[ColumnElement[bool]] = []
        after: ColumnElement[bool] = true()
        if settings.incrementing is not None and settings.mode.has_total_order:
            identity = self._identity(settings.incrementing)
            order.append(identity)
            conditions.append(identity.is_not(None))
            if INCREMENTING_FIELD in position:
                after = identity > position[INCREMENTING_FIELD]
        if settings.mode.has_timestamp:
            time, bound = self._time(connection), position.get(TIMESTAMP_FIELD)
            order.insert(0, time)
            conditions.append(time < self._newest(connection))
            if bound is not None:
                last = self._bound(connection, bound)
                if settings.mode is Mode.TIMESTAMP:
                    after = time > last
                else:
                    after = or_(time > last, and_(time == last, after))
        query = select(*self._table.columns, *order).where(after, *conditions).order_by(*order)
        return query, len(self._table.columns) + len(order) - 1

    def _column(self, name: str) -> ColumnElement[Any]:
        column = self._table.columns.get(name)
        if column is None:
            raise ConnectException(f"Table {self._table.fullname} has no column {name}")
        return column

    def _identity(self, name: str) -> ColumnElement[Any]:
        column = self._column(name)
        if not isinstance(column.type, types.Integer | types.Numeric | types.String):
            raise ConnectException(
                f"Column {name} of table {self._table.fullname} is neither a number nor a text"
            )
        return column

    def _time(self, connection: Connection) -> ColumnElement[Any]:
        columns = [self._column(name) for name in self._settings.timestamps]
        time = columns[0] if len(columns) == 1 else func.coalesce(*columns)
        if connection.dialect.name == "sqlite":
            # SQLite compares what is stored, which is text: so does the position.
            return type_coerce(time, String())
        if not isinstance(time.type, types.DateTime):
            raise ConnectException(
                f"Column {self._settings.timestamps[0]} of table {self._table.fullname} is not a "
                "timestamp"
            )
        return time

    def _newest(self, connection: Connection) -> object:
        """Return the time before which rows are read."""
        now = database_time(connection) - timedelta(milliseconds=self._settings.delay_ms)
        if has_zone(self._column(self._settings.timestamps[0]).type):
            return now
        local = now.astimezone(self._settings.connection.zone).replace(tzinfo=None)
        if connection.dialect.name == "sqlite":
            return local.strftime("%Y-%m-%d %H:%M:%S")
        return local

    def _bound(self, connection: Connection, stored: object) -> object:
        return (
            stored if connection.dialect.name == "sqlite" else datetime.fromisoformat(str(stored))
        )


class _RecordMaker:
    """Makes a batch of records, column by column."""

    def __init__(
        self,
        table: Table,
        connection: Connection,
        settings: SourceSettings,
        partition: Mapping[str, object],
        topic: str,
    ) -> None:
        columns = list(table.columns)
        dialect = connection.dialect
        schemas = [schema_of(column, dialect) for column in columns]
        value, key = SchemaBuilder.struct().name(table.name), SchemaBuilder.struct()
        for column, schema in zip(columns, schemas, strict=True):
            value.field(column.name, schema)
        self._partition = partition
        self._topic = topic
        self._names = [column.name for column in columns]
        self._conversions = [reading(column, settings.connection.zone) for column in columns]
        self._classes = [
            _SQLITE_CLASSES.get(schema.type)
            if dialect.name == "sqlite" and conversion is None and schema.name is None
            else None
            for schema, conversion in zip(schemas, self._conversions, strict=True)
        ]
        self._schema = value.build()
        self._keys = [index for index, column in enumerate(columns) if column.primary_key]
        for index in self._keys:
            key.field(columns[index].name, schemas[index])
        self._key_schema = key.name(f"{table.name}.Key").build() if self._keys else None

    def __call__(
        self, rows: Sequence[Row[Any]], offsets: Sequence[Offset | None]
    ) -> list[SourceRecord]:
        columns = list(zip(*rows, strict=True))[: len(self._names)]
        for index, convert in enumerate(self._conversions):
            if convert is not None:
                columns[index] = _converted(convert, columns[index])
            elif (expected := self._classes[index]) is not None:
                _check_classes(columns[index], expected, self._names[index])
        partition, topic, schema = self._partition, self._topic, self._schema
        key_schema, of_checked = self._key_schema, Struct.of_checked
        keys: Sequence[Struct | None] = (
            [None] * len(rows)
            if key_schema is None
            else [
                of_checked(key_schema, list(values))
                for values in zip(*(columns[index] for index in self._keys), strict=True)
            ]
        )
        return [
            SourceRecord(
                partition, offset, topic, None, key_schema, key, schema, of_checked(schema, list(v))
            )
            for offset, key, v in zip(offsets, keys, zip(*columns, strict=True), strict=True)
        ]


def _converted(convert: Callable[[Any], Any], column: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple([None if value is None else convert(value) for value in column])


def _check_classes(column: tuple[object, ...], expected: type, name: str) -> None:
    """SQLite lets a column hold values of other types than its own."""
    if {value.__class__ for value in column} - {expected, type(None)}:
        raise DataException(f"Column {name} holds a value that is not of its declared type")


def _stored(value: object) -> object:
    """Return a part of a position as source offsets hold it."""
    if value.__class__ is int:
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value
