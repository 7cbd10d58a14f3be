"""Repairs of the table of a SqlSink by the report of its audit.

Rows are *images*: read with locks, and changed from one set of images to another. Texts are those
of the database, so that a row comes back exactly as it was:

    PostgreSQL   CAST(column AS text), and back by a cast to the column's type
    MariaDB      CAST(column AS char); bytes and bits as HEX; floats with all digits
    SQLite       values as they are stored; bytes as {"hex": "…"}
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, Table, types
from sqlalchemy.dialects import mysql
from sqlalchemy.exc import DBAPIError, IntegrityError

from pyconnect_api import ConnectException, DataException, SinkRecord, TopicPartition
from pyconnect_connectors.sql.column_types import BINARIES
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
from pyconnect_repair.plan import (
    Image,
    Place,
    Refused,
    RowChange,
    RowState,
    Wanted,
    decided,
    difference,
)
from pyconnect_repair.records import Basis, Job, read_records, require_unmoved

_Sql: TypeAlias = tuple[str, list[Any]]
_POSTGRES_TYPES = (
    "SELECT attname, format_type(atttypid, atttypmod) FROM pg_catalog.pg_attribute"
    " WHERE attrelid = CAST(%s AS regclass) AND attnum > 0 AND NOT attisdropped"
)
_COMPARED = (types.Integer, types.String, types.Date, types.Numeric, types.Uuid)
"""Types whose equality can use an index."""
_HEX = (*BINARIES, mysql.BIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column in SQL: its name, the text of its value, and a value from a text (`{}`)."""

    name: str
    text: str
    value: str
    indexed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A row of the table; `handle` finds it again in the transaction, and is empty in MariaDB."""

    handle: Sequence[Any]
    image: Image


class TableImages:
    """Rows of a table over one connection; the caller runs the transactions."""

    def __init__(self, connection: Connection, table: Table) -> None:
        dialect = connection.dialect
        self._connection = connection
        self._family = {"mariadb": "mysql"}.get(dialect.name, dialect.name)
        if self._family not in {"postgresql", "mysql", "sqlite"}:
            raise ReconcileError(f"tables of {dialect.name} cannot be repaired")
        self._mark = "?" if self._family == "sqlite" else "%s"
        self._table = dialect.identifier_preparer.format_table(table)
        self._columns = self._described(table)
        self._written_names = [column.name for column in table.columns if column.computed is None]
        self._selected = ", ".join(column.text for column in self._columns.values())
        if table.dialect_options["sqlite"]["with_rowid"] is False:
            raise ReconcileError(
                f"{self._table} is a table WITHOUT ROWID, whose rows a repair cannot tell apart",
                hint="write the rows by hand, or into a table with a rowid",
            )
        # Rows in two partitions of a table may have the same ctid.
        handles = {"postgresql": ("tableoid", "CAST(ctid AS text)"), "sqlite": ("_rowid_",)}
        self._handle: Sequence[str] = handles.get(self._family, ())
        by_handle = {
            "postgresql": "tableoid = %s AND ctid = CAST(%s AS tid)",
            "sqlite": "_rowid_ = ?",
        }
        self._by_handle = by_handle.get(self._family, "")

    def written(self, statement: str, values: Any) -> list[Image]:
        """Write rows by a statement without RETURNING; return their images."""
        if self._family == "mysql":
            query = f"{statement} RETURNING {self._selected}"
            return [self._image(row) for row in self._connection.exec_driver_sql(query, values)]
        query = f"{statement} RETURNING {', '.join(self._handle)}"
        handles = list(map(tuple, self._connection.exec_driver_sql(query, values)))
        # RETURNING of SQLite shows numbers in another form than SELECT does.
        query = f"SELECT {self._selected} FROM {self._table} WHERE {self._by_handle}"  # noqa: S608
        rows = [self._connection.exec_driver_sql(query, handle).one() for handle in handles]
        return [self._image(row) for row in rows]

    def rows(self, identity: Image) -> list[Image]:
        """Return the images of the rows of an identity, locked until the transaction ends."""
        return [found.image for found in self._found(identity)]

    def move(self, change: RowChange) -> bool:
        """Carry a change out and return True; False if that was done before.

        ReconcileError if the rows are neither those before nor those after the change.
        """
        images = (*change.before, *change.after)
        if any(image.keys() != self._columns.keys() for image in images):
            raise ReconcileError(
                f"{self._table} has other columns than when the repair was planned: nothing of"
                " this batch was changed",
                hint="give the table its columns of that time, or audit again and repair by the"
                " new report",
            )
        found = self._found(change.identity)
        match change.state_of(each.image for each in found):
            case RowState.DONE:
                return False
            case RowState.CHANGED:
                raise ReconcileError(
                    f"{change.name} has changed in the table meanwhile: nothing of this batch was"
                    " changed",
                    hint="audit again, and repair by the new report",
                )
        gone = difference(change.before, change.after)
        added = difference(change.after, change.before)
        if len(gone) == len(added) == 1:
            [old], [new] = gone, added
            # MariaDB gives columns with ON UPDATE a new time, unless a statement sets them.
            is_set = self._family == "mysql"
            changed = [name for name in self._written_names if is_set or old[name] != new[name]]
            row, values = self._row_of(found, old)
            values = [*(_driver_value(new[name]) for name in changed), *values]
            columns = [self._columns[name] for name in changed]
            set_to = ", ".join(f"{c.name} = {c.value.format(self._mark)}" for c in columns)
            self._execute(f"UPDATE {self._table} SET {set_to} WHERE {row}", values)  # noqa: S608
        else:
            for image in gone:
                row, values = self._row_of(found, image)
                self._execute(f"DELETE FROM {self._table} WHERE {row}", values)  # noqa: S608
            columns = [self._columns[name] for name in self._written_names]
            names = ", ".join(column.name for column in columns)
            given = ", ".join(column.value.format(self._mark) for column in columns)
            # Otherwise columns that are GENERATED ALWAYS AS IDENTITY would refuse their values.
            own = "OVERRIDING SYSTEM VALUE " if self._family == "postgresql" else ""
            insert = f"INSERT INTO {self._table} ({names}) {own}VALUES ({given})"
            for image in added:
                self._execute(insert, [_driver_value(image[name]) for name in self._written_names])
        if change.state_of(self.rows(change.identity)) is not RowState.DONE:
            raise ReconcileError(
                f"{change.name} is not what was written: a trigger or a rule of the table"
                " changes rows; nothing of this batch was changed"
            )
        return True

    def _image(self, values: Sequence[Any]) -> Image:
        shown = ({"hex": v.hex()} if isinstance(v, bytes) else v for v in values)
        return dict(zip(self._columns, shown, strict=True))

    def _found(self, identity: Image) -> list[_Found]:
        where, values = self._where(identity)
        lock = "" if self._family == "sqlite" else " FOR UPDATE"
        selected = ", ".join((*self._handle, self._selected))
        query = f"SELECT {selected} FROM {self._table} WHERE {where}{lock}"  # noqa: S608
        rows = self._connection.exec_driver_sql(query, tuple(values)).all()
        count = len(self._handle)
        return [_Found(handle=row[:count], image=self._image(row[count:])) for row in rows]

    def _row_of(self, found: list[_Found], image: Image) -> _Sql:
        """Return the condition of one row with this image, which is removed from `found`."""
        at = next(index for index, each in enumerate(found) if each.image == image)
        handle = found.pop(at).handle
        if self._by_handle:
            return self._by_handle, list(handle)
        row, values = self._where(image)
        return f"{row} LIMIT 1", values

    def _where(self, identity: Image) -> _Sql:
        parts, values = [], []
        for name, value in identity.items():
            column = self._columns[name]
            if value is None:
                parts.append(f"{column.name} IS NULL")
                continue
            given = _driver_value(value)
            match self._family:
                case "sqlite":
                    binary = "IS ? COLLATE BINARY"
                    parts.append(
                        f"({column.name} {binary} OR CAST({column.name} AS TEXT) {binary})"
                    )
                    values += [given, given]
                    continue
                case "mysql":
                    parts.append(f"CAST({column.text} AS BINARY) = CAST(%s AS BINARY)")
                case _:
                    parts.append(f'{column.text} COLLATE "C" = %s')
            values.append(given)
            if column.indexed:
                parts.append(f"{column.name} = {column.value.format(self._mark)}")
                values.append(given)
        return " AND ".join(parts), values

    def _execute(self, statement: str, values: Sequence[Any]) -> None:
        count = self._connection.exec_driver_sql(statement, tuple(values)).rowcount
        if count != 1:
            raise ReconcileError(
                f"a statement changed {count_of(count, 'row')} of {self._table} instead of 1"
            )

    def _described(self, table: Table) -> Mapping[str, _Column]:
        quote = self._connection.dialect.identifier_preparer.quote
        kinds: dict[str, str] = {}
        if self._family == "postgresql":
            name = self._table.replace("%%", "%")
            rows = self._connection.exec_driver_sql(_POSTGRES_TYPES, (name,))
            kinds = {str(row[0]): str(row[1]) for row in rows}
        found = {}
        for column in table.columns:
            name = quote(column.name)
            text, value = name, "{}"
            if self._family == "postgresql":
                kind = kinds[column.name]
                text, value = f"CAST({name} AS text)", f"CAST({{}} AS {kind})"
                if kind.startswith("character("):
                    # The text keeps its blanks, as in an audit; a cast would remove them.
                    text = f"textin(bpcharout({name}))"
            elif self._family == "mysql":
                text = f"CAST({name} AS CHAR)"
                if isinstance(column.type, _HEX):
                    text, value = f"HEX({name})", "UNHEX({})"
                elif isinstance(column.type, types.Float):
                    text = f"CAST({name} * 1E0 AS CHAR)"
            found[column.name] = _Column(
                name=name, text=text, value=value, indexed=isinstance(column.type, _COMPARED)
            )
        return found


def _driver_value(value: Any) -> Any:
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


BATCH = 100
"""The number of changes in one transaction."""
STATEMENT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedChanges:
    """The possible changes, and the reasons against the others."""

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
        """Return the changes of the targets; rows that are written to find them are rolled back."""
        changes: dict[str, RowChange] = {}
        refused = []
        with self.transaction() as transaction:
            for target in targets:
                try:
                    change = self._change(target, records, changes)
                    # Later changes must find the table as it is after the earlier ones.
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
        """Lock the offsets that the sink keeps; ReconcileError when they are not as expected."""
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
                    # Otherwise the driver begins the transaction only with the first change.
                    connection.exec_driver_sql("BEGIN IMMEDIATE")
                case "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL statement_timeout = '{STATEMENT_S}s'")
                    # Missing rows cannot be locked, but the advisory lock covers them.
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
        """Return the row that the sink writes for a record, and the columns that identify it."""
        connection, settings = self._connection, self._settings
        try:
            shape = shape_of(record, settings)
            if missing := sorted(set(shape.columns) - set(self._table.columns.keys())):
                raise Refused(f"the table has no columns {', '.join(missing)}")
            columns = write_columns(shape, self._table, connection, settings)
            [row] = shape.rows([record], columns)
        except DataException as exc:
            raise Refused(str(exc)) from None
        except UNFIT:
            odd = shape.odd_value(record, self._table, columns)
            said = "its columns cannot hold the record" if odd is None else str(odd)
            raise Refused(said) from None
        names = shape.parameters(settings.insert_mode)
        statement = shape.statement(self._table, settings.insert_mode, connection.dialect.name)
        # Compiled as for many rows, because SQLAlchemy adds its own RETURNING for one row.
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
        """Run in a savepoint; Refused when another row has the key of a written row."""
        try:
            with self._connection.begin_nested() as savepoint:
                yield savepoint
        except IntegrityError as exc:
            raise Refused(f"another row is in its place ({reason(exc)})") from None


@contextmanager
def sink_table(config: Mapping[str, str], topic: str) -> Iterator[SinkTable]:
    """Yield the table that a sink with this config writes for a topic."""
    settings = SinkSettings.parse(config)
    try:
        engine = open_engine(settings.connection, writes=True)
        with database_errors("the repair"), closing(connected(engine)) as connection:
            yield SinkTable(connection, settings, topic)
    except ConnectException as exc:
        raise ReconcileError(str(exc)) from exc


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then one change per line."""
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
    """Return a hash of the table's address, without the rules of the compare."""
    assert isinstance(audit.right, TableSide)
    table = TableSide(url=audit.right.url, table=audit.right.table, options=audit.right.options)
    return question_of(Spec(job=audit.job, clusters={}, right=table))
