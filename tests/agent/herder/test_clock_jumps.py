"""The worker's clock when the time of the machine is changed."""

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
"""Modules whose times are shown or written, but not compared with a deadline."""
COMPARED = ["herder/port", "kafka/task_consumer", "rest/access"]
"""Modules that compare wall-clock times: at the start, and ages of records or signed names."""
WALL = re.compile(r"\btime\.time\b|time\.time_ns|datetime\.now|utcnow")


@cases("jump_s", -86_400.0, -1.0, 3_600.0)
def test_a_clock_jump_moves_no_deadline(monkeypatch: pytest.MonkeyPatch, jump_s: float) -> None:
    """After its start the worker's clock is monotonic: no timer is early, late or repeated."""
    clock = WorkerClock()
    before_ms = clock.now_ms()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump_s)
    assert 0 <= clock.now_ms() - before_ms < 10_000


def test_only_known_modules_of_the_worker_read_the_wall_clock() -> None:
    """Deadlines need the monotonic clock, so a new reader of the wall clock has to be checked."""
    root = Path(pyconnect_agent.__file__).parent
    reading = [
        path.relative_to(root).with_suffix("").as_posix()
        for path in root.rglob("*.py")
        if WALL.search(path.read_text())
    ]
    assert sorted(reading) == sorted([*SHOWN, *COMPARED])
