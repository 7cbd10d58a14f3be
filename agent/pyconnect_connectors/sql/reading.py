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

import logging
import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy import types
from sqlalchemy.dialects import mysql

from pyconnect_api import ConnectException, SchemaBuilder, SourceRecords, Struct
from pyconnect_connectors.connectors import LazyOffsets
from pyconnect_connectors.odd_values import OddValueException
from pyconnect_connectors.sql.column_types import (
    NumericAffinity,
    fraction_step,
    has_zone,
    is_decimal,
)
from pyconnect_connectors.sql.database import database_time
from pyconnect_connectors.sql.reading_columns import ReadColumn, as_selected
from pyconnect_connectors.sql.settings import Mode, SourceSettings
from pyconnect_connectors.sql.source_tables import with_rows_of
from pyconnect_connectors.sql.sqlite_times import (
    begun_version,
    instant,
    instant_text,
    is_ordered,
    other_forms,
)

Offset: TypeAlias = Mapping[str, object]
_Row: TypeAlias = Sequence[Any]  # values of a driver are of any class
TIMESTAMP_FIELD = "timestamp"
INCREMENTING_FIELD = "incrementing"
_AFTER_ID, _AFTER_TIME, _BEFORE = "after_id", "after_time", "before_time"
_FROM_DAY = "from_day"
"""Names of the queries' parameters."""
LOG = logging.getLogger(__name__)
_ORDERED_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d*)?")


class TableReader:
    """The reader of one table, or of the query's view; `partition` is its source partition.

    `only` is a further condition on its rows.
    """

    def __init__(
        self,
        table: sa.Table,
        settings: SourceSettings,
        *,
        partition: Mapping[str, object],
        topic: str,
        offset: Offset | None,
        only: sa.ColumnElement[bool] | None = None,
    ) -> None:
        self.partition = partition
        self.position = offset
        self._table = table
        self._settings = settings
        self._place = "the query" if settings.query is not None else f"table {table.fullname}"
        self._topic = topic
        self._only = [] if only is None else [only]
        self._make: _RecordMaker | None = None
        self._columns: Sequence[ReadColumn] = ()
        self._built: tuple[Collection[str], sa.Select[Any], Mapping[str, int]] | None = None
        self._has_encoding = True
        self._by_instants = False
        """Whether SQLite has to order rows by instants that it computes."""
        self._version: object = None
        """The version of the file for which `_by_instants` was found."""

    @property
    def place(self) -> str:
        """The table and the position in it, for errors."""
        parts = ", ".join(f"{name}={part}" for name, part in (self.position or {}).items())
        return f"{self._place} behind {parts}" if parts else self._place

    def batches(self, connection: sa.Connection) -> Generator[SourceRecords, None, None]:
        """Yield the records of rows after the position, and move the position with each batch."""
        dialect, settings = connection.dialect, self._settings
        if self._make is None:
            zone, policy = settings.connection.zone, settings.odd_values
            self._has_encoding = (
                dialect.name != "postgresql"
                or connection.exec_driver_sql("SHOW server_encoding").scalar() != "SQL_ASCII"
            )
            self._columns = [
                ReadColumn(c, dialect, zone, policy, has_encoding=self._has_encoding)
                for c in self._table.columns
            ]
            self._make = _RecordMaker(
                self._table, self._columns, settings, self._place, self.partition, self._topic
            )
        query, parts, limits = self._query(connection)
        size = settings.batch_rows
        # SQLite's cursor holds no rows: a buffer before it would only cost time.
        options = {} if dialect.name == "sqlite" else {"yield_per": size}
        result = connection.execute(query, limits, execution_options=options)
        with closing(result):
            make, rows = self._make, result.partitions(size)
            if settings.mode is Mode.TIMESTAMP:
                yield from self._by_timestamp(rows, make, parts[TIMESTAMP_FIELD])
                return
            for batch in rows:
                columns = list(zip(*batch, strict=True))
                offsets: Sequence[Offset | None] = [None] * len(batch)
                if parts:
                    found = {name: columns[index] for name, index in parts.items()}
                    offsets = LazyOffsets(range(len(batch)), partial(_offset, found))
                for records, count in make(columns, offsets):
                    # The position covers these rows only: the generator may be closed before an odd
                    # row.
                    self.position = offsets[count - 1] if count else self.position
                    yield records

    def _by_timestamp(
        self, batches: Iterator[Sequence[_Row]], make: _RecordMaker, time: int
    ) -> Generator[SourceRecords, None, None]:
        """Hold back the last row until the next one shows whether its time is complete."""
        held: list[_Row] = []
        # After the last batch no row is held back.
        for batch in chain(batches, [()]):
            rows = [*held, *batch]
            held = [rows.pop()] if batch else []
            offsets: list[Offset | None] = []
            times = [*(row[time] for row in rows), held[0][time] if held else None]
            for own, following in pairwise(times):
                if own != following:
                    self.position = {TIMESTAMP_FIELD: _stored(own)}
                offsets.append(self.position)
            if rows:
                for records, _ in make(list(zip(*rows, strict=True)), offsets):
                    yield records

    def _query(
        self, connection: sa.Connection
    ) -> tuple[sa.Select[Any], Mapping[str, int], Mapping[str, object]]:
        """Return the query, the column index of each part of the position, and the limits.

        The limits are the values of the query's parameters.
        """
        settings = self._settings
        if connection.dialect.name == "sqlite" and settings.mode.has_timestamp:
            version = begun_version(connection)
            if version != self._version:
                # Some times may not be in the order of their texts.
                zone, time = settings.connection.zone, self._time(connection)
                others, odd = other_forms(connection, self._table, time, zone)
                if odd is not None:
                    named = ", ".join(f"{name}={value}" for name, value in odd.items())
                    error = OddValueException(
                        self._place,
                        column=", ".join(settings.timestamps),
                        row=f"row {named}" if named else "a row without a key",
                        kind="a value that is not a time of ISO 8601",
                        target="Timestamp",
                        is_key=True,
                    )
                    if not settings.tolerates_errors:
                        raise error
                    LOG.warning("row left out", extra={"reason": str(error)})
                position = (self.position or {}).get(TIMESTAMP_FIELD)
                is_ordered = position is None or _ORDERED_TIME.fullmatch(str(position))
                self._by_instants, self._version = others or not is_ordered, version
        limits = self._limits(connection)
        if self._built is None or self._built[0] != limits.keys():
            # Building a query costs as much as reading some hundred rows.
            self._built = (limits.keys(), *self._build(connection, limits.keys()))
        _, query, parts = self._built
        return query, parts, limits

    def _limits(self, connection: sa.Connection) -> dict[str, object]:
        """Return the parameters: the position, and the time before which rows are read."""
        mode, position = self._settings.mode, self.position or {}
        limits: dict[str, object] = {}
        if mode.has_total_order and INCREMENTING_FIELD in position:
            identity = self._column(self._settings.incrementing or "")
            after = _comparable(
                position[INCREMENTING_FIELD], identity.type, connection.dialect.name
            )
            if after is None:
                raise ConnectException(
                    f"Column {identity.name} of {self._place} has NaN, infinity or a value of "
                    "another type, or its offset is one: no row is found behind it"
                )
            limits[_AFTER_ID] = after
        if not mode.has_timestamp:
            return limits
        limits[_BEFORE] = self._newest(connection)
        last = position.get(TIMESTAMP_FIELD)
        if last is None:
            return limits
        if self._by_instants:
            moment = instant_text(last, self._settings.connection.zone)
            if moment is None:
                raise ConnectException(f"The offset's {TIMESTAMP_FIELD} is not a time")
            # Any text of that instant begins with this day or a later one, whatever its zone.
            day = max(datetime.fromisoformat(moment).date(), date(1, 1, 3)) - timedelta(days=2)
            return {**limits, _AFTER_TIME: moment, _FROM_DAY: day.isoformat()}
        limits[_AFTER_TIME] = last
        if connection.dialect.name != "sqlite":
            with suppress(ValueError):
                limits[_AFTER_TIME] = datetime.fromisoformat(str(last))
        return limits

    def _build(
        self, connection: sa.Connection, limits: Collection[str]
    ) -> tuple[sa.Select[Any], Mapping[str, int]]:
        settings = self._settings
        # These are the driver's own values: the columns of a batch are converted at once.
        columns: list[sa.ColumnElement[Any]] = [column.selected for column in self._columns]
        order: list[sa.ColumnElement[Any]] = []
        parts: dict[str, int] = {}
        conditions: list[sa.ColumnElement[bool]] = [*self._only]
        after: sa.ColumnElement[bool] = sa.true()
        if settings.incrementing is not None and settings.mode.has_total_order:
            identity = self._identity(settings.incrementing, connection.dialect)
            order.append(identity)
            if is_decimal(identity.type) or not self._has_encoding:
                parts[INCREMENTING_FIELD] = len(columns)
                columns.append(sa.type_coerce(identity, types.NullType()))
            else:
                names = [column.name for column in self._columns]
                parts[INCREMENTING_FIELD] = names.index(settings.incrementing)
            conditions.append(identity.is_not(None))
            if _AFTER_ID in limits:
                after = identity > sa.bindparam(_AFTER_ID)
        if settings.mode.has_timestamp:
            time = self._time(connection)
            if self._by_instants:
                if _FROM_DAY in limits:
                    # This condition can use an index on the column.
                    conditions.append(time >= sa.bindparam(_FROM_DAY))
                time = instant(time, settings.connection.zone)
            elif connection.dialect.name == "sqlite":
                conditions.append(is_ordered(time))
            order.insert(0, time)
            parts = {TIMESTAMP_FIELD: len(columns), **parts}
            columns.append(as_selected(time, connection.dialect))
            conditions.append(time < sa.bindparam(_BEFORE))
            if _AFTER_TIME in limits:
                # The parameter has no type: it may be a text, as of a time that Python does not
                # have.
                last: sa.BindParameter[Any] = sa.bindparam(_AFTER_TIME, type_=types.NullType())
                if settings.mode is Mode.TIMESTAMP:
                    after = time > last
                else:
                    after = sa.or_(time > last, sa.and_(time == last, after))
        query: sa.Select[Any] = sa.select(*columns).where(after, *conditions).order_by(*order)
        if settings.query is not None:
            query = with_rows_of(connection, settings.query, query)
        if connection.dialect.name == "sqlite" and settings.mode.has_total_order:
            # An unfinished query keeps other connections to the file from writing.
            query = query.limit(settings.batch_rows)
        return query, parts

    def _column(self, name: str) -> sa.ColumnElement[Any]:
        column = self._table.columns.get(name)
        if column is None:
            raise ConnectException(f"Table {self._table.fullname} has no column {name}")
        return column

    def _identity(self, name: str, dialect: sa.Dialect) -> sa.ColumnElement[Any]:
        column = self._column(name)
        # ORDER BY takes the members of an ENUM by number, and comparisons take them by text.
        if isinstance(column.type, types.Enum | mysql.SET) or not isinstance(
            column.type, types.Integer | types.Numeric | types.String | NumericAffinity
        ):
            raise ConnectException(
                f"Column {name} of table {self._table.fullname} is neither a number nor a text"
            )
        if dialect.name == "sqlite" and not isinstance(column.type, types.Integer):
            # SQLAlchemy would return a binary float.
            return sa.type_coerce(column, sa.String())
        return column

    def _time(self, connection: sa.Connection) -> sa.ColumnElement[Any]:
        columns = [self._column(name) for name in self._settings.timestamps]
        allowed: tuple[type[types.TypeEngine[Any]], ...] = (types.DateTime,)
        if connection.dialect.name == "sqlite":
            allowed = (types.DateTime, types.Date, types.String, types.NullType)
        for column in columns:
            if not isinstance(column.type, allowed):
                raise ConnectException(
                    f"Column {column.name} of table {self._table.fullname} is not a timestamp"
                )
        zones = {has_zone(column.type) for column in columns}
        if len(zones) > 1 and self._settings.connection.zone.key != "UTC":
            # The database would compare local times with instants as if they were of UTC.
            raise ConnectException(
                f"Some of the columns {', '.join(self._settings.timestamps)} of {self._place} have "
                "a time zone and others have none, which db.timezone=UTC alone allows"
            )
        time = columns[0] if len(columns) == 1 else sa.func.coalesce(*columns)
        # SQLite stores and compares texts, and so does the position.
        return sa.type_coerce(time, sa.String()) if connection.dialect.name == "sqlite" else time

    def _newest(self, connection: sa.Connection) -> object:
        """Return the time before which rows are read.

        The position must not pass rows that come later: they may have the current time without its
        fraction, and the time of an hour ago while clocks repeat an hour.
        """
        now = database_time(connection) - timedelta(milliseconds=self._settings.delay_ms)
        zone, dialect = self._settings.connection.zone, connection.dialect.name
        kinds = [self._column(name).type for name in self._settings.timestamps]
        # Times of SQLite mostly have whole seconds.
        steps = [10**6 if dialect == "sqlite" else fraction_step(kind, dialect) for kind in kinds]
        now = now.replace(microsecond=now.microsecond // max(steps) * max(steps))
        if has_zone(kinds[0]):
            return now
        local = now.astimezone(zone)
        if any(isinstance(kind, types.Date) for kind in kinds):
            local = local.replace(hour=0, minute=0, second=0)
        first, second = (local.replace(fold=fold).utcoffset() for fold in (0, 1))
        assert first is not None and second is not None  # noqa: PT018
        clock = local.replace(tzinfo=None, fold=0) - max(first - second, timedelta(0))
        if self._by_instants:
            return instant_text(clock.isoformat(), zone)
        return clock.strftime("%Y-%m-%d %H:%M:%S") if dialect == "sqlite" else clock


class _RecordMaker:
    """Maker of a batch's records, column by column."""

    def __init__(  # noqa: PLR0917
        self,
        table: sa.Table,
        columns: Sequence[ReadColumn],
        settings: SourceSettings,
        place: str,
        partition: Mapping[str, object],
        topic: str,
    ) -> None:
        value, key = SchemaBuilder.struct().name(table.name), SchemaBuilder.struct()
        for column in columns:
            value.field(column.name, column.schema)
        self._place = place
        self._partition = partition
        self._topic = topic
        self._columns = columns
        self._settings = settings
        self._tolerant = settings.tolerates_errors
        self._schema = value.build()
        self._keys = [index for index, column in enumerate(columns) if column.is_key]
        for index in self._keys:
            key.field(columns[index].name, columns[index].schema)
        self._key_schema = key.name(f"{table.name}.Key").build() if self._keys else None

    def __call__(
        self, found: Sequence[Sequence[Any]], offsets: Sequence[Offset | None]
    ) -> Iterator[tuple[SourceRecords, int]]:
        """Yield records, and the number of rows from the first to the last of them.

        An odd row raises OddValueException after the rows before it; if errors are tolerated, it is
        logged and left out.
        """
        odd: dict[int, tuple[ReadColumn, str]] = {}
        columns = [
            column.values(values, odd) for column, values in zip(self._columns, found, strict=False)
        ]
        if not odd:
            yield self._records(columns, offsets), len(offsets)
            return
        errors = {row: self._error(row, *odd[row], columns, offsets) for row in sorted(odd)}
        count = len(offsets)
        kept = [row for row in range(count if self._tolerant else min(odd)) if row not in odd]
        if self._tolerant:
            for error in errors.values():
                LOG.warning("row left out", extra={"reason": str(error)})
        if kept or self._tolerant:
            chosen = [[values[row] for row in kept] for values in columns]
            records = self._records(chosen, [offsets[row] for row in kept])
            yield records, count if self._tolerant else len(kept)
        if not self._tolerant:
            raise errors[min(errors)]

    def _records(
        self, columns: Sequence[Sequence[Any]], offsets: Sequence[Offset | None]
    ) -> SourceRecords:
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

    def _error(
        self,
        row: int,
        column: ReadColumn,
        kind: str,
        columns: Sequence[Sequence[Any]],
        offsets: Sequence[Offset | None],
    ) -> OddValueException:
        """Return the error of a row, named by its key, or by its position if it has no key."""
        parts = {self._columns[index].name: columns[index][row] for index in self._keys}
        if not parts or column.is_key:
            parts = dict(offsets[row] or {})
            # The odd value may itself be a part of the position.
            if column.name == self._settings.incrementing:
                parts.pop(INCREMENTING_FIELD, None)
            if column.name in self._settings.timestamps:
                parts.pop(TIMESTAMP_FIELD, None)
        named = ", ".join(f"{name}={part}" for name, part in parts.items())
        return OddValueException(
            self._place,
            column=column.name,
            row=f"row {named}" if named else "a row without a key",
            kind=kind,
            target=column.target,
            is_key=column.is_key,
        )


def _offset(columns: Mapping[str, Sequence[object]], row: int) -> Offset:
    return {name: _stored(values[row]) for name, values in columns.items()}


def _comparable(position: object, kind: types.TypeEngine[Any], dialect: str) -> object:
    """Return a part of a position as the column compares it, None if it is not of its type.

    In SQLite no number is greater than a text. MariaDB compares a text with numbers as 0.
    """
    if isinstance(kind, types.String):
        return position if isinstance(position, str) else None
    if not isinstance(position, str | int | float):
        return None
    if isinstance(position, str) and not isinstance(kind, NumericAffinity):
        try:
            number = Decimal(position)
        except InvalidOperation:
            return None
        if not number.is_finite():
            return None
        return position if dialect == "sqlite" else number
    return position


def _stored(value: object) -> object:
    """Return a part of a position as source offsets hold it, where numbers have 64 bits."""
    if isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        value = int(value) if whole else f"{value:f}"
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else str(value)
    return value.isoformat() if isinstance(value, datetime) else value
