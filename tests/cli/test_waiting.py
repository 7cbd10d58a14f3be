"""Waiting: when a state is reached, and statuses that lag behind a change."""

import threading
from pathlib import Path

import pytest

from pyconnect_cli.acting import wait as _wait
from pyconnect_cli.acting.wait import has_state
from pyconnect_cli.connectors import files
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.rest.client import FEW
from pyconnect_cli.rest.exchange import DeadAddresses
from pyconnect_cli.rest.model import ConnectorStatus
from tests.cli.conftest import Run
from tests.cli.overview.worlds import view
from tests.support.cases import cases
from tests.support.fakes.connect_server import FakeConnect, FakeConnector, frozen

pytestmark = pytest.mark.wire


class Clock:
    """A clock whose time passes only during sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return a clock with which the number of looks in a given time is always the same."""
    clock = Clock()
    monkeypatch.setattr(_wait, "time", clock)
    return clock


def status(state: str, *tasks: str) -> ConnectorStatus | None:
    return view("c", *tasks, state=state).status


@cases(
    "found, state, reached",
    (status("RUNNING", "RUNNING", "RUNNING"), "RUNNING", True),
    (status("RUNNING", "RUNNING", "UNASSIGNED"), "RUNNING", False),
    (status("RUNNING"), "RUNNING", True),
    (status("PAUSED"), "PAUSED", True),
    (status("PAUSED", "RUNNING"), "PAUSED", False),
    (status("STOPPED", "RUNNING"), "STOPPED", False),
    (status("STOPPED"), "STOPPED", True),
    (status("RUNNING", "FAILED"), "FAILED", True),
    (status("RUNNING"), "DELETED", False),
    (None, "DELETED", True),
    (None, "RUNNING", False),
)
def test_a_state_is_reached_by_the_connector_and_all_its_tasks(
    found: ConnectorStatus | None, state: str, reached: bool
) -> None:
    """A state is reached by the connector and all tasks; FAILED needs only one of them."""
    assert has_state(found, state) is reached


def test_an_old_failure_does_not_end_the_wait(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """A failure from before the restart does not end the wait, because statuses lag."""
    old = FakeConnector(config={}, tasks=["RUNNING", "FAILED"], trace="old")
    # One for the selection, two for looks while statuses may lag.
    connect.stale_statuses["broken"] = [old, old, old]
    outcome = run(
        "connectors", "restart", "broken", "--wait", "RUNNING",
        "--timeout", "60s",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err


def test_a_failure_ends_the_wait_and_is_told(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """A failure ends the wait with exit 1 after SETTLE_S, not after the whole timeout."""
    failed = FakeConnector(config={}, tasks=["FAILED"], trace="java.io.IOException: disk full")
    connect.stale_statuses["orders"] = [failed] * 50
    outcome = run("connectors", "resume", "orders", "--wait", "RUNNING", "--timeout", "60s", code=1)
    assert "disk full" in outcome.err
    assert _wait.SETTLE_S <= clock.now_s < 2 * _wait.SETTLE_S


def test_a_restart_is_not_over_at_once(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """A wait after a restart ignores RUNNING unless it holds for a while."""
    before = FakeConnector(config={})
    during = FakeConnector(config={}, state="RESTARTING", tasks=["RESTARTING"])
    connect.stale_statuses["orders"] = [before, before, during, during]
    run("connectors", "restart", "orders", "--wait", "RUNNING", "--timeout", "60s", code=0)
    assert connect.stale_statuses["orders"] == []


def test_a_connector_that_begins_paused_has_no_tasks(run: Run) -> None:
    """A connector that is created PAUSED has no tasks, and still counts as PAUSED."""
    outcome = run(
        "connectors", "create", "c", "-s", "connector.class=org.example.FileSource",
        "--initial-state", "PAUSED", "--wait", "PAUSED", "--timeout", "5s",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err


def test_running_without_tasks_must_last(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """RUNNING without tasks must last, because tasks follow the connector."""
    connect.connectors["orders"].tasks = []
    run("connectors", "wait", "orders", "--timeout", "60s", code=0)
    assert _wait.NO_TASKS_S <= clock.now_s < 2 * _wait.NO_TASKS_S


def test_a_stable_state_has_no_break(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """`--stable` starts again when the connector leaves the state for a moment."""
    running = FakeConnector(config={})
    away = FakeConnector(config={}, state="RESTARTING", tasks=["RESTARTING"])
    # One for the selection; then the interruption comes before ten seconds have passed.
    connect.stale_statuses["orders"] = [running] * 9 + [away]
    run("connectors", "wait", "orders", "--stable", "10s", "--timeout", "60s", code=0)
    assert connect.stale_statuses["orders"] == []
    assert clock.now_s > 12


def test_a_failure_ends_a_stable_state(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """A connector that fails during `--stable` is exit 1, and --stable without --wait is exit 2."""
    connect.stale_statuses["orders"] = [FakeConnector(config={})] * 5
    connect.connectors["orders"].tasks = ["FAILED"]
    outcome = run("connectors", "wait", "orders", "--stable", "10s", "--timeout", "60s", code=1)
    assert "orders is RUNNING with tasks 0:FAILED" in outcome.err
    assert run("connectors", "pause", "orders", "--stable", "1s").code == 2


def test_many_connectors_are_waited_for_with_one_request(run: Run, connect: FakeConnect) -> None:
    """The states of many connectors come from one request with `expand=status`."""
    names = [f"c{number}" for number in range(FEW + 1)]
    connect.connectors |= {name: FakeConnector(config={"name": name}) for name in names}
    run("connectors", "wait", *names, code=0)
    assert not [request for request in connect.requests if request.endswith("/status")]


def test_a_wait_for_a_missing_answer_is_exit_124(run: Run, connect: FakeConnect) -> None:
    """A wait whose status request gets no answer is exit 124 at its timeout."""
    connect.slow["GET /connectors/orders/status"] = threading.Event()
    outcome = run("connectors", "resume", "-e", "orders", "--wait", "RUNNING", "--timeout", "3s")
    connect.slow["GET /connectors/orders/status"].set()
    assert outcome.code == 124, outcome.err
    assert "not RUNNING in time: orders" in outcome.err


def test_a_late_answer_is_announced(run: Run, connect: FakeConnect, url: str) -> None:
    """An answer that takes more than a second is announced once on stderr."""
    late = connect.slow["GET /connectors/orders"] = threading.Event()
    timer = threading.Timer(4, late.set)
    timer.start()
    ended = run("connectors", "get", "orders")
    timer.join()
    assert ended.code == 0
    assert ended.err == f"waiting for {url}: GET /connectors/orders\n"


def test_an_address_without_an_answer_is_tried_last_for_a_minute(run: Run, url: str) -> None:
    """An address that did not answer is tried last by the next run, which does not wait for it."""
    with frozen() as dead:
        both = ("connectors", "get", "orders", "--url", dead, "--url", url)
        first = run(*both, "--request-timeout", "3s", code=0)
        assert first.err.splitlines() == [
            f"waiting for {dead}: GET /connectors/orders",
            f"{dead}: no answer within 3s (--request-timeout); trying {url}",
        ]
        assert run(*both) == first._replace(err="")


def test_an_address_that_answers_again_is_forgotten_as_dead(run: Run, url: str) -> None:
    """An address that answers again is removed from the dead addresses."""
    kept: list[list[str]] = []
    dead = DeadAddresses([url], lambda urls: kept.append(list(urls)))
    dead.mark(url, dead=True)
    dead.mark(url, dead=False)
    assert kept == [[]]
    assert url not in dead


def test_a_wait_names_its_state(run: Run, connect: FakeConnect, clock: Clock) -> None:
    """Without a terminal a wait prints one line with the awaited and the present state."""
    paused = FakeConnector(config={}, state="PAUSED", tasks=["RUNNING"])
    connect.stale_statuses["orders"] = [paused] * 8
    ended = run("connectors", "wait", "orders")
    assert clock.now_s > 2
    expected = ["waiting for RUNNING: orders is PAUSED with tasks 0:RUNNING", "orders: RUNNING"]
    assert ended.err.splitlines() == expected


def test_terminals_count_validations(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal counts validations, because each is a request that may take long."""
    shown: list[tuple[int, int]] = []
    monkeypatch.setattr(files, "NOTICED_S", 0)
    monkeypatch.setattr(
        StepLine, "count", lambda _self, _what, done, all_: shown.append((done, all_))
    )
    for name in ("a", "b"):
        config = '{"connector.class": "org.example.FileSource"}'
        Path(f"{name}.json").write_text(f'{{"name": "{name}", "config": {config}}}')
    assert run("connectors", "apply", "-f", "a.json", "-f", "b.json").code == 0
    assert shown == [(0, 2), (1, 2)]
