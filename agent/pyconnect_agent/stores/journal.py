"""The journal's file: JSON lines of the changes that this worker has carried out.

`kafka.journal_topic` has the topic instead. `write` and `read` may be called from any thread.

A full file is renamed to `FILE.from-N`, with N as the number of its first record. So records keep
their numbers, which `connectors rollback --to` takes, when the oldest file is deleted.
"""

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
    """Records of changes, in order; all methods block. `shared`: by the workers of a group."""

    @property
    def shared(self) -> bool: ...
    def start(self) -> None: ...
    def write(self, connector: str | None, record: bytes) -> None: ...
    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]: ...
    def stop(self) -> None: ...


class ChangesFile:
    """The file of the changes, readable only for the worker's user, without lines cut by a crash.

    `full_bytes`: the size at which the file is renamed; 0: never.
    """

    shared = False

    def __init__(self, path: Path, full_bytes: int = 0) -> None:
        self._path = path
        self._full_bytes = full_bytes
        self._one_at_a_time = threading.Lock()

    def start(self) -> None:
        """Raise WorkerConfigError if the file cannot be written."""
        try:
            append_line(self._path, b"")
        except OSError as error:
            raise WorkerConfigError(f"{FILE_KEY}: {error}") from error

    def write(self, connector: str | None, record: bytes) -> None:  # noqa: ARG002  the record has it
        """Append a line, which is on the disk at return. Raises InternalError."""
        try:
            with self._one_at_a_time:
                self._rename_full()
                append_line(self._path, record)
        except OSError as error:
            raise InternalError(f"The journal {self._path} cannot be written: {error}") from error

    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]:  # noqa: ARG002
        """Yield the number and the bytes of each kept line; the first line ever has number 0."""
        with ExitStack() as opened:
            with self._one_at_a_time:
                # An open file can still be read after it is renamed or deleted.
                files = [*self._full(), (None, self._path)]
                parts = [(first, opened.enter_context(path.open("rb"))) for first, path in files]
            number = 0
            for first, lines in parts:
                number = number if first is None else first
                for line in lines:
                    yield number, line
                    number += 1

    def stop(self) -> None:
        """Do nothing: no file is open."""

    def _full(self) -> list[tuple[int, Path]]:
        """Return the full files, each with the number of its first record, oldest first."""
        begin = f"{self._path.name}.from-"
        return sorted(
            (int(path.name.removeprefix(begin)), path)
            for path in self._path.parent.iterdir()
            if path.name.startswith(begin) and path.name.removeprefix(begin).isdecimal()
        )

    def _rename_full(self) -> None:
        """Rename a full file; one that cannot be renamed grows, so that no record is lost."""
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
