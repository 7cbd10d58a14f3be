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

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, TypeAlias, overload

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    CursorResult,
    Dialect,
    Select,
    String,
    Table,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
    type_coerce,
    types,
)

from pyconnect_api import (
    ConnectException,
    DataException,
    SchemaBuilder,
    SourceRecords,
    Struct,
    Type,
)
from pyconnect_connectors.sql.column_types import (
    has_zone,
    prepare_types,
    reading,
    schema_of,
)
from pyconnect_connectors.sql.database import database_time
from pyconnect_connectors.sql.definitions import Mode
from pyconnect_connectors.sql.queries import with_rows_of
from pyconnect_connectors.sql.settings import SourceSettings

Offset: TypeAlias = Mapping[str, object]
_Row: TypeAlias = Sequence[Any]  # values of a driver are of any class
TIMESTAMP_FIELD = "timestamp"
INCREMENTING_FIELD = "incrementing"
_AFTER_ID, _AFTER_TIME, _BEFORE = "after_id", "after_time", "before_time"
"""Parameters of queries."""

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
        self._built: tuple[Collection[str], Select[Any], Mapping[str, int]] | None = None

    def batches(self, connection: Connection) -> Generator[SourceRecords, None, None]:
        """Yield the rows after the position and move it behind each batch."""
        dialect = connection.dialect
        prepare_types(self._table, dialect)
        query, parts, limits = self._query(connection)
        size = self._settings.batch_rows
        # The cursor of SQLite holds no rows: a buffer before it would only cost time.
        options = {} if dialect.name == "sqlite" else {"yield_per": size}
        result = connection.execute(query, limits, execution_options=options)
        with closing(result):
            if self._make is None:
                self._make = _RecordMaker(
                    self._table, result, dialect, self._settings, self.partition, self._topic
                )
            make, rows = self._make, result.partitions(size)
            if self._settings.mode is Mode.TIMESTAMP:
                yield from self._by_timestamp(rows, make, parts[TIMESTAMP_FIELD])
                return
            for batch in rows:
                columns = list(zip(*batch, strict=True))
                offsets = _Offsets({name: columns[index] for name, index in parts.items()})
                self.position = offsets[-1] if parts else None
                yield make(columns, offsets if parts else [None] * len(batch))

    def _by_timestamp(
        self, batches: Iterator[Sequence[_Row]], make: _RecordMaker, time: int
    ) -> Generator[SourceRecords, None, None]:
        """Hold back the last row until the next one shows whether its time is complete."""
        held: list[_Row] = []
        for batch in batches:
            rows = [*held, *batch]
            held = [rows.pop()]
            if rows:
                times = [*(row[time] for row in rows), held[0][time]]
                yield make(list(zip(*rows, strict=True)), self._group_offsets(times))
        if held:
            times = [held[0][time], None]
            yield make(list(zip(*held, strict=True)), self._group_offsets(times))

    def _group_offsets(self, times: Sequence[object]) -> list[Offset | None]:
        """Return an offset for each row, of their times and that of the row after them."""
        offsets: list[Offset | None] = []
        for time, following in pairwise(times):
            if time != following:
                self.position = {TIMESTAMP_FIELD: _stored(time)}
            offsets.append(self.position)
        return offsets

    def _query(
        self, connection: Connection
    ) -> tuple[Select[Any], Mapping[str, int], Mapping[str, object]]:
        """Return the query, the parts of the position, and the limits as parameters.

        The parts have the indexes of their columns.
        """
        limits = self._limits(connection)
        if self._built is None or self._built[0] != limits.keys():
            # To build it costs as much as to read some hundred rows.
            self._built = (limits.keys(), *self._build(connection, limits.keys()))
        _, query, parts = self._built
        return query, parts, limits

    def _limits(self, connection: Connection) -> dict[str, object]:
        """Return the position, and the time before which rows are read, as parameters."""
        mode, position = self._settings.mode, self.position or {}
        limits: dict[str, object] = {}
        if mode.has_total_order and INCREMENTING_FIELD in position:
            limits[_AFTER_ID] = position[INCREMENTING_FIELD]
        if mode.has_timestamp:
            limits[_BEFORE] = self._newest(connection)
            if (bound := position.get(TIMESTAMP_FIELD)) is not None:
                limits[_AFTER_TIME] = self._bound(connection, bound)
        return limits

    def _build(
        self, connection: Connection, limits: Collection[str]
    ) -> tuple[Select[Any], Mapping[str, int]]:
        settings = self._settings
        columns: list[ColumnElement[Any]] = list(self._table.columns)
        order: list[ColumnElement[Any]] = []
        parts: dict[str, int] = {}
        conditions: list[ColumnElement[bool]] = []
        after: ColumnElement[bool] = true()
        if settings.incrementing is not None and settings.mode.has_total_order:
            identity = self._identity(settings.incrementing)
            order.append(identity)
            parts[INCREMENTING_FIELD] = columns.index(identity)
            conditions.append(identity.is_not(None))
            if _AFTER_ID in limits:
                after = identity > bindparam(_AFTER_ID)
        if settings.mode.has_timestamp:
            time = self._time(connection)
            order.insert(0, time)
            parts = {TIMESTAMP_FIELD: len(columns), **parts}
            columns.append(time)
            conditions.append(time < bindparam(_BEFORE))
            if _AFTER_TIME in limits:
                last: BindParameter[Any] = bindparam(_AFTER_TIME)
                if settings.mode is Mode.TIMESTAMP:
                    after = time > last
                else:
                    after = or_(time > last, and_(time == last, after))
        # Values as the driver has them: the columns of a batch are converted at once.
        plain: list[Any] = [type_coerce(column, types.NullType()) for column in columns]
        query: Select[Any] = select(*plain).where(after, *conditions).order_by(*order)
        if settings.query is not None:
            query = with_rows_of(connection, settings.query, query)
        if connection.dialect.name == "sqlite" and settings.mode.has_total_order:
            # An unfinished query keeps other connections to the file from writing.
            query = query.limit(settings.batch_rows)
        return query, parts

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
            # SQLite stores and compares texts, and so does the position.
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


class _Offsets(Sequence[Offset]):
    """Positions after rows. Each is made when it is read: most are never read."""

    def __init__(self, columns: Mapping[str, Sequence[object]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return min(map(len, self._columns.values()), default=0)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> _Offsets: ...
    def __getitem__(self, index: int | slice) -> Offset | _Offsets:
        if isinstance(index, slice):
            return _Offsets({name: values[index] for name, values in self._columns.items()})
        return {name: _stored(values[index]) for name, values in self._columns.items()}


class _RecordMaker:
    """Makes records of a batch, column by column."""

    def __init__(  # noqa: PLR0917
        self,
        table: Table,
        result: CursorResult[Any],
        dialect: Dialect,
        settings: SourceSettings,
        partition: Mapping[str, object],
        topic: str,
    ) -> None:
        columns = list(table.columns)
        described: Any = result.cursor
        schemas = [schema_of(column, dialect) for column in columns]
        value, key = SchemaBuilder.struct().name(table.name), SchemaBuilder.struct()
        for column, schema in zip(columns, schemas, strict=True):
            value.field(column.name, schema)
        self._partition = partition
        self._topic = topic
        self._names = [column.name for column in columns]
        zone = settings.connection.zone
        self._conversions = [
            reading(column, zone, dialect, description[1])
            for column, description in zip(columns, described.description, strict=False)
        ]
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
        self, found: Sequence[Sequence[Any]], offsets: Sequence[Offset | None]
    ) -> SourceRecords:
        columns = list(found[: len(self._names)])
        for index, convert in enumerate(self._conversions):
            if convert is not None:
                columns[index] = convert(columns[index])
            elif (expected := self._classes[index]) is not None:
                _check_classes(columns[index], expected, self._names[index])
        keys: Sequence[Struct] | None = None
        if self._key_schema is not None:
            parts = zip(*(columns[index] for index in self._keys), strict=True)
            keys = Struct.all_of_checked(self._key_schema, map(list, parts))
        rows = map(list, zip(*columns, strict=True))
        return SourceRecords(
            self._partition,
            offsets,
            self._topic,
            self._schema,
            Struct.all_of_checked(self._schema, rows),
            key_schema=self._key_schema,
            keys=keys,
        )


def _check_classes(column: Sequence[object], expected: type, name: str) -> None:
    """SQLite lets a column hold values of other types than its own."""
    if set(map(type, column)) - {expected, type(None)}:
        raise DataException(f"Column {name} holds a value that is not of its declared type")


def _stored(value: object) -> object:
    """Return a part of a position as source offsets hold it."""
    if value.__class__ is int:
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    return int(value) if isinstance(value, Decimal) else value
