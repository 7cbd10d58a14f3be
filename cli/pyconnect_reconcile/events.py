"""The events of a run for the process that started it, and the end of both together.

Events are lines of NDJSON for the command line, or text on stderr.
"""

import json
import os
import sys
import threading
from typing import TextIO


class Events:
    """The output of events, one line each; safe for the thread that watches Spark's progress."""

    def __init__(self, *, machine: bool, stream: TextIO | None = None) -> None:
        self._machine = machine
        self._stream = stream
        self._lock = threading.Lock()

    def step(self, text: str) -> None:
        """Report the beginning of a step."""
        self._emit({"event": "step", "text": text}, text)

    def progress(self, done: int, total: int) -> None:
        """Report the number of Spark's finished tasks, only as an event."""
        self._emit({"event": "progress", "done": done, "total": total}, None)

    def committed(self, snapshot: int) -> None:
        """Report the snapshot of an Iceberg table that holds a repair."""
        self._emit({"event": "committed", "snapshot": snapshot}, None)

    def report(self, directory: str, verdict: str) -> None:
        self._emit(
            {"event": "report", "directory": directory, "verdict": verdict},
            f"{verdict}: {directory}",
        )

    def error(self, message: str, hint: str | None, directory: str | None = None) -> None:
        """Report why a run ends without a report in `directory`; None: why all runs end."""
        text = f"error: {message}" + (f"\nhint: {hint}" if hint else "")
        why: dict[str, object] = {"message": message, "hint": hint, "directory": directory}
        self._emit({"event": "error", **why}, text)

    def _emit(self, event: dict[str, object], text: str | None) -> None:
        line = json.dumps(event, ensure_ascii=False) if self._machine else text
        if line is None:
            return
        stream = self._stream or (sys.stdout if self._machine else sys.stderr)
        with self._lock:
            print(line, file=stream, flush=True)


def end_with_parent(exit_code: int) -> None:
    """End this process, at any point, when the process that started it ends."""

    def wait() -> None:
        # sys.stdin would keep its lock while the interpreter ends.
        while os.read(0, 1):
            pass
        # Processes of this one, such as Spark's JVM, end when their pipes close.
        os._exit(exit_code)

    threading.Thread(target=wait, daemon=True).start()
