"""Waiting: when a state counts as reached, and statuses that lag behind a change."""

from __future__ import annotations

import pytest

from pyconnect_cli.commands import _wait
from pyconnect_cli.commands._wait import has_state, last_line
from pyconnect_cli.model import ConnectorStatus, InstanceState, TaskState
from tests.cli.conftest import Run
from tests.support.connect_server import FakeConnect, FakeConnector


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """What waits looks at; the number of looks within some time is always the same."""
    clock = Clock()
    monkeypatch.setattr(_wait, "time", clock)
    return clock


def status(state: str, *tasks: str) -> ConnectorStatus:
    return ConnectorStatus(
        name="c",
        type="source",
        connector=InstanceState(state=state, worker_id="w"),
        tasks=tuple(TaskState(id=n, state=task, worker_id="w") for n, task in enumerate(tasks)),
    )


@pytest.mark.parametrize(
    ("found", "state", "reached"),
    [
        (status("RUNNING", "RUNNING", "RUNNING"), "RUNNING", True),
        (status("RUNNING", "RUNNING", "UNASSIGNED"), "RUNNING", False),
        (status("RUNNING"), "RUNNING", False),
        (status("PAUSED", "RUNNING"), "PAUSED", False),
        (status("STOPPED", "RUNNING"), "STOPPED", False),
        (status("STOPPED"), "STOPPED", True),
        (status("RUNNING", "FAILED"), "FAILED", True),
        (status("RUNNING"), "DELETED", False),
        (None, "DELETED", True),
        (None, "RUNNING", False),
    ],
)
def test_a_state_is_reached_by_the_connector_and_all_its_tasks(
    found: ConnectorStatus | None, state: str, reached: bool
) -> None:
    """STOPPED has no tasks left, RUNNING at least one, and one failure is FAILED."""
    assert has_state(found, state) is reached


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        ("java.lang.Error: full\n\tat org.example.A.b\n", "java.lang.Error: full"),
        ('Traceback (most recent call last):\n  File "x"\nOSError: full\n', "OSError: full"),
        ("\n", ""),
    ],
)
def test_the_line_of_a_trace_that_names_the_error(trace: str, line: str) -> None:
    """Java writes it first, Python last."""
    assert last_line(trace) == line


@pytest.mark.wire
def test_a_failure_from_before_a_restart_does_not_end_the_wait(
    run: Run, connect: FakeConnect, clock: Clock
) -> None:
    """The status still shows the old failure for a moment; then the restart shows."""
    old = FakeConnector(config={}, tasks=["RUNNING", "FAILED"], trace="old")
    # One for the selection, two for looks within the time that statuses may lag.
    connect.stale_statuses["broken"] = [old, old, old]
    outcome = run(
        "connectors", "restart", "broken", "--include-tasks", "--wait", "RUNNING",
        "--timeout", "60s",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err


@pytest.mark.wire
def test_a_failure_that_stays_ends_the_wait_with_its_reason(
    run: Run, connect: FakeConnect, clock: Clock
) -> None:
    """Exit 1 once statuses had their time, not after the whole timeout."""
    failed = FakeConnector(config={}, tasks=["FAILED"], trace="java.io.IOException: disk full")
    connect.stale_statuses["orders"] = [failed] * 50
    outcome = run("connectors", "resume", "orders", "--wait", "RUNNING", "--timeout", "60s")
    assert outcome.code == 1
    assert "disk full" in outcome.err
    assert _wait.SETTLE_S <= clock.now_s < 2 * _wait.SETTLE_S


@pytest.mark.wire
def test_a_restart_is_not_over_before_it_began(
    run: Run, connect: FakeConnect, clock: Clock
) -> None:
    """RUNNING from before the restart does not count: the state has to hold for a while."""
    before = FakeConnector(config={})
    during = FakeConnector(config={}, state="RESTARTING", tasks=["RESTARTING"])
    connect.stale_statuses["orders"] = [before, before, during, during]
    outcome = run("connectors", "restart", "orders", "--wait", "RUNNING", "--timeout", "60s")
    assert outcome.code == 0, outcome.err
    assert connect.stale_statuses["orders"] == []
