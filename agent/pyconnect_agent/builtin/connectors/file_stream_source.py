"""The task of FileStreamSource: one record per line of a file or of standard input.

Kafka: FileStreamSourceTask. Positions count bytes; see `file_stream.py` for all differences.
Python's child processes find `/dev/null` at descriptor 0; the fork server imports this module
before that happens, and children inherit the copy.
"""

from __future__ import annotations

import contextlib
import logging
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
    NonEmptyString,
    Range,
    SourceRecords,
    SourceTask,
    ValidString,
)
from pyconnect_api.configdef import define_table


def _copy() -> int | None:
    with contextlib.suppress(OSError):  # started without a standard input
        return os.dup(0)
    return None


DESCRIPTOR: int | None = _copy()
"""A copy of descriptor 0 as it was when this module was imported; None without one."""


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


_TABLE = """
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
    """The settings of the source connector."""
    return define_table(
        ConfigDef(),
        _TABLE,
        {
            TOPIC: NonEmptyString(),
            BATCH_SIZE: Range.at_least(1),
            ON_TRUNCATE: ValidString(("wait", "restart", "fail")),
        },
    )


class _Offsets(Sequence[Mapping[str, object]]):
    """The source offsets of lines, made when they are looked at."""

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
    """Reads one file; records keep the position after their line as source offset."""

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
        while len(self._lines) < self._batch_size:
            data = self._read()
            if not data:
                break
            self._take(data)
        if not self._lines:
            self._wait_for_data()
            return None
        size = self._batch_size
        lines, self._lines = self._lines[:size], self._lines[size:]
        positions, self._positions = self._positions[:size], self._positions[size:]
        return SourceRecords(
            self._partition,
            _Offsets(positions),
            self._topic,
            STRING_SCHEMA,
            lines,
            timestamp=int(time.time() * 1000),
        )

    def stop(self) -> None:
        if self._descriptor is not None and self._filename is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _open(self) -> bool:
        """Open at the stored position; False when there is no such file yet."""
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
        """Return what can be read without waiting; empty at the end and after an error."""
        assert self._descriptor is not None
        try:
            if self._filename is None and not _is_readable(self._descriptor):
                return b""
            return os.read(self._descriptor, CHUNK_BYTES)
        except OSError:
            # Kafka's contract: a stream that breaks is as good as one without news.
            LOG.warning("read failed", exc_info=True, extra={"file": self._filename})
            return b""

    def _take(self, data: bytes) -> None:
        """Keep the lines that `data` completes, and the position after each of them."""
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

    def _wait_for_data(self) -> None:
        """Wait up to a second for more data, or until the worker asks the task to end."""
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
    """Splits a growing stream into lines, which end with LF, CRLF or CR.

    A CR that is the last byte so far is held back: an LF may follow. Bytes after the last
    terminator are kept until there is one. `position` is that after the last line returned, in
    bytes from the start of the stream.
    """

    def __init__(self, position: int = 0) -> None:
        self.position = position
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> tuple[list[bytes], list[int] | None]:
        """Return the lines that `data` completes, and the position after each of them.

        Positions None: every line was terminated by LF alone.
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
        return self._feed_any(b"".join((*self._rest, data)))

    def _feed_any(self, text: bytes) -> tuple[list[bytes], list[int]]:
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
