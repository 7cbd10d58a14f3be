"""The journal's file: JSON lines of the changes that this worker has carried out.

Layer: stores. `kafka.journal_topic` is the other kind. `write` and `read` may be called from any
thread.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from pyconnect_agent.core.errors import InternalError, WorkerConfigError
from pyconnect_clients.appended_lines import append_line

FILE_KEY = "agent.journal.file"


class ChangeRecords(Protocol):
    """Records of changes, in order; all methods block. `shared`: by the workers of the group."""

    @property
    def shared(self) -> bool: ...
    def start(self) -> None: ...
    def write(self, connector: str | None, record: bytes) -> None: ...
    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]: ...
    def stop(self) -> None: ...


class ChangesFile:
    """Only this worker's user reads it. A line that was cut by a crash is left out."""

    shared = False

    def __init__(self, path: Path) -> None:
        self._path = path
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
                append_line(self._path, record)
        except OSError as error:
            raise InternalError(f"The journal {self._path} cannot be written: {error}") from error

    def read(self, since_ms: int, timeout_ms: int) -> Iterator[tuple[int, bytes]]:  # noqa: ARG002
        """Yield the number and the bytes of each line, from 0."""
        with self._path.open("rb") as lines:
            yield from enumerate(lines)

    def stop(self) -> None:
        """Nothing is kept open."""
