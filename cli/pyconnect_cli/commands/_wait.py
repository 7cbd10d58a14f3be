"""Wait until connectors are in a state."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pyconnect_cli.durations import format_duration
from pyconnect_cli.errors import NotFound, PyconnectError, WaitTimedOut
from pyconnect_cli.model import ConnectorStatus
from pyconnect_cli.session import Session

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
# Workers write a status within a poll of their config topic; the reader's view follows at once.
SETTLE_S = 2.0


def wait_if_asked(session: Session, names: Sequence[str], *, restarted: bool = False) -> None:
    """Do as `--wait STATE` says, after a change."""
    state = session.given.get("wait")
    if state and names and not session.given.get("dry_run"):
        wait_for_state(session, names, str(state).upper(), settle_s=SETTLE_S, hold=restarted)


def wait_for_state(
    session: Session,
    names: Sequence[str],
    state: str,
    *,
    settle_s: float = 0.0,
    hold: bool = False,
) -> None:
    """Return when connectors and their tasks are in `state`.

    A FAILED connector or task ends the wait for another state, exit 1; WaitTimedOut (exit 124)
    says where things stand when the time is over. Statuses lag behind the change that was just
    asked for: a failure counts once `settle_s` are over, and with `hold` so does the state itself
    (a restart begins and ends in the same state).
    """
    waiting = list(names)
    pause = FIRST_PAUSE_S
    started = time.monotonic()
    while True:
        statuses = {name: _status(session, name) for name in waiting}
        settled = time.monotonic() - started >= settle_s
        if settled or not hold:
            waiting = [name for name in waiting if not has_state(statuses[name], state)]
        if settled:
            for name in waiting:
                _refuse_failed(statuses[name], name, state)
        if not waiting:
            return
        remaining = session.budget.remaining_s()
        if remaining <= pause:
            raise WaitTimedOut(
                f"not {state} after {format_duration(time.monotonic() - started)}: "
                + "; ".join(f"{name} is {describe(statuses[name])}" for name in waiting),
                hint="wait longer with --timeout 10m, or look: pyconnect connectors describe "
                + waiting[0],
            )
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)


def has_state(status: ConnectorStatus | None, state: str) -> bool:
    """Whether connector and tasks are all there; a running connector has at least one task."""
    if status is None:
        return state == "DELETED"
    states = [task.state for task in status.tasks]
    match state:
        case "DELETED":
            return False
        case "STOPPED":
            return status.connector.state == "STOPPED" and not states
        case "FAILED":
            return status.failed
        case _:
            return status.connector.state == state and bool(states) and set(states) == {state}


def describe(status: ConnectorStatus | None) -> str:
    """Return `RUNNING with tasks 0:RUNNING 1:FAILED`."""
    if status is None:
        return "without a status"
    tasks = " ".join(f"{task.id}:{task.state}" for task in status.tasks)
    return f"{status.connector.state} with {f'tasks {tasks}' if tasks else 'no tasks'}"


def _status(session: Session, name: str) -> ConnectorStatus | None:
    try:
        return session.client.connector_status(name)
    except NotFound:
        return None


def _refuse_failed(status: ConnectorStatus | None, name: str, state: str) -> None:
    if status is None or not status.failed or state in {"FAILED", "DELETED", "STOPPED"}:
        return
    failed = [item for item in (status.connector, *status.tasks) if item.state == "FAILED"]
    trace = next((item.trace for item in failed if item.trace), None)
    reason = f": {last_line(trace)}" if trace else ""
    raise PyconnectError(
        f"{name} is {describe(status)}{reason}",
        hint=f"whole trace: pyconnect connectors describe {name}",
    )


def last_line(trace: str) -> str:
    """Return the line of a trace that names the error: Java's first, Python's last."""
    lines = [line.strip() for line in trace.strip().splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]
