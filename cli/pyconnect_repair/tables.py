"""Repairs of the table of a SqlSink by the report of its audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError, IntegrityError

from pyconnect_api import ConnectException, DataException, SinkRecord, TopicPartition
from pyconnect_connectors.sql.database import (
    concerns_row,
    connected,
    database_errors,
    open_engine,
    reason,
)
from pyconnect_connectors.sql.fencing import OffsetTable
from pyconnect_connectors.sql.rows import shape_of, write_columns
from pyconnect_connectors.sql.settings import SinkSettings
from pyconnect_connectors.sql.target_tables import found_table
from pyconnect_connectors.sql.writing_postgres import UNFIT
from pyconnect_reconcile.data_sides import TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.spec import Spec, question_of
from pyconnect_repair.images import TableImages
from pyconnect_repair.job import Job
from pyconnect_repair.plan import Image, Place, Refused, RowChange, Wanted, decided
from pyconnect_repair.records import Basis, read_records, require_unmoved

BATCH = 100
"""Changes of one transaction."""
STATEMENT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """The changes, and why others are not possible."""

    changes: tuple[RowChange, ...]
    refused: tuple[str, ...]


class SinkTable:
    """The table of a SqlSink, over one connection."""

    def __init__(self, connection: Connection, settings: SinkSettings, topic: str) -> None:
        table = found_table(connection, settings, topic)
        if table is None:
            raise ReconcileError("the table of the sink is not there any more")
        self._connection = connection
        self._settings = settings
        self._table: Table = table
        self.name = table.fullname
        with connection.begin():
            self._images = TableImages(connection, table)

    def plan(
        self, targets: Sequence[Wanted], records: Mapping[Place, SinkRecord | None]
    ) -> PlannedChanges:
        """Return the changes of the targets. What is written to find them is rolled back."""
        changes: dict[str, RowChange] = {}
        refused = []
        with self.transaction() as transaction:
            for target in targets:
                try:
                    change = self._change(target, records, changes)
                    # The next ones find the table as they will when all are carried out.
                    with self._in_its_place() as savepoint:
                        self._images.move(change)
                        savepoint.commit()
                    changes[repr(change.identity)] = change
                except Refused as exc:
                    refused.append(f"{target.kind}: {target.name}: {exc}")
            transaction.rollback()
        return PlannedChanges(changes=tuple(changes.values()), refused=tuple(refused))

    def carry_out(
        self, changes: Sequence[RowChange], expected: Mapping[TopicPartition, int], events: Events
    ) -> None:
        """Move all rows to the state after their changes; `expected` are the sink's offsets."""
        for start in range(0, len(changes), BATCH):
            with self.transaction():
                self.require_offsets(expected)
                for change in changes[start : start + BATCH]:
                    self._images.move(change)
            events.progress(min(start + BATCH, len(changes)), len(changes))

    def require_offsets(self, expected: Mapping[TopicPartition, int]) -> None:
        """Lock the offsets that the sink keeps; ReconcileError when they are not the expected."""
        if not self._settings.exactly_once:
            return
        kept = OffsetTable(self._settings.offsets_table, self._settings.name)
        stored = kept.stored(self._connection, sorted(expected), lock=True)
        for partition, offset in expected.items():
            if (now := stored[partition]) is not None and now != offset:
                raise ReconcileError(
                    f"the sink has moved on since the report: its offset of {partition} is {now},"
                    f" not {offset}",
                    hint="stop the connector, audit again, and repair by the new report",
                )

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """Run one transaction; each of its statements ends within STATEMENT_S."""
        connection = self._connection
        with connection.begin() as transaction:
            match connection.dialect.name:
                case "sqlite":
                    # The driver would begin with the first change only.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                case "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{STATEMENT_S}s'")
                    # Rows that are not there yet cannot be locked.
                    lock = "SELECT pg_advisory_xact_lock(hashtext(%s))"
                    connection.exec_driver_sql(lock, (self.name,))
                case _ if getattr(connection.dialect, "is_mariadb", False):
                    connection.exec_driver_sql(f"SET max_statement_time = {STATEMENT_S}")
            yield transaction

    def _change(
        self,
        target: Wanted,
        records: Mapping[Place, SinkRecord | None],
        others: Mapping[str, RowChange],
    ) -> RowChange:
        image: Image | None = None
        if target.key is not None:
            identity: Image = target.key
            if unknown := sorted(set(identity) - set(self._table.columns.keys())):
                raise Refused(f"the table has no columns {', '.join(unknown)} any more")
        else:
            assert target.place is not None
            record = records[target.place]
            if record is None or record.value is None:
                raise Refused("the connector makes no row of the record")
            image, names = self._written(record)
            identity = {name: image[name] for name in names}
        if other := others.get(repr(identity)):
            raise Refused(f"the table takes its key for that of {other.name}")
        before = self._images.rows(identity)
        after = decided(target, before, image)
        if after is None:
            raise ReconcileError(
                f"the table has changed since the report: {target.kind}: {target.name} is there"
                f" {count_of(len(before), 'time')}, or is right already",
                hint="audit again, and repair by the new report",
            )
        return RowChange(
            kind=target.kind, name=target.name, identity=identity, before=before, after=after
        )

    def _written(self, record: SinkRecord) -> tuple[Image, Sequence[str]]:
        """Return the row that the sink writes of a record, and the columns that identify it."""
        connection, settings = self._connection, self._settings
        try:
            shape = shape_of(record, settings)
            if missing := sorted(set(shape.columns) - set(self._table.columns.keys())):
                raise Refused(f"the table has no columns {', '.join(missing)}")
            columns = write_columns(shape, self._table, connection, settings)
            [row] = shape.rows([record], columns)
        except (DataException, *UNFIT) as exc:
            raise Refused(self._reason(record, exc)) from None
        names = shape.parameters(settings.insert_mode)
        statement = shape.statement(self._table, settings.insert_mode, connection.dialect.name)
        # As for many rows: for one, SQLAlchemy would add a RETURNING of its own.
        compiled = statement.compile(dialect=connection.dialect, for_executemany=True)
        order = compiled.positiontup if compiled.positional else None
        named = dict(zip(names, row, strict=True))
        values: Any = tuple(named[name] for name in order or ()) if order is not None else named
        try:
            with self._in_its_place() as savepoint:
                found = self._images.written(str(compiled), values)
                savepoint.rollback()
        except UNFIT:
            raise Refused("the driver cannot send one of its values") from None
        except DBAPIError as exc:
            if not concerns_row(exc):
                raise
            raise Refused(reason(exc)) from None
        if len(found) != 1:
            raise Refused(f"the database wrote {count_of(len(found), 'row')} of its record")
        return found[0], shape.keys or tuple(shape.columns)

    @contextmanager
    def _in_its_place(self) -> Iterator[Any]:
        """Run in a savepoint; Refused when a row has the key of one that is written."""
        try:
            with self._connection.begin_nested() as savepoint:
                yield savepoint
        except IntegrityError as exc:
            raise Refused(f"another row is in its place ({reason(exc)})") from None

    def _reason(self, record: SinkRecord, error: Exception) -> str:
        if isinstance(error, DataException):
            return str(error)
        shape = shape_of(record, self._settings)
        columns = write_columns(shape, self._table, self._connection, self._settings)
        odd = shape.odd_value(record, self._table, columns)
        return str(odd) if odd is not None else "its columns cannot hold the record"


@contextmanager
def sink_table(config: Mapping[str, str], topic: str) -> Iterator[SinkTable]:
    """Yield the table that a sink of this config writes for a topic."""
    settings = SinkSettings.parse(config)
    try:
        engine = open_engine(settings.connection, writes=True)
        with database_errors("the repair"), closing(connected(engine)) as connection:
            yield SinkTable(connection, settings, topic)
    except ConnectException as exc:
        raise ReconcileError(str(exc)) from exc


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then a change in each line."""
    basis = Basis.of(job)
    found = basis.found
    events.step(f"reading the records and rows of {count_of(len(found.targets), 'finding')}")
    config, made = basis.records()
    with sink_table(config, job.origin.topics[0]) as table:
        with table.transaction():
            table.require_offsets(basis.expected)
        planned = table.plan(found.targets, made)
    counts: Counter[str] = Counter()
    for change in planned.changes:
        counts[change.kind] += change.rows
    head = {
        **basis.head(),
        "table": table.name,
        "place": _place(job.audit),
        "counts": dict(counts),
        "examples": [change.name for change in planned.changes[:10]],
        "refused": [*found.refused, *planned.refused],
    }
    job.write([head, *(change.to_json() for change in planned.changes)])


def carry_out(job: Job, events: Events, *, undo: bool) -> None:
    """Carry the plan out, or undo it."""
    head, lines = job.read()
    changes = [RowChange(**line) for line in lines]
    expected: dict[TopicPartition, int] = {}
    if undo:
        if head["place"] != _place(job.audit):
            raise ReconcileError(
                f"the connector writes to another place than {head['table']} as it was repaired",
                hint="give the connector its configuration of that time, then run the undo again",
            )
        changes = [change.undone for change in reversed(changes)]
    else:
        expected = require_unmoved(job, head)
    events.step(f"changing {count_of(sum(change.rows for change in changes), 'row')}")
    with sink_table(read_records(job)[0], job.origin.topics[0]) as table:
        table.carry_out(changes, expected, events)


def _place(audit: Spec) -> str:
    """Return a hash of where the table is; rules of a compare do not count."""
    assert isinstance(audit.right, TableSide)
    table = TableSide(url=audit.right.url, table=audit.right.table, options=audit.right.options)
    return question_of(Spec(job=audit.job, clusters={}, right=table))
