"""The logs of connectors and tasks in the worker process: kept in memory, and written to files.

Lines come from the children over their pipes, and from this process if it logs about a connector or
task, such as the death of a process. Thread-safe; a separate thread writes the files.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pyconnect_agent.channel.reports import LineLogged
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.log_lines import Item, LineRings, LogLine, LogQuestion
from pyconnect_agent.process import long_lived
from pyconnect_agent.process.logging import EventFormatter, level_name

LOG = logging.getLogger(__name__)

STOP_S = 5.0
LINES_AHEAD = 10_000
"""Most lines that wait for a slow disk; further lines are not written to files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """The settings `agent.log.*`; `directory` None: no files. `files`: the most for a connector."""

    kept_bytes: int = 65_536
    directory: Path | None = None
    file_bytes: int = 10 << 20
    files: int = 5


class ChildLogs:
    """The kept lines; call `start` before the first line, and `stop` to write the waiting lines."""

    def __init__(self, settings: LogSettings) -> None:
        self._rings = LineRings(settings.kept_bytes)
        self._lock = threading.Lock()
        self._number = 0
        self._epoch = time.time_ns()
        """The identity of the numbers, which begin again with each worker process."""
        self._files = None if settings.directory is None else LogFiles(settings)
        self._own = _OwnLines(self)

    def start(self) -> None:
        logging.getLogger().addHandler(self._own)
        if self._files is not None:
            self._files.start()

    def stop(self) -> None:
        logging.getLogger().removeHandler(self._own)
        if self._files is not None:
            self._files.stop()

    def add(self, item: Item, line: LineLogged, pid: int | None) -> None:
        """Take a line of a connector or task."""
        with self._lock:
            self._number += 1
            kept = LogLine(
                number=self._number,
                time_ms=line.time_ms,
                level=line.level,
                logger=line.logger,
                connector=item[0],
                task=item[1],
                pid=pid,
                text=line.text,
            )
            self._rings.add(kept)
        if self._files is not None:
            self._files.write(kept)

    def lines(self, question: LogQuestion) -> dict[str, Any]:
        """Return the document for the admin interface; a later request takes its `next`."""
        with self._lock:
            found = self._rings.find(question)
            following = self._number
        return {
            "epoch": self._epoch,
            "next": following,
            "lines": [line.to_json() for line in found],
        }


class LogFiles:
    """Log files `<connector>.log` in a directory, with `<connector>.log.1` etc. for earlier lines.

    Only the worker's user can read them, as lines may quote the content of records. The rights of a
    directory that exists are the administrator's.
    """

    def __init__(self, settings: LogSettings) -> None:
        assert settings.directory is not None
        self._settings = settings
        self._directory = settings.directory
        self._lines: queue.Queue[LogLine | None] = queue.Queue(LINES_AHEAD)
        self._lost = 0
        self._failing = False
        # A failure of this thread must not end the worker.
        self._thread = long_lived.Thread("connector-logs", self._run, on_death=lambda _: None)

    def start(self) -> None:
        self._thread.start()

    def write(self, line: LogLine) -> None:
        """Queue a line for writing; return at once."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._lost += 1

    def stop(self) -> None:
        """Return when all lines are written, or after some seconds if the disk hangs."""
        with contextlib.suppress(queue.Full):
            self._lines.put(None, timeout=STOP_S)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while True:
            lines = [self._lines.get()]
            while len(lines) < LINES_AHEAD and not self._lines.empty():
                lines.append(self._lines.get())
            by_connector: dict[str, list[LogLine]] = {}
            for line in lines:
                if line is not None:
                    by_connector.setdefault(line.connector, []).append(line)
            for connector, found in by_connector.items():
                self._append(connector, found)
            if None in lines:
                return

    def _append(self, connector: str, lines: Iterable[LogLine]) -> None:
        """Append lines; a failure drops them and is reported once."""
        # Gives each connector a unique name, without a slash and not hidden.
        name = quote(connector, safe=" ")
        name = f"%2E{name[1:]}" if name.startswith(".") else name
        path = self._directory / f"{name}.log"
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            if path.exists() and path.stat().st_size >= self._settings.file_bytes:
                for number in range(self._settings.files - 1, 0, -1):
                    older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
                    if older.exists():
                        older.replace(path.with_name(f"{path.name}.{number}"))
                path.unlink(missing_ok=True)
            with open(path, "a", encoding="utf-8", errors="backslashreplace", opener=_own) as file:
                for line in lines:
                    # The lines of a trace are below it.
                    moment = time.localtime(line.time_ms / 1000)
                    stamp = (
                        f"{time.strftime('%Y-%m-%d %H:%M:%S', moment)},{line.time_ms % 1000:03d}"
                    )
                    who = "connector" if line.task is None else f"task-{line.task}"
                    file.write(f"[{stamp}] {line.level} {who} {line.text} ({line.logger})\n")
        except OSError as error:
            if not self._failing:
                extra = {"file": str(path), "reason": str(error)}
                LOG.error("the log of a connector cannot be written to its file", extra=extra)
            self._failing = True
        else:
            self._failing = False


def _own(path: str, flags: int) -> int:
    """Open a file that only this user can read; an older file keeps the rights of its group."""
    descriptor = os.open(path, flags, 0o600)
    mode = os.fstat(descriptor).st_mode
    if mode & 0o007:
        # The file may belong to another user.
        with contextlib.suppress(PermissionError):
            os.fchmod(descriptor, mode & 0o770)
    return descriptor


class _OwnLines(logging.Handler):
    """A handler for this process's log records about a connector or task, found by their fields."""

    def __init__(self, logs: ChildLogs) -> None:
        super().__init__()
        self.setFormatter(EventFormatter())
        self._logs = logs

    def emit(self, record: logging.LogRecord) -> None:
        item = _item(vars(record))
        # A record about a failing file must not go to that file.
        if item is None or record.name == __name__:
            return
        line = LineLogged(
            time_ms=int(record.created * 1000),
            level=level_name(record.levelno),
            logger=record.name,
            text=self.format(record),
        )
        self._logs.add(item, line, None)


def _item(fields: Mapping[str, Any]) -> Item | None:
    """Return the subject of a record: its `task`, `connector`, or the name of its `child`."""
    task, connector = fields.get("task"), fields.get("connector")
    kind, _, name = str(fields.get("child", "")).partition(" ")
    if isinstance(task, ConnectorTaskId):
        return task.connector, task.task
    if kind == "task":
        task = name
    elif kind == "connector":
        connector = name
    if isinstance(task, str):
        connector, _, number = task.rpartition("-")
        return (connector, int(number)) if connector and number.isdecimal() else None
    return (connector, None) if isinstance(connector, str) and connector else None
