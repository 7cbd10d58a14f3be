"""Log lines of the worker about states that its children report."""

import logging

import pytest

from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.herder.loop import ChildEvents
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.status import StatusStore
from tests.support.cases import cases

PYTHON = """\
pyconnect_api.errors.ConnectException: Exiting WorkerSinkTask
  File "loop.py", line 1, in _deliver
    self._task.put(batch)
Caused by: builtins.OSError: disk is full
  File "task.py", line 2, in put
    write(values)
"""
KILLED = "The task was killed through the admin interface (SIGKILL). It is not restarted by itself."
JAVA = """\
java.lang.IllegalStateException: boom
\tat io.example.Task.poll(Task.java:1)
\t... 3 more
"""


@cases(
    "trace, reason",
    (PYTHON, "Caused by: builtins.OSError: disk is full"),
    (JAVA, "java.lang.IllegalStateException: boom"),
    (None, ""),
    (f"{KILLED}\nIts stacks before that:\nThread 0x1 (most recent call first):\n  File", KILLED),
    (f"{KILLED}\nIts stacks before that: none within 5 s.", KILLED),
)
def test_reason_of_a_failure(
    trace: str | None, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is the innermost error, never a line of a stack."""
    events = ChildEvents(lambda _: None, StatusStore(MemoryLog()), WorkerClock(), track_topics=True)
    with caplog.at_level(logging.ERROR):
        events.reported(ConnectorTaskId("c", 0), Reported(state=State.FAILED, trace=trace))
    assert [record.reason for record in caplog.records] == [reason]  # type: ignore[attr-defined]  # an extra field
