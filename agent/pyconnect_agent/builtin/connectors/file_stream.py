"""FileStreamSource and FileStreamSink: lines of a file to a topic and back.

Kafka: `org.apache.kafka.connect.file`, whose class names are aliases of these. Differences, all on
purpose: positions count bytes (Kafka counts characters but skips bytes), buffered lines are not
held back at a batch's end, truncation is noticed, write errors are not swallowed. FileStreamSink
delivers at least once: a batch may be appended again.

The source reads a file or standard input. Python's child processes find `/dev/null` at descriptor
0; the fork server imports this module before that happens, and children inherit the copy.
"""

import contextlib
import errno
import logging
import operator
import os
import re
import selectors
import time
from collections.abc import Mapping, Sequence
from typing import overload

from pyconnect_agent.core.plugin_catalog import ApachesPlugin
from pyconnect_api import (
    STRING_SCHEMA,
    ConfigDef,
    ConnectException,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    NonEmptyString,
    Range,
    RetriableException,
    SinkConnector,
    SinkRecord,
    SinkRecords,
    SinkTask,
    SourceConnector,
    SourceRecords,
    SourceTask,
    TopicPartition,
    ValidString,
)
from pyconnect_api.configdef import define_table
from pyconnect_api.java_text import to_string

DESCRIPTOR: int | None = None
"""A copy of descriptor 0 as it was when this module was imported; None without one."""
with contextlib.suppress(OSError):  # started without a standard input
    DESCRIPTOR = os.dup(0)

LOG = logging.getLogger(__name__)

FILE = "file"
TOPIC = "topic"
BATCH_SIZE = "batch.size"
ON_TRUNCATE = "on.truncate"

FILENAME_FIELD = "filename"
POSITION_FIELD = "position"

CHUNK_BYTES = 256 * 1024
IDLE_WAIT_S = 1.0
IDLE_SLICE_S = 0.1

_SOURCE_TABLE = """
file  STRING  HIGH  ~
    Source filename. If not specified, the standard input will be used
topic  STRING  HIGH  !
    The topic to publish data to
batch.size  INT  LOW  2000
    The maximum number of records the source task can read from the file each time it is polled
on.truncate  STRING  LOW  wait
    What to do when the file became shorter than the position in it: wait until it has outgrown the
    position, restart at its beginning, or fail the task
"""


def source_config_def() -> ConfigDef:
    """Return the settings of the source connector."""
    return define_table(
        ConfigDef(),
        _SOURCE_TABLE,
        {
            TOPIC: NonEmptyString(),
            BATCH_SIZE: Range.at_least(1),
            ON_TRUNCATE: ValidString(("wait", "restart", "fail")),
        },
    )


class _Offsets(Sequence[Mapping[str, object]]):
    """Source offsets of lines, each made when it is read."""

    def __init__(self, positions: Sequence[int | None]) -> None:
        self._positions = positions

    def __len__(self) -> int:
        return len(self._positions)

    @overload
    def __getitem__(self, index: int) -> Mapping[str, object]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Mapping[str, object]]: ...
    def __getitem__(
        self, index: int | slice
    ) -> Mapping[str, object] | Sequence[Mapping[str, object]]:
        if isinstance(index, slice):
            return _Offsets(self._positions[index])
        return {POSITION_FIELD: self._positions[index]}


class FileStreamSourceTask(ApachesPlugin, SourceTask):
    """A task that reads one file; a record's source offset is the position after its line."""

    java_name = "org.apache.kafka.connect.file.FileStreamSourceTask"

    def __init__(self) -> None:
        self._filename: str | None = None
        self._topic = ""
        self._batch_size = 0
        self._on_truncate = "wait"
        self._descriptor: int | None = None
        self._splitter = LineSplitter()
        self._lines: list[str] = []
        self._positions: list[int | None] = []
        self._partition: Mapping[str, object] = {FILENAME_FIELD: None}
        self._truncation_seen = False

    def start(self, props: Mapping[str, str]) -> None:
        config = source_config_def().parse(props)
        self._filename = str(config[FILE]) if config[FILE] else None
        self._topic = str(config[TOPIC])
        self._batch_size = int(str(config[BATCH_SIZE]))
        self._on_truncate = str(config[ON_TRUNCATE])
        self._partition = {FILENAME_FIELD: self._filename}
        if self._filename is None:
            if DESCRIPTOR is None:
                raise ConnectException("The worker has no standard input to read")
            self._descriptor = DESCRIPTOR

    def poll(self) -> SourceRecords | None:
        if self._descriptor is None and not self._open():
            return None
        while len(self._lines) < self._batch_size and (data := self._read()):
            position = self._splitter.position
            lines, positions = self._splitter.feed(data)
            try:
                self._lines += [line.decode() for line in lines]
            except UnicodeDecodeError:
                self._lines += [line.decode("utf-8", "replace") for line in lines]
            if self._filename is None:
                self._positions += [None] * len(lines)
            elif positions is not None:
                self._positions += positions
            else:
                self._positions += [position := position + len(line) + 1 for line in lines]
        if not self._lines:
            self._wait_for_data()
            return None
        size = self._batch_size
        texts, self._lines = self._lines[:size], self._lines[size:]
        ends, self._positions = self._positions[:size], self._positions[size:]
        return SourceRecords(
            self._partition,
            _Offsets(ends),
            self._topic,
            STRING_SCHEMA,
            texts,
            timestamp=int(time.time() * 1000),
        )

    def stop(self) -> None:
        if self._descriptor is not None and self._filename is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _open(self) -> bool:
        """Open the file at the stored position; return False if it does not exist yet."""
        assert self._filename is not None
        try:
            descriptor = os.open(self._filename, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            LOG.warning("file not found, waiting for it", extra={"file": self._filename})
            self.context.stop_requested.wait(IDLE_WAIT_S)
            return False
        except OSError as exc:
            raise ConnectException(f"Failed to open {self._filename}: {exc.strerror}") from exc
        try:
            offset = self.context.offset_storage_reader.offset(self._partition)
            position = (offset or {}).get(POSITION_FIELD)
            if position is None:
                position = 0
            if not isinstance(position, int) or isinstance(position, bool):
                raise ConnectException("Offset position is the incorrect type")
            if position:
                os.lseek(descriptor, position, os.SEEK_SET)
            os.read(descriptor, 0)
        except OSError as exc:
            os.close(descriptor)
            raise ConnectException(f"Failed to read {self._filename}: {exc.strerror}") from exc
        except ConnectException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        self._splitter = LineSplitter(position)
        return True

    def _read(self) -> bytes:
        """Return the bytes that can be read without waiting; none at the end and after an error."""
        assert self._descriptor is not None
        try:
            if self._filename is None and not _is_readable(self._descriptor):
                return b""
            return os.read(self._descriptor, CHUNK_BYTES)
        except OSError:
            # As in Kafka, a stream that fails counts as a stream without new data.
            LOG.warning("read failed", exc_info=True, extra={"file": self._filename})
            return b""

    def _wait_for_data(self) -> None:
        """Wait up to a second for more data, or until the worker asks the task to stop."""
        assert self._descriptor is not None
        for _ in range(int(IDLE_WAIT_S / IDLE_SLICE_S)):
            if self.context.stop_requested.wait(IDLE_SLICE_S):
                return
            if self._filename is None:
                if _is_readable(self._descriptor):
                    return
            elif self._has_grown():
                return

    def _has_grown(self) -> bool:
        assert self._descriptor is not None
        position = os.lseek(self._descriptor, 0, os.SEEK_CUR)
        size = os.fstat(self._descriptor).st_size
        if size >= position:
            self._truncation_seen = False
            return size > position
        if not self._truncation_seen:
            self._truncation_seen = True
            LOG.warning(
                "file is shorter than the position in it",
                extra={"file": self._filename, "size": size, "position": position},
            )
        match self._on_truncate:
            case "restart":
                os.lseek(self._descriptor, 0, os.SEEK_SET)
                self._splitter = LineSplitter()
                return True
            case "fail":
                raise ConnectException(
                    f"File {self._filename} has {size} bytes, fewer than the position {position} "
                    f"in it. Set '{ON_TRUNCATE}' to 'restart' to read it from its beginning."
                )
            case _:
                return False


def _is_readable(descriptor: int) -> bool:
    # Not epoll: standard input may be a regular file.
    with selectors.PollSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        return bool(selector.select(0))


_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\n|\r(?!\Z))")


class LineSplitter:
    """A splitter of a growing stream into lines, which end with LF, CRLF or CR.

    A CR that is the last byte so far is held back, because an LF may follow. Bytes after the last
    terminator are kept until the next one. `position` is that after the last returned line, in
    bytes from the start of the stream.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> tuple[list[bytes], list[int] | None]:
        """Return the lines that `data` completes, and the position after each of them.

        Positions are None if LF alone terminated each line.
        """
        has_return = b"\r" in data or (bool(self._rest) and self._rest[-1].endswith(b"\r"))
        if not has_return:
            end = data.rfind(b"\n")
            if end < 0:
                if data:
                    self._rest.append(data)
                return [], None
            complete = data[:end] if not self._rest else b"".join((*self._rest, data[:end]))
            if b"\r" not in complete:
                self._rest = [data[end + 1 :]] if end + 1 < len(data) else []
                self.position += len(complete) + 1
                return complete.split(b"\n"), None
        text = b"".join((*self._rest, data))
        lines: list[bytes] = []
        positions: list[int] = []
        start, end = self.position, 0
        for match in _LINE.finditer(text):
            lines.append(match.group(1))
            end = match.end()
            positions.append(start + end)
        self._rest = [text[end:]] if end < len(text) else []
        self.position = start + end
        return lines, positions


STANDARD_OUTPUT = 1
RETRY_MS = 1_000
_SINK_TABLE = """
file  STRING  HIGH  ~
    Destination filename. If not specified, the standard output will be used. Delivery is
    at-least-once: after a failure, lines may be appended again. LakeSink writes files exactly once.
"""

TEMPORARY_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EINTR, errno.ENOMEM})


def sink_config_def() -> ConfigDef:
    """Return the settings of the sink connector."""
    return define_table(ConfigDef(), _SINK_TABLE)


class FileStreamSinkTask(ApachesPlugin, SinkTask):
    """A task that appends to one file; tasks mix whole lines only, as each `put` is one write."""

    java_name = "org.apache.kafka.connect.file.FileStreamSinkTask"

    def __init__(self) -> None:
        self._filename: str | None = None
        self._descriptor: int | None = None
        self._unwritten = b""
        self._batch: Sequence[SinkRecord] = ()

    def start(self, props: Mapping[str, str]) -> None:
        config = sink_config_def().parse(props)
        self._filename = None if config[FILE] is None else str(config[FILE])
        if self._filename is None:
            self._descriptor = STANDARD_OUTPUT
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            self._descriptor = os.open(self._filename, flags, 0o666)
        except OSError as exc:
            raise ConnectException(
                f"Couldn't find or create file '{self._filename}' for FileStreamSinkTask"
            ) from exc

    def put(self, records: Sequence[SinkRecord]) -> None:
        if not records:
            return
        # The worker repeats the same records when the last write ended within them.
        is_repeated = (
            bool(self._unwritten)
            and len(records) == len(self._batch)
            and all(map(operator.is_, records, self._batch))
        )
        if not is_repeated:
            if isinstance(records, SinkRecords) and set(map(type, records.values)) == {str}:
                texts: Sequence[str] = records.values  # type: ignore[assignment]  # looked at
            else:
                texts = [
                    value
                    if isinstance(value := record.value, str)
                    else to_string(record.value_schema, record.value)
                    for record in records
                ]
            lines = "\n".join([*texts, ""])
            # The text is appended: after a rebalance, the rest of a half-written line may wait
            # before it.
            self._unwritten += lines.encode("utf-8", "replace")
            self._batch = records
        assert self._descriptor is not None
        while self._unwritten:
            try:
                written = os.write(self._descriptor, self._unwritten)
            except OSError as exc:
                target = self._filename or "standard output"
                message = f"Failed to write to {target}: {exc.strerror}"
                if exc.errno in TEMPORARY_ERRORS:
                    self.context.timeout(RETRY_MS)
                    raise RetriableException(message) from exc
                raise ConnectException(message) from exc
            self._unwritten = self._unwritten[written:]
        self._batch = ()

    def stop(self) -> None:
        if self._descriptor is not None and self._filename is not None:
            os.close(self._descriptor)
        self._descriptor = None


class FileStreamSourceConnector(ApachesPlugin, SourceConnector):
    """FileStreamSource: one task, whose config is the connector's."""

    task_type = FileStreamSourceTask

    def start(self, props: Mapping[str, str]) -> None:
        source_config_def().parse(props)
        super().start(props)

    def config(self) -> ConfigDef:
        return source_config_def()

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        config = source_config_def().parse(connector_configs)
        return ExactlyOnceSupport.SUPPORTED if config[FILE] else ExactlyOnceSupport.UNSUPPORTED

    def can_define_transaction_boundaries(
        self, connector_configs: Mapping[str, str | None]
    ) -> ConnectorTransactionBoundaries:
        return ConnectorTransactionBoundaries.UNSUPPORTED

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[Mapping[str, object] | None, Mapping[str, object] | None]],
    ) -> bool:
        if not source_config_def().parse(connector_config)[FILE]:
            raise ConnectException(
                f"Offsets cannot be modified if the '{FILE}' configuration is unspecified. "
                "This is because stdin is used for input and offsets are not tracked."
            )
        for partition, offset in offsets:
            if offset is None:
                continue  # anything may be forgotten: so can garbage
            if POSITION_FIELD not in offset:
                raise ConnectException(
                    f"Offset objects should either be null or contain the key '{POSITION_FIELD}'"
                )
            value = f"The value for the '{POSITION_FIELD}' key in the offset"
            position = offset[POSITION_FIELD]
            if not isinstance(position, int) or isinstance(position, bool) or position >= 1 << 63:
                raise ConnectException(f"{value} is expected to be a Long value")
            if position < 0:
                raise ConnectException(f"{value} should be a non-negative value")
            if partition is None:
                raise ConnectException("Partition objects cannot be null")
            if FILENAME_FIELD not in partition:
                raise ConnectException(
                    f"Partition objects should contain the key '{FILENAME_FIELD}'"
                )
        return True


class FileStreamSinkConnector(ApachesPlugin, SinkConnector):
    """FileStreamSink: `tasks.max` tasks of the same config, which append to one file.

    At least once: a killed task has appended lines whose offsets were not committed, and its
    successor appends them again. LakeSink writes each record to files once.
    """

    task_type = FileStreamSinkTask

    def start(self, props: Mapping[str, str]) -> None:
        sink_config_def().parse(props)
        super().start(props)

    def config(self) -> ConfigDef:
        return sink_config_def()

    def alter_offsets(
        self, connector_config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        # Written lines stay in the file, whatever the offsets are.
        return True
