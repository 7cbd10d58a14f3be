"""Iceberg tables: rows are buffered as Arrow batches, and committed in one snapshot per interval.

A snapshot's summary holds the next offset of each Kafka partition. A task commits only if the
table's offsets of its partitions are those that the commit continues. So each row is in the table
once, and a task cannot write any more after its partitions went to another one.
"""

import logging
import random
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any
from urllib.parse import quote_plus

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException, ValidationError
from pyiceberg.manifest import DataFile

from pyconnect_api import ConnectException, DataException, Schema, SinkRecord, TopicPartition
from pyconnect_connectors.lake.arrow_types import Columns
from pyconnect_connectors.lake.catalogs import (
    add_columns,
    append_once,
    catalog_errors,
    check_new_table,
    data_files,
    evolved,
    fitting_types,
    is_commit,
    load_table,
    merged,
    misfit,
    new_table,
    open_catalog,
    stored_offsets,
)
from pyconnect_connectors.lake.settings import AUTO_CREATE, EVOLVE, SinkSettings, TableSettings
from pyconnect_connectors.lake.storage import LONGEST_NAME_BYTES, reason
from pyconnect_connectors.odd_values import place_of

LOG = logging.getLogger(__name__)
COMMIT_ATTEMPTS = 20
MOST_FITS = 100
_place = attrgetter("topic", "original_topic", "original_kafka_partition")
_offset = attrgetter("original_kafka_offset")


@dataclass(slots=True, kw_only=True)
class _Part:
    """Rows of one partition for one table, from the offset `begin` to before `end`."""

    begin: int
    end: int = 0
    batches: list[Any] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Writing:
    """A commit under way; its data files are written once, however often it is repeated."""

    commit_id: str
    rows: Any
    ends: Mapping[TopicPartition, int]
    data_files: Sequence[DataFile] | None = None


@dataclass(slots=True, kw_only=True)
class _Buffer:
    """The rows for a table; `bases` are the table's offsets at which its partitions continue."""

    parts: dict[TopicPartition, _Part] = field(default_factory=dict)
    bases: dict[TopicPartition, int | None] = field(default_factory=dict)
    size: int = 0
    writing: _Writing | None = None

    @property
    def schemas(self) -> Sequence[Any]:
        return [batch.schema for part in self.parts.values() for batch in part.batches]

    def drop(self, partition: TopicPartition) -> None:
        part = self.parts.pop(partition, None)
        self.bases.pop(partition, None)
        if part is not None:
            self.size -= sum(batch.nbytes for batch in part.batches)
            self.writing = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """How rows of a schema fit into a table; `refusal` is the reason if they do not.

    `named` are the paths of the texts and floats that name directories of the table's files.
    """

    columns: Columns
    named: Mapping[str, Sequence[int]] = field(default_factory=dict)
    refusal: str | None = None

    def check(self, records: Sequence[SinkRecord], batch: Any) -> None:
        """Raise DataException for rows that cannot be written."""
        if self.refusal is not None:
            raise DataException(f"{self.refusal} (record {place_of(records[0])})")
        for name, path in self.named.items():
            values = pc.struct_field(batch.to_struct_array(), path).to_pylist()
            for record, text in zip(records, values, strict=True):
                if isinstance(text, float) and str(text) in ("nan", "-0.0"):
                    # pyiceberg would put NaN into no partition, and -0.0 into two.
                    raise DataException(
                        f"Field {name} of {place_of(record)} is {'NaN' if text else text}, which "
                        "is no partition"
                    )
                size = len(f"{quote_plus(name)}={quote_plus(str(text or ''))}")
                if size > LONGEST_NAME_BYTES:
                    raise DataException(
                        f"Field {name} of {place_of(record)} would name a directory by {size} "
                        f"bytes; the limit is {LONGEST_NAME_BYTES}"
                    )


class TableTarget:
    """The tables of one task's partitions."""

    def __init__(
        self,
        settings: SinkSettings,
        now_ms: Callable[[], int] = lambda: int(time.monotonic() * 1000),
    ) -> None:
        assert settings.tables is not None
        self._settings = settings
        self._tables: TableSettings = settings.tables
        self._now_ms = now_ms
        self._opened_catalog: Catalog | None = None
        self._buffers: dict[str, _Buffer] = {}
        self._taken: dict[TopicPartition, int] = {}
        self._rewinds: dict[TopicPartition, int] = {}
        self._fits: dict[tuple[str, Schema], _Fit] = {}
        self._next_due_ms = now_ms() + self._tables.commit_ms

    def open(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        found = {}
        for partition in partitions:
            self._taken[partition] = 0
            # Transformations may have sent rows to other tables, whose offsets may be lower.
            if not self._settings.changes_topics:
                base = self._base(self._tables.table_of(partition.topic), partition)
                if base is not None:
                    found[partition] = self._taken[partition] = base
        return found

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            for buffer in self._buffers.values():
                buffer.drop(partition)
            self._taken.pop(partition, None)
            self._rewinds.pop(partition, None)

    def skip(self, record: SinkRecord) -> None:
        _, topic, number = _place(record)
        partition = TopicPartition(topic, number)
        if partition not in self._rewinds:
            self._taken[partition] = max(self._taken[partition], _offset(record) + 1)

    def next_offset(self, partition: TopicPartition) -> int | None:
        begins = self._begins(partition)
        return min(begins) if begins else self._taken.get(partition) or None

    def take_rewinds(self) -> Mapping[TopicPartition, int]:
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def add(self, records: Sequence[SinkRecord]) -> None:
        for (topic, original_topic, number), run in groupby(records, _place):
            partition = TopicPartition(original_topic, number)
            name = self._tables.table_of(topic)
            if self._buffer(name).writing is not None:
                self._write(name)
            if partition in self._rewinds:
                continue
            taken = self._taken[partition]
            new = [r for r in run if _offset(r) >= taken]
            valued = [r for r in new if r.value is not None]
            for schema, part in groupby(valued, attrgetter("value_schema")):
                if partition in self._rewinds:
                    break
                found = list(part)
                base, buffer = self._base(name, partition), self._buffer(name)
                rows = found if base is None else [r for r in found if _offset(r) >= base]
                if rows:
                    batch = self.batch(name, schema, rows)
                    held = buffer.parts.setdefault(partition, _Part(begin=_offset(rows[0])))
                    held.batches.append(batch)
                    held.end = _offset(rows[-1]) + 1
                    buffer.size += batch.nbytes
                self._taken[partition] = _offset(found[-1]) + 1
                if buffer.size >= self._settings.max_bytes:
                    self._write(name)
            if new and partition not in self._rewinds:
                self._taken[partition] = _offset(new[-1]) + 1

    def batch(self, name: str, schema: Schema | None, records: Sequence[SinkRecord]) -> Any:
        """Return records of one schema as rows of a table; DataException if one does not fit."""
        if schema is None:
            raise DataException("The value has no schema, which an Iceberg table needs")
        fit = self._fits.get((name, schema))
        if fit is None:
            with catalog_errors(f"Cannot read table {name}"):
                fit = self._looked_up(name, Columns(schema, self._settings.odd_values))
            if len(self._fits) >= MOST_FITS:
                self._fits.clear()
            self._fits[name, schema] = fit
        batch = fit.columns.batch(records, f"table {name}")
        fit.check(records, batch)
        return batch

    def _looked_up(self, name: str, columns: Columns) -> _Fit:
        """Return how rows fit the current table, before they are buffered with others."""
        rows, table = columns.schema, load_table(self._catalog(), name)
        buffered = self._buffer(name).schemas

        try:
            held = None if table is None else table.schema().as_arrow()
            if table is None and buffered:
                held = merged(buffered)
            if held is not None:
                evolves = self._tables.evolve or table is None
                kinds = fitting_types(held, rows, widens=evolves)
                columns = Columns(columns.connect_schema, self._settings.odd_values, narrower=kinds)
                rows = columns.schema
            if table is not None:
                schema = evolved(table, rows) if self._tables.evolve else table.schema()
                self._check_columns(name, schema, rows)
                if problem := misfit(schema, rows):
                    raise DataException(f"The rows do not fit table {name}: {problem}")
            whole = merged([*buffered, rows])
            if table is None:
                check_new_table(whole, self._tables.partition_by)
                named = [text for text in self._tables.partition_by if "(" not in text]
                return _Fit(columns=columns, named=_texts_and_floats(rows, named))
        except (pa.ArrowException, ValueError, ValidationError) as error:
            text = f"The rows do not fit table {name}: {reason(error)}"
            return _Fit(columns=columns, refusal=text)
        except DataException as error:
            return _Fit(columns=columns, refusal=str(error))
        sources = [f.source_id for f in table.spec().fields if str(f.transform) == "identity"]
        names = [schema.find_column_name(source) or "" for source in sources]
        return _Fit(columns=columns, named=_texts_and_floats(rows, names))

    def _check_columns(self, name: str, schema: Any, rows: Any) -> None:
        missing = set(rows.names) - {column.name for column in schema.columns}
        if missing:
            raise DataException(
                f"Table {name} lacks the columns {', '.join(sorted(missing))}; {EVOLVE}=true adds "
                "them"
            )

    def write_due(self) -> None:
        if self._now_ms() >= self._next_due_ms:
            for name in self._buffers:
                self._write(name)
            # The next interval begins now: otherwise slow commits would follow each other at once.
            self._next_due_ms = self._now_ms() + self._tables.commit_ms

    def finish(self, partitions: Collection[TopicPartition]) -> None:
        for name, buffer in self._buffers.items():
            if buffer.parts.keys() & set(partitions):
                self._write(name)

    def _buffer(self, name: str) -> _Buffer:
        return self._buffers.setdefault(name, _Buffer())

    def _base(self, name: str, partition: TopicPartition) -> int | None:
        """Return a table's offset of a partition; always None with at-least-once delivery."""
        bases = self._buffer(name).bases
        if partition not in bases:
            bases[partition] = None
            if self._settings.exactly_once:
                del bases[partition]
                with catalog_errors(f"Cannot read table {name}"):
                    table = load_table(self._catalog(), name)
                found = {} if table is None else stored_offsets(table, self._settings.name)
                bases[partition] = found.get(str(partition))
        return bases[partition]

    def _begins(self, partition: TopicPartition) -> list[int]:
        return [b.parts[partition].begin for b in self._buffers.values() if partition in b.parts]

    def _catalog(self) -> Catalog:
        if self._opened_catalog is None:
            self._opened_catalog = open_catalog(self._tables)
        return self._opened_catalog

    # Commits

    def _write(self, name: str) -> None:
        """Commit the rows that are buffered for a table."""
        buffer = self._buffer(name)
        if not buffer.parts:
            return
        if buffer.writing is None:
            batches = [batch for part in buffer.parts.values() for batch in part.batches]
            buffer.writing = _Writing(
                commit_id=uuid.uuid4().hex,
                rows=pa.concat_tables(
                    [pa.Table.from_batches([batch]) for batch in batches],
                    promote_options="permissive",
                ),
                ends={partition: part.end for partition, part in buffer.parts.items()},
            )
        writing = buffer.writing
        with catalog_errors(f"Cannot write table {name}"):
            is_ours = self._committed(name, buffer, writing)
        if not is_ours:
            LOG.warning("another task wrote rows of these partitions", extra={"table": name})
            for partition in writing.ends:
                # The partitions' buffered records are read again.
                self._rewinds[partition] = self._taken[partition] = min(self._begins(partition))
                for each in self._buffers.values():
                    each.drop(partition)
            return
        bases = {**buffer.bases, **writing.ends} if self._settings.exactly_once else {}
        self._buffers[name] = _Buffer(bases=bases)

    def _committed(self, name: str, buffer: _Buffer, writing: _Writing) -> bool:
        """Commit the rows; return False if another task has written rows of these partitions."""
        schema = writing.rows.schema
        for attempt in range(COMMIT_ATTEMPTS):
            try:
                table = load_table(self._catalog(), name)
                if table is None:
                    if not self._tables.auto_create:
                        raise ConnectException(
                            f"There is no table {name}; {AUTO_CREATE}=true creates it"
                        )
                    table = new_table(self._catalog(), name, schema, self._tables.partition_by)
                if self._tables.evolve:
                    add_columns(table, schema)
                self._check_columns(name, table.schema(), schema)
                if any(is_commit(s, writing.commit_id) for s in table.metadata.snapshots):
                    return True
                offsets = stored_offsets(table, self._settings.name)
                if self._settings.exactly_once and any(
                    offsets.get(str(p)) != buffer.bases.get(p) for p in writing.ends
                ):
                    return False
                if writing.data_files is None:
                    if problem := misfit(table.schema(), schema):
                        raise ConnectException(f"The rows do not fit table {name}: {problem}")
                    writing.data_files = data_files(table, writing.rows)
                offsets.update({str(p): end for p, end in writing.ends.items()})
                append_once(
                    table, writing.data_files, self._settings.name, offsets, writing.commit_id
                )
            except CommitFailedException:
                # Another task was first; the random wait gets the tasks out of step.
                time.sleep(random.uniform(0, 0.05 * (attempt + 1)))
            else:
                return True
        raise CommitFailedException(f"{COMMIT_ATTEMPTS} commits of other tasks were first")


def _texts_and_floats(rows: Any, names: Sequence[str]) -> Mapping[str, Sequence[int]]:
    """Return the index paths, by names such as `a.b`, of named fields that are texts or floats."""
    found: dict[str, Sequence[int]] = {}

    def look(fields: Any, prefix: str, path: Sequence[int]) -> None:
        for index, each in enumerate(fields):
            name, place = prefix + each.name, (*path, index)
            if pa.types.is_struct(each.type):
                look(each.type, f"{name}.", place)
            elif name in names and (
                pa.types.is_string(each.type) or pa.types.is_floating(each.type)
            ):
                found[name] = place

    look(rows, "", ())
    return found


def replace_offsets(settings: SinkSettings, offsets: Mapping[TopicPartition, int | None]) -> None:
    """Set the offsets that a user asked for in snapshots without rows; None forgets a partition."""
    assert settings.tables is not None
    by_table: dict[str, dict[str, int | None]] = {}
    for partition, offset in offsets.items():
        name = settings.tables.table_of(partition.topic)
        by_table.setdefault(name, {})[str(partition)] = offset
    with catalog_errors("Cannot change the stored offsets"):
        catalog = open_catalog(settings.tables)
        for name, changes in by_table.items():
            table = load_table(catalog, name)
            if table is None:
                continue
            changed = {**stored_offsets(table, settings.name), **changes}
            kept = {key: offset for key, offset in changed.items() if offset is not None}
            append_once(table, (), settings.name, kept, uuid.uuid4().hex)
