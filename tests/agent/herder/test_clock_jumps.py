"""The worker's clock when the machine's is set."""

import re
import time
from pathlib import Path

import pytest

import pyconnect_agent
from pyconnect_agent.herder.port import WorkerClock
from tests.support.cases import cases

SHOWN = [
    "builtin/connectors/file_stream", "builtin/transforms/java_date_format",
    "children/connectors", "children/logs", "children/tasks", "worker/admin",
    "process/logging", "rest/app", "rest/journaling", "tasks/records", "tasks/sink/delivery",
    "tasks/sink/loop", "tasks/source/at_least_once", "tasks/source/exactly_once",
    "tasks/source/loop", "tasks/task_metrics", "tasks/tracing", "tasks/work",
]  # fmt: skip
"""Modules whose times are shown or written, and compared with no deadline."""
COMPARED = ["herder/port", "kafka/task_consumer", "rest/access"]
"""The start of the worker's clock; the age of records in `auto.offset.reset=by_duration`, and of a
user's name that another worker has signed."""
WALL = re.compile(r"\btime\.time\b|time\.time_ns|datetime\.now|utcnow")


@cases("jump_s", -86_400.0, -1.0, 3_600.0)
def test_a_clock_jump_moves_no_deadline(monkeypatch: pytest.MonkeyPatch, jump_s: float) -> None:
    """Only the monotonic clock counts after the start: no timer fires early, late or twice."""
    clock = WorkerClock()
    before_ms = clock.now_ms()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump_s)
    assert 0 <= clock.now_ms() - before_ms < 10_000


def test_only_known_modules_of_the_worker_read_the_wall_clock() -> None:
    """A deadline needs the monotonic clock: look at a module before it gets into the list."""
    root = Path(pyconnect_agent.__file__).parent
    reading = [
        path.relative_to(root).with_suffix("").as_posix()
        for path in root.rglob("*.py")
        if WALL.search(path.read_text())
    ]
    assert sorted(reading) == sorted([*SHOWN, *COMPARED])
