"""The journal's file: JSON lines of the changes that this worker has carried out.

`kafka.journal_topic` is the other kind. `write` and `read` may be called from any thread.

A full file is renamed to `FILE.from-N`, N being the number of its first record: records keep their
numbers, which `connectors rollback --to` takes, when the oldest file is deleted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from pyconnect_agent.core.errors import InternalError, WorkerConfigError
from pyconnect_clients.appended_lines import append_line

LOG = logging.getLogger(__name__)

FILE_KEY = "agent.journal.file"
KEPT_FULL_FILES = 5


class ChangeRecords(Protocol):
    """Records of changes, in order; all methods block. `shared`: by the workers of the group."""

    @property
    def shared(self) -> bool: ...
    def start(self) -> None: ...
    def write(self, connector: str | None, record: bytes) -> None: ...
    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]: ...
    def stop(self) -> None: ...


class ChangesFile:
    """Only this worker's user reads it. A line that was cut by a crash is left out.

    `full_bytes`: the size at which the file is renamed; 0: never.
    """

    shared = False

    def __init__(self, path: Path, full_bytes: int = 0) -> None:
        self._path = path
        self._full_bytes = full_bytes
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Raise WorkerConfigError for a file that cannot be written."""
        try:
            append_line(self._path, b"")
        except OSError as error:
            raise WorkerConfigError(f"{FILE_KEY}: {error}") from error

    def write(self, connector: str | None, record: bytes) -> None:  # noqa: ARG002  the record has it
        """Append a line; it is on the disk afterwards. Raises InternalError."""
        try:
            with self._one_at_a_time:
                self._rename_full()
                append_line(self._path, record)
        except OSError as error:
            raise InternalError(f"The journal {self._path} cannot be written: {error}") from error

    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]:  # noqa: ARG002
        """Yield the number and the bytes of each line that is kept; the first ever is 0."""
        with ExitStack() as opened:
            with self._one_at_a_time:
                # An open file stays the same one when it is renamed or deleted.
                files = [*self._full(), (None, self._path)]
                parts = [(first, opened.enter_context(path.open("rb"))) for first, path in files]
            number = 0
            for first, lines in parts:
                number = number if first is None else first
                for line in lines:
                    yield number, line
                    number += 1

    def stop(self) -> None:
        """Nothing is kept open."""

    def _full(self) -> list[tuple[int, Path]]:
        """Return the full files with the number of the first record, the oldest first."""
        begin = f"{self._path.name}.from-"
        return sorted(
            (int(path.name.removeprefix(begin)), path)
            for path in self._path.parent.iterdir()
            if path.name.startswith(begin) and path.name.removeprefix(begin).isdecimal()
        )

    def _rename_full(self) -> None:
        """Keep a file that cannot be renamed: it grows, and no record is lost."""
        try:
            if not self._full_bytes or self._path.stat().st_size < self._full_bytes:
                return
            first = 0
            if full := self._full():
                first, newest = full[-1]
                with newest.open("rb") as lines:
                    first += sum(1 for _ in lines)
            self._path.rename(self._path.with_name(f"{self._path.name}.from-{first}"))
            for _, path in self._full()[:-KEPT_FULL_FILES]:
                path.unlink()
        except OSError as error:
            LOG.warning("full file of the journal is not renamed", extra={"reason": str(error)})
