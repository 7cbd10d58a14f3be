"""Files of rows: which are open, when they are finished, and how they become visible.

The open files of a Kafka partition are finished together. Their rows are one commit, from
one offset to another (see `commit_log`). Each file is named after its first row.
"""

import logging
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

from pyconnect_api import (
    ConnectException,
    DataException,
    RetriableException,
    Schema,
    SinkRecord,
    TopicPartition,
    Type,
    project,
)
from pyconnect_connectors.lake.commit_log import Commit, CommitLog
from pyconnect_connectors.lake.encoders import Encoder, Encoders
from pyconnect_connectors.lake.partitioners import Clock, partitioner_of
from pyconnect_connectors.lake.settings import Compatibility, SinkSettings
from pyconnect_connectors.lake.storage import Storage

LOG = logging.getLogger(__name__)
_place = attrgetter("original_topic", "original_kafka_partition")
_WIDER = ((Type.INT8, Type.INT16, Type.INT32, Type.INT64), (Type.FLOAT32, Type.FLOAT64))
"""Number types by kind; each type keeps the values of those before it."""


@dataclass(slots=True, kw_only=True)
class _OpenFile:
    path: str
    encoder: Encoder
    rows: int = 0


@dataclass(slots=True, kw_only=True)
class _Writing:
    """A commit that is being written; `contents`: by path, the files that may be missing."""

    commit: Commit
    contents: dict[str, Any]
    is_decided: bool = False
    may_exist: bool = False


@dataclass(slots=True, kw_only=True)
class _Buffer:
    """The open rows of one partition, from the first row of the next commit on."""

    next: int = 0
    start: int | None = None
    begin_ms: int | None = None
    schema: Schema | None = None
    files: dict[tuple[str, str], _OpenFile] = field(default_factory=dict)
    writing: _Writing | None = None
    unfinished: Commit | None = None
    last_commit: int | None = None

    def committed(self, commit: Commit) -> None:
        """Empty the buffer after a commit."""
        self.next = max(self.next, commit.end)
        self.last_commit = commit.start
        self.start = self.begin_ms = self.schema = self.writing = self.unfinished = None
        self.files = {}


class FileTarget:
    """The files of one task's partitions."""

    def __init__(
        self,
        settings: SinkSettings,
        storage: Storage,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        files = self._files = settings.files
        self._settings = settings
        self._storage = storage
        self._now_ms = now_ms
        self._clock = Clock(files)
        self._directories = partitioner_of(files, self._clock)
        self._encoders = Encoders(settings.format, files, settings.odd_values)
        self._log = (
            CommitLog(storage, files.topics_dir, settings.name) if settings.exactly_once else None
        )
        self._writer = uuid.uuid4().hex
        self._buffers: dict[TopicPartition, _Buffer] = {}
        self._rewinds: dict[TopicPartition, int] = {}
        self._next_due_ms = self._due_after(now_ms())

    def open(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        return {p: offset for p in partitions if (offset := self._open(p)) is not None}

    def _open(self, partition: TopicPartition) -> int | None:
        buffer = _Buffer()
        position = None if self._log is None else self._log.position(partition)
        if position is not None:
            buffer.next = position.offset
            buffer.unfinished = position.unfinished
        self._buffers[partition] = buffer
        return None if position is None else position.offset

    def close(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            self._buffers.pop(partition, None)
            self._rewinds.pop(partition, None)

    def next_offset(self, partition: TopicPartition) -> int | None:
        buffer = self._buffers.get(partition)
        if buffer is None:
            return None
        return buffer.start if buffer.start is not None else buffer.next or None

    def take_rewinds(self) -> Mapping[TopicPartition, int]:
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def skip(self, record: SinkRecord) -> None:
        partition = TopicPartition(*_place(record))
        if partition not in self._rewinds:
            buffer = self._buffers[partition]
            buffer.next = max(buffer.next, record.original_kafka_offset + 1)

    def write_due(self) -> None:
        # The due time changes once an interval, and also when the wall clock is set back.
        if self._next_due_ms != (due_ms := self._due_after(self._now_ms())):
            self.finish(list(self._buffers))
            self._next_due_ms = due_ms

    def _due_after(self, now_ms: int) -> int | None:
        interval = self._files.schedule_ms
        return None if interval is None else (now_ms // interval + 1) * interval

    def finish(self, partitions: Collection[TopicPartition]) -> None:
        for partition in partitions:
            buffer = self._buffers.get(partition)
            # The end of an earlier task's commit is decided, and its rows are not complete yet.
            if buffer is not None and buffer.unfinished is None:
                self._write(partition, buffer)

    def add(self, records: Sequence[SinkRecord]) -> None:
        for place, run in groupby(records, _place):
            partition = TopicPartition(*place)
            buffer = self._buffers[partition]
            if partition in self._rewinds:
                continue
            if buffer.writing is not None:
                self._write(partition, buffer)
            new = [r for r in run if r.original_kafka_offset >= buffer.next]
            begin = 0
            while begin < len(new) and partition not in self._rewinds:
                known = buffer.unfinished
                if known is not None and buffer.next >= known.end and buffer.start is None:
                    # Kafka does not have the commit's records any more.
                    buffer.unfinished = None
                if self._begins_another(buffer, new[begin]):
                    self._write(partition, buffer)
                    continue
                count = self._fitting(buffer, new, begin)
                chunk = new[begin : begin + count]
                begin += count
                self._append(buffer, [r for r in chunk if r.value is not None])
                buffer.next = chunk[-1].original_kafka_offset + 1
                if buffer.unfinished is None:
                    is_full = any(
                        f.rows >= self._files.flush_size
                        or f.encoder.size >= self._settings.max_bytes
                        for f in buffer.files.values()
                    )
                else:
                    is_full = buffer.next >= buffer.unfinished.end
                if is_full:
                    self._write(partition, buffer)

    def _begins_another(self, buffer: _Buffer, record: SinkRecord) -> bool:
        """Return whether files have to be finished before a record can be added."""
        if buffer.start is None:
            return False
        if buffer.unfinished is not None:
            return record.original_kafka_offset >= buffer.unfinished.end
        if record.value is None:
            return False
        schema, held = record.value_schema, buffer.schema
        if self._encoders.uses_schemas and schema is not held and schema != held:
            if self._settings.compatibility is Compatibility.NONE:
                return True
            # The projection refuses a record without a schema beside one that has it.
            if (
                schema is not None
                and held is not None
                and (_version(schema) > _version(held) or not _keeps(schema, held))
            ):
                return True
        limit = self._files.rotate_ms
        if limit is None or buffer.begin_ms is None:
            return False
        return self._clock.has_passed(limit, buffer.begin_ms, record)

    def _fitting(self, buffer: _Buffer, records: Sequence[SinkRecord], begin: int) -> int:
        """Return how many of the records fit into the open files, at least one."""
        most = max((file.rows for file in buffer.files.values()), default=0)
        end = min(len(records), begin + max(1, self._files.flush_size - most))
        commit = buffer.unfinished
        first = records[begin]
        times = self._files.rotate_ms is not None
        schema = first.value_schema
        begin_ms = buffer.begin_ms
        part = records[begin:end]
        if commit is None and not times:
            others = [r for r in part if r.value_schema is not schema or r.topic != first.topic]
            if not others:
                return len(part)
        for index in range(begin + 1, end):
            record = records[index]
            if record.topic != first.topic:
                return index - begin
            if commit is not None:
                if record.original_kafka_offset >= commit.end:
                    return index - begin
                continue
            if record.value is None:
                continue
            if record.value_schema is not schema and record.value_schema != schema:
                return index - begin
            if times:
                begin_ms = self._clock.time_ms(first) if begin_ms is None else begin_ms
                if self._clock.has_passed(self._files.rotate_ms or 0, begin_ms, record):
                    return index - begin
        return end - begin

    def _append(self, buffer: _Buffer, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        first = records[0]
        begin_ms = None if self._files.rotate_ms is None else self._clock.time_ms(first)
        schema = first.value_schema if buffer.start is None else buffer.schema
        if self._encoders.uses_schemas and first.value_schema != schema:
            records = [_projected(record, schema) for record in records]
        directories = self._directories(records)
        groups: dict[str, list[SinkRecord]] = {}
        if isinstance(directories, str):
            groups[directories] = list(records)
        else:
            for record, directory in zip(records, directories, strict=True):
                groups.setdefault(directory, []).append(record)
        prepared = []
        for directory, rows in groups.items():
            file = buffer.files.get((str(first.topic), directory))
            if file is None:
                # The original topic: a transformation may give several topics one name.
                name = (
                    f"{first.original_topic}+{first.original_kafka_partition}"
                    f"+{rows[0].original_kafka_offset:0{self._files.pad_width}}"
                    f"{self._encoders.suffix}"
                )
                place = (self._files.topics_dir, str(first.topic), directory, name)
                path = "/".join(filter(None, place))
                self._storage.check_path(path)
                file = _OpenFile(path=path, encoder=self._encoders.open(schema))
            prepared.append(
                (directory, file, file.encoder.prepared(rows, f"file {file.path}"), len(rows))
            )
        # No step fails from here on, so a value that does not fit has changed nothing.
        for directory, file, part, count in prepared:
            file.encoder.add(part)
            file.rows += count
            buffer.files[str(first.topic), directory] = file
        if buffer.start is None:
            buffer.start, buffer.begin_ms = first.original_kafka_offset, begin_ms
            buffer.schema = schema

    # Commits

    def _write(self, partition: TopicPartition, buffer: _Buffer) -> None:
        """Make the buffered rows of a partition visible."""
        if buffer.writing is None:
            if buffer.start is None:
                return
            buffer.writing = self._begun(buffer, buffer.start)
        writing = buffer.writing
        decided = writing.commit
        if self._log is not None and not writing.is_decided:
            try:
                decided = self._log.decide(partition, writing.commit)
            except RetriableException:
                writing.may_exist = True
                raise
            writing.is_decided = decided == writing.commit
        if decided != writing.commit:
            LOG.warning(
                "another task wrote these offsets; continuing behind them",
                extra={"partition": str(partition), "offset": decided.start},
            )
            offset = self._open(partition)
            assert offset is not None
            self._rewinds[partition] = offset
            return
        self._store(writing)
        previous = buffer.last_commit
        buffer.committed(writing.commit)
        if self._log is not None and previous is not None:
            try:
                self._log.forget(partition, previous)
            except ConnectException as error:
                LOG.warning("an old commit was not deleted", extra={"reason": str(error)})

    def _begun(self, buffer: _Buffer, start: int) -> _Writing:
        unfinished = buffer.unfinished
        paths = tuple(file.path for file in buffer.files.values())
        commit = Commit(start=start, end=buffer.next, files=paths, writer=self._writer)
        if unfinished is not None:
            if set(paths) != set(unfinished.files):
                raise ConnectException(
                    f"The files of offsets {unfinished.start} to {unfinished.end - 1} were begun "
                    "with other settings, and not all of them were written. Restore the settings "
                    f"until this is done: {', '.join(unfinished.files)}"
                )
            commit = unfinished
        contents = {file.path: file.encoder.finish() for file in buffer.files.values()}
        return _Writing(
            commit=commit,
            contents=contents,
            is_decided=unfinished is not None,
            may_exist=unfinished is not None,
        )

    def _store(self, writing: _Writing) -> None:
        # All tasks write the file of the commit's first row first, so only one gets past it.
        for path in writing.commit.files:
            if path not in writing.contents:
                continue
            created = True
            try:
                if self._log is None:
                    self._storage.replace(path, writing.contents[path])
                else:
                    created = self._storage.create(path, writing.contents[path])
            except RetriableException:
                writing.may_exist = True
                raise
            if not created and not writing.may_exist:
                raise ConnectException(
                    f"{path} exists already and is not of this commit. Another connector writes to "
                    "the same directory, or offsets were changed: delete files whose rows are to "
                    "be written again"
                )
            del writing.contents[path]


def _version(schema: Schema) -> int:
    return -1 if schema.version is None else schema.version


def _keeps_inner(source: Schema | None, target: Schema | None) -> bool:
    return source is not None and target is not None and _keeps(source, target)


def _keeps(source: Schema, target: Schema) -> bool:
    """Return whether values can be projected to another schema without loss."""
    if source.optional and (not target.optional or source.default is not None):
        # A null would become the default.
        return False
    if (source.name, source.parameters) != (target.name, target.parameters):
        return False
    if source.type is not target.type:
        return any(
            source.type in kinds and target.type in kinds[kinds.index(source.type) :]
            for kinds in _WIDER
        )
    match source.type:
        case Type.STRUCT:
            given = {field.name: field.schema for field in source.fields}
            wanted = {field.name: field.schema for field in target.fields}
            further = [kind for name, kind in wanted.items() if name not in given]
            return all(kind.optional or kind.default is not None for kind in further) and all(
                name in wanted and _keeps(kind, wanted[name]) for name, kind in given.items()
            )
        case Type.ARRAY:
            return _keeps_inner(source.value_schema, target.value_schema)
        case Type.MAP:
            keys = _keeps_inner(source.key_schema, target.key_schema)
            return keys and _keeps_inner(source.value_schema, target.value_schema)
    return True


def _projected(record: SinkRecord, schema: Schema | None) -> SinkRecord:
    if record.value_schema is None or schema is None:
        raise DataException("Records with and without a schema cannot be in one file")
    value = project(record.value_schema, record.value, schema)
    return record.new_record(
        record.topic,
        record.kafka_partition,
        record.key_schema,
        record.key,
        schema,
        value,
        record.timestamp,
    )
