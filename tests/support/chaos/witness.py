"""A source connector whose tasks note when they live, and whether another one lives meanwhile.

Settings: `journal` (a file that all tasks append to), `stop.seconds` (how long a task takes to
stop). A task holds a lock while it lives; the kernel frees the lock of a killed task.
"""

import fcntl
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pyconnect_api import SourceRecord, SourceTask
from tests.support.plugins.plain_connectors import PlainSource, PlainSourceTask

WITNESS = f"{__name__}.WitnessSource"


@dataclass(frozen=True, slots=True)
class Entry:
    """One note; `at_s` on the machine's monotonic clock; `what`: start, overlap, stopping, stop."""

    what: str
    task: str
    pid: int
    at_s: float


class WitnessTask(PlainSourceTask):
    def start(self, props: Mapping[str, str]) -> None:
        self.props = props
        self.journal = Path(props["journal"])
        self.lock: IO[Any] = (self.journal.parent / f"{props['task']}.lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.note("overlap")
        self.note("start")

    def poll(self) -> Sequence[SourceRecord] | None:
        self.context.stop_requested.wait(1)
        return None

    def stop(self) -> None:
        self.note("stopping")
        # These tests are about tasks that take long to stop.
        time.sleep(float(self.props.get("stop.seconds", "0")))
        self.note("stop")
        self.lock.close()

    def note(self, what: str) -> None:
        entry = {
            "what": what,
            "task": self.props["task"],
            "pid": os.getpid(),
            "at_s": time.monotonic(),
        }
        with self.journal.open("a") as journal:
            journal.write(json.dumps(entry) + "\n")


class WitnessSource(PlainSource):
    """A source with `tasks.max` tasks, or the number in `tasks`."""

    def task_class(self) -> type[SourceTask]:
        return WitnessTask

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        name = self.props["name"]
        count = int(self.props.get("tasks", max_tasks))
        return [{**self.props, "task": f"{name}-{n}"} for n in range(count)]


class Journal:
    """Notes of the tasks of one test."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.path = directory / "journal"
        self.path.touch()

    def config(self, tasks: int, **settings: str) -> dict[str, str]:
        return {
            "connector.class": WITNESS,
            "tasks.max": str(tasks),
            "journal": str(self.path),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }

    def entries(self, what: str) -> list[Entry]:
        found = [Entry(**json.loads(line)) for line in self.path.read_text().splitlines()]
        return [entry for entry in found if entry.what == what]

    def starts(self) -> int:
        """Return the number of starts so far, for a later comparison."""
        return len(self.entries("start"))

    def started_since(self, count: int) -> list[Entry]:
        return self.entries("start")[count:]
