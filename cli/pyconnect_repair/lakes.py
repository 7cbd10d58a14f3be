"""Repairs of the Iceberg table of a LakeSink by the report of its audit: one commit each.

The sink's own code writes files with the missing rows, which are appended. A file with surplus
copies of a row is replaced by a file with its other rows, because a delete by a condition would
remove all equal rows. The plan has no rows; the repair makes them of the records again and compares
them.

The table's snapshot shows the state of a repair. With the snapshot of the report the repair is to
do; with a snapshot of the repair's id in the history it is done; any other snapshot ends it.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.table import FileScanTask
from pyiceberg.table.snapshots import ancestors_of

from pyconnect_api import ConnectException, DataException, RetriableException, SinkRecord
from pyconnect_connectors.lake.catalogs import (
    catalog_errors,
    commit_once,
    data_files,
    is_commit,
    load_table,
    misfit,
    open_catalog,
)
from pyconnect_connectors.lake.settings import SinkSettings
from pyconnect_connectors.lake.table_target import TableTarget
from pyconnect_reconcile.data_sides import ICEBERG, FileSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import count_of
from pyconnect_repair.plan import Place, Refused, Wanted
from pyconnect_repair.records import Basis, Job, read_records, require_unmoved

AUDIT_AGAIN = "audit again, and repair by the new report"
NEWEST_FORMAT = 2
"""Files of later formats have deletion vectors and row ids, which a rewritten file would lose."""


@dataclass(slots=True, kw_only=True)
class LakeChange:
    """The rows that a repair adds and removes.

    `added` are rows; `dropped` are indexes of rows by the path of their file.
    """

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    added: list[Any] = field(default_factory=list)
    dropped: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    digest: Any = field(default_factory=hashlib.sha256)

    def refuse(self, target: Wanted, reason: str) -> None:
        self.refused.append(f"{target.kind}: {target.name}: {reason}")


@dataclass(slots=True, kw_only=True)
class _Looked:
    """A target with the row of its record, and the places of its copies in the table."""

    target: Wanted
    row: Any
    copies: list[tuple[str, int]] = field(default_factory=list)


class LakeTable:
    """The Iceberg table of a LakeSink, as it is at the time of construction."""

    def __init__(self, config: Mapping[str, str], topic: str, events: Events) -> None:
        settings = SinkSettings.parse(config)
        if settings.tables is None:
            raise ReconcileError("files of a lake are not repaired, only its Iceberg tables")
        # A repair commits rows only: it neither makes a table nor changes its columns.
        tables = replace(settings.tables, auto_create=False, evolve=False)
        self.name = tables.table_of(topic)
        found = load_table(open_catalog(tables), self.name)
        if found is None:
            raise ReconcileError(f"the table {self.name} is not there any more")
        self._tables, self._table, self._events = tables, found, events
        self._target = TableTarget(replace(settings, tables=tables))
        self._tasks: dict[str, list[FileScanTask]] = {}

    def require(self, uuid: object) -> None:
        """Raise ReconcileError unless the table is the one of the report."""
        if str(self._table.metadata.table_uuid) != uuid:
            raise ReconcileError(
                f"{self.name} is another table than that of the report", hint=AUDIT_AGAIN
            )

    def require_snapshot(self, expected: object) -> None:
        """Raise ReconcileError unless the table still has the snapshot of the audit."""
        now = self._table.metadata.current_snapshot_id
        if now is None or now != expected:
            raise ReconcileError(
                f"{self.name} has changed since the report: its snapshot is {now}, not {expected}",
                hint=AUDIT_AGAIN,
            )

    def committed(self, identity: str) -> int | None:
        """Return the snapshot of a repair, if it is in the table's history."""
        history = ancestors_of(self._table.current_snapshot(), self._table.metadata)
        return next((each.snapshot_id for each in history if is_commit(each, identity)), None)

    def change(
        self, targets: Sequence[Wanted], made: Mapping[Place, SinkRecord | None]
    ) -> LakeChange:
        """Return the change for the targets; it reads every file of the table."""
        found, looked = LakeChange(), dict[str, _Looked]()
        for target in targets:
            try:
                record = None if target.place is None else made[target.place]
                if record is None or record.value is None:
                    raise Refused("the connector makes no row of a record")
                if (name := self._tables.table_of(str(record.topic))) != self.name:
                    raise Refused(f"the connector writes the record to {name}")
                # Rows of the sink's own code.
                batch = self._target.batch(self.name, record.value_schema, [record])
                if problem := misfit(self._table.schema(), batch.schema):
                    raise Refused(problem)
                row = pa.Table.from_batches([batch])
                [text] = _texts(self._held(row))
                if text in looked:
                    raise Refused(f"{looked[text].target.name} has the same row in the table")
                looked[text] = _Looked(target=target, row=row)
            except (Refused, DataException) as exc:
                found.refuse(target, str(exc))
        self._find(looked)
        for text, each in sorted(looked.items()):
            target, surplus = each.target, each.copies[each.target.expected :]
            if reason := self._refusal(each, surplus):
                found.refuse(target, reason)
                continue
            found.digest.update(repr((target, text)).encode())
            found.examples.append(target.name)
            found.counts[target.kind] += abs(target.expected - target.there)
            found.added += [each.row] * (target.expected - target.there)
            for path, index in surplus:
                found.dropped[path].append(index)
        return found

    def commit(self, change: LakeChange, identity: str) -> int:
        """Commit a change; return the new snapshot. ReconcileError if the table has changed."""
        added, removed = [], []
        if change.added:
            rows = pa.concat_tables(change.added, promote_options="permissive")
            added += data_files(self._table, rows)
        for path, indexes in change.dropped.items():
            rows, gone = self._read(path), {*indexes}
            is_kept = [number not in gone for number in range(rows.num_rows)]
            kept = rows.filter(pa.array(is_kept, pa.bool_()))
            removed += [task.file for task in self._tasks[path]]
            added += data_files(self._table, kept) if kept.num_rows else []
        commit_once(self._table, added, identity, removed=removed)
        done = self._table.metadata.current_snapshot_id
        assert done is not None
        return done

    def undo(self, base: int, identity: str) -> None:
        """Roll the table back to the snapshot before the repair, unless it is there already."""
        now = self._table.metadata.current_snapshot_id
        if now == base:
            return
        if now is None or now != self.committed(identity):
            raise ReconcileError(
                f"{self.name} has got snapshots since the repair, which an undo would take back"
            )
        with self._table.manage_snapshots() as managed:
            managed.rollback_to_snapshot(base)

    def _held(self, rows: Any) -> Any:
        """Return rows with the columns and types of the table."""
        schema = self._table.schema().as_arrow()
        try:
            columns = [
                rows[name].cast(kind)
                if name in rows.column_names
                else pa.nulls(rows.num_rows, kind)
                for name, kind in zip(schema.names, schema.types, strict=True)
            ]
        except pa.ArrowException:
            raise Refused("its columns cannot be compared with those of the table") from None
        return pa.table(columns, names=schema.names)

    def _find(self, looked: Mapping[str, _Looked]) -> None:
        if not looked:
            return
        for task in self._table.scan().plan_files():
            self._tasks.setdefault(task.file.file_path, []).append(task)
        wanted = pa.concat_tables([self._held(each.row) for each in looked.values()])
        for number, path in enumerate(self._tasks, 1):
            self._events.step(f"reading file {number:,} of {len(self._tasks):,} of {self.name}")
            rows = self._held(self._read(path))
            alike = pa.repeat(True, rows.num_rows)
            for column in wanted.schema:
                # Other types lack this comparison: their rows are compared as texts only.
                with suppress(pa.ArrowNotImplementedError):
                    if not pa.types.is_floating(column.type):
                        values = wanted[column.name].combine_chunks()
                        alike = pc.and_(alike, pc.is_in(rows[column.name], value_set=values))
            at = pc.indices_nonzero(alike)
            for text, index in zip(_texts(rows.take(at)), at.to_pylist(), strict=True):
                if text in looked:
                    looked[text].copies.append((path, index))

    def _refusal(self, each: _Looked, surplus: Sequence[tuple[str, int]]) -> str | None:
        if (there := len(each.copies)) != each.target.there:
            return (
                f"the table has {there} rows like the one that the sink would write, and the audit"
                f" counted {each.target.there}"
            )
        files = [task for path, _ in surplus for task in self._tasks[path]]
        later = self._table.format_version > NEWEST_FORMAT
        if surplus and (later or any(task.delete_files for task in files)):
            return "its file has deletes of another writer, or is of a format that is not rewritten"
        return None

    def _read(self, path: str) -> Any:
        """Return the rows of a file, as often as the table names it."""
        table = self._table
        scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
        return scan.to_table(self._tasks[path])


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then one target per line."""
    basis = Basis.of(job)
    base = basis.report.get("iceberg", {}).get("right")
    if base is None:
        raise ReconcileError(
            "the report does not say which snapshot of an Iceberg table it compared",
            hint="audit the connector's table again",
        )
    found = basis.found
    events.step(f"reading the records of {count_of(len(found.targets), 'finding')}")
    config, made = basis.records()
    with _lake_table(job, config, events) as table:
        table.require(base["table_uuid"])
        table.require_snapshot(base["snapshot_id"])
        change = table.change(found.targets, made)
    head = {
        **basis.head(),
        **base,
        "table": table.name,
        "digest": change.digest.hexdigest(),
        "counts": dict(change.counts),
        "examples": change.examples[:10],
        "refused": [*found.refused, *change.refused],
    }
    job.write([head, *map(asdict, found.targets)])


def carry_out(job: Job, events: Events, *, undo: bool) -> None:
    """Carry the plan out, or undo it."""
    head, lines = job.read()
    identity, total = f"repair-{job.rows.stem}", sum(head["counts"].values())
    if undo:
        with _lake_table(job, read_records(job)[0], events) as table:
            table.require(head["table_uuid"])
            table.undo(head["snapshot_id"], identity)
        return
    require_unmoved(job, head)
    targets = [Wanted(**{**line, "place": tuple(line["place"])}) for line in lines]
    with _lake_table(job, read_records(job)[0], events) as table:
        table.require(head["table_uuid"])
        snapshot = table.committed(identity)
        if snapshot is None:
            table.require_snapshot(head["snapshot_id"])
            _, made = read_records(job, [each.place for each in targets if each.place])
            change = table.change(targets, made)
            if change.digest.hexdigest() != head["digest"]:
                raise ReconcileError(
                    "the connector makes other rows of the records than when this was planned",
                    hint="undo the repair, which has changed nothing, and begin again",
                )
            events.step(f"committing {count_of(total, 'row')} of {table.name}")
            snapshot = table.commit(change, identity)
    events.committed(snapshot)
    events.progress(total, total)


@contextmanager
def _lake_table(job: Job, config: Mapping[str, str], events: Events) -> Iterator[LakeTable]:
    side, topic = job.audit.right, job.origin.topics[0]
    assert isinstance(side, FileSide)
    try:
        with catalog_errors(f"Cannot repair {side.paths[0]}"):
            table = LakeTable(config, topic, events)
            if side.format != ICEBERG or side.paths != (table.name,):
                raise ReconcileError(f"the report is not of {table.name}, which the sink writes")
            yield table
    except ConnectException as exc:
        hint = "run the same command again: it finds what was committed"
        passing = isinstance(exc, RetriableException)
        raise ReconcileError(str(exc), hint=hint if passing else None) from exc


def _texts(rows: Any) -> list[str]:
    return list(map(repr, rows.to_pylist()))
