"""LakeSource: files to a topic, one after the other, a batch a poll.

Each file is a source partition, and an offset is the number of its rows that were read. The offset
of a file's last row also marks the file as finished, so that it is not opened again.
"""

from __future__ import annotations

import logging
import re
import time
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import NamedTuple

from pyconnect_api import (
    ConnectException,
    ExactlyOnceSupport,
    RetriableException,
    SourceConnector,
    SourceOffset,
    SourcePartition,
    SourceRecord,
    SourceRecords,
    SourceTask,
)
from pyconnect_connectors.connectors import Attempts, ConfiguredConnector, LazyOffsets
from pyconnect_connectors.lake.reading import Batch, batches
from pyconnect_connectors.lake.settings import (
    TASK_COUNT,
    TASK_NUMBER,
    URL,
    Order,
    SourceSettings,
    source_config_def,
)
from pyconnect_connectors.lake.storage import Storage, StoredFile, storage_errors

LOG = logging.getLogger(__name__)
FILE_FIELD = "file"
ROW_FIELD = "row"
DONE_FIELD = "done"
LONGEST_WAIT_S = 1.0


class LakeSourceTask(SourceTask):
    """A task that reads the files whose paths map to its number."""

    def __init__(self) -> None:
        self._settings: SourceSettings
        self._storage: Storage
        self._seen: dict[str, int] = {}
        self._waiting: deque[_Place] = deque()
        self._reading: _Place | None = None
        self._batches: Generator[Batch, None, None] | None = None
        self._next_look_s = 0.0
        self._attempts: Attempts

    def start(self, props: Mapping[str, str]) -> None:
        self._settings = SourceSettings.parse(props)
        self._storage = Storage.open(self._settings.location, writes=False)
        self._attempts = Attempts("reading failed and is repeated", self._settings.location)

    def stop(self) -> None:
        self._close_file()

    def poll(self) -> Sequence[SourceRecord] | None:
        if not self._attempts.wait(self.context.stop_requested):
            return None
        with self._attempts.limited():
            try:
                if self._reading is None:
                    if not self._waiting:
                        self._look()
                    if not self._waiting:
                        wait_s = self._next_look_s - time.monotonic()
                        self.context.stop_requested.wait(max(0.0, min(wait_s, LONGEST_WAIT_S)))
                        return None
                    self._reading = self._waiting.popleft()
                path, row = self._reading
                with storage_errors(f"Cannot read {path}"):
                    if self._batches is None:
                        file = self._storage.open_file(path)
                        self._batches = batches(file, path, row, self._settings)
                    batch = next(self._batches, None)
                if batch is None:
                    self._close_file()
                    return None
                if batch.is_last:
                    self._close_file()
                else:
                    self._reading = _Place(path, batch.first + len(batch.values))
                end = batch.first + len(batch.values)

                def offset(row: int) -> Mapping[str, object]:
                    is_done = batch.is_last and row == end
                    return {ROW_FIELD: row, DONE_FIELD: True} if is_done else {ROW_FIELD: row}

                return SourceRecords(
                    {FILE_FIELD: path},
                    LazyOffsets(range(batch.first + 1, end + 1), offset),
                    self._settings.topic,
                    batch.schema,
                    batch.values,
                )
            except RetriableException:
                if self._reading is not None:
                    self._waiting.appendleft(self._reading)
                self._close_file()
                raise

    def _close_file(self) -> None:
        if self._batches is not None:
            self._batches.close()
        self._reading = self._batches = None

    def _look(self) -> None:
        """Find new files, unless the last look was a short time ago."""
        if time.monotonic() < self._next_look_s:
            return
        settings = self._settings
        new = []
        found = self._storage.files(settings.prefix)
        if self._next_look_s == 0 and not any(self._matches(file.path) for file in found):
            LOG.warning(
                "no file is read yet: none matches",
                extra={"prefix": settings.prefix, "pattern": settings.pattern, "found": len(found)},
            )
        for file in found:
            known = self._seen.get(file.path)
            is_ours = zlib.crc32(file.path.encode()) % settings.task_count == settings.task_number
            if known is None and is_ours and self._matches(file.path):
                new.append(file)
            elif known is not None and known != _stamp(file):
                LOG.warning(
                    "a file was changed after it was found; what is new in it may not be read",
                    extra={"file": file.path},
                )
                self._seen[file.path] = _stamp(file)
        by_time = settings.order is Order.TIME
        new.sort(key=lambda file: (file.modified, file.path) if by_time else (file.path,))
        partitions = [{FILE_FIELD: file.path} for file in new]
        offsets = {
            partition[FILE_FIELD]: offset
            for partition, offset in self.context.offset_storage_reader.offsets(partitions)
        }
        for file in new:
            offset = offsets.get(file.path) or {}
            if not offset.get(DONE_FIELD):
                self._waiting.append(_Place(file.path, int(str(offset.get(ROW_FIELD, 0)))))
            self._seen[file.path] = _stamp(file)
        self._next_look_s = time.monotonic() + settings.poll_ms / 1000

    def _matches(self, path: str) -> bool:
        below = path.removeprefix(self._settings.prefix).lstrip("/")
        is_hidden = any(name.startswith(("_", ".")) for name in below.split("/"))
        return not is_hidden and re.fullmatch(self._settings.pattern, below) is not None


def _stamp(file: StoredFile) -> int:
    return hash((file.size, file.modified))


class _Place(NamedTuple):
    """A file and the number of the row to read next."""

    path: str
    row: int


class LakeSourceConnector(ConfiguredConnector[SourceSettings], SourceConnector):
    """LakeSource: each task has a number, to which the paths of its files map."""

    task_type = LakeSourceTask

    def __init__(self) -> None:
        super().__init__(source_config_def, SourceSettings, URL)

    def problems(self, settings: SourceSettings) -> Iterable[tuple[str, str]]:
        Storage.open(settings.location, writes=False).check()
        return ()

    def exactly_once_support(
        self, connector_configs: Mapping[str, str | None]
    ) -> ExactlyOnceSupport:
        """Return SUPPORTED: each row has a position of its own."""
        return ExactlyOnceSupport.SUPPORTED

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [
            {**self.props, TASK_NUMBER: str(number), TASK_COUNT: str(max_tasks)}
            for number in range(max_tasks)
        ]

    def alter_offsets(
        self,
        connector_config: Mapping[str, str],
        offsets: Sequence[tuple[SourcePartition | None, SourceOffset | None]],
    ) -> bool:
        for partition, offset in offsets:
            if partition is None or set(partition) != {FILE_FIELD}:
                raise ConnectException(f"A partition must have the key '{FILE_FIELD}' and no other")
            if offset is None:
                continue
            row, done = offset.get(ROW_FIELD), offset.get(DONE_FIELD, False)
            is_row = isinstance(row, int) and not isinstance(row, bool) and row >= 0
            is_whole = isinstance(done, bool) and set(offset) <= {ROW_FIELD, DONE_FIELD}
            if not is_row or not is_whole:
                raise ConnectException(
                    f"An offset must have the key '{ROW_FIELD}', a number that is not negative, "
                    f"and may have the key '{DONE_FIELD}', true or false"
                )
        return True
