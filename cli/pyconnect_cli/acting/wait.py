"""Wait until connectors are in a state."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from pyconnect_cli.errors import (
    OutOfTime,
    PyconnectError,
    ServerError,
    Unreachable,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.parsing.values import format_duration, parse_duration
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.rest.model import ConnectorStatus, ConnectorView, root_cause
from pyconnect_cli.session import Session
from pyconnect_cli.settings.resolved import NO_ORIGIN

Found = TypeVar("Found")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0
# A worker writes a status within a poll of its config topic, and other workers read it at once.
SETTLE_S = 2.0
# A connector is RUNNING before it has generated its task configs.
NO_TASKS_S = 10.0
# A worker other than the leader reads the deletion in its config topic.
GONE_S = 10.0
LONGER = "wait longer with --timeout 10m"
NOTICED_S = 1.0
"""The command names the awaited state after this time."""


def wait_if_asked(session: Session, goals: Mapping[str, str], *, restarted: bool = False) -> None:
    """Wait after a change if `--wait [STATE]` was given; `goals`: each name's state after it."""
    asked, stable = session.given.get("wait"), session.given.get("stable")
    if stable and asked is None:
        raise UsageError("--stable needs a state to wait for", hint="add --wait")
    if asked is None or session.given.get("dry_run"):
        return
    states = {name: str(asked).upper() or goal for name, goal in goals.items()}
    for state in dict.fromkeys(states.values()):
        wait_for_state(
            session,
            [name for name, wanted in states.items() if wanted == state],
            state,
            settle_s=SETTLE_S,
            hold=restarted,
            stable_s=stable_seconds(stable),
        )


def kept_state(view: ConnectorView | None) -> str:
    """Return the state to which a connector returns after another change."""
    return view.state if view is not None and view.state in {"PAUSED", "STOPPED"} else "RUNNING"


def stable_seconds(text: object) -> float:
    """Read `--stable`; 0 when it was not given."""
    return parse_duration(str(text), what="--stable") if text else 0.0


def wait_for_state(
    session: Session,
    names: Sequence[str],
    state: str,
    *,
    settle_s: float = 0.0,
    hold: bool = False,
    stable_s: float = 0.0,
) -> None:
    """Return when connectors and their tasks are in `state`, and have been for `stable_s`.

    A FAILED connector or task ends the wait for another state, exit 1; WaitTimedOut (exit 124)
    reports the states when the time is over. Statuses lag behind the change that was just
    requested: a failure counts once `settle_s` are over, and with `hold` so does the state itself
    (a restart begins and ends in the same state).
    """
    waiting = list(names)
    since: dict[str, float] = {}
    pause = FIRST_PAUSE_S
    started = time.monotonic()
    told = False
    with StepLine(session.output) as progress:
        while True:
            # A connector that was in the state is read again as long as the state has to last.
            looked_at = list(names) if stable_s else waiting
            interrupted = f"not {state} in time: {', '.join(waiting)}"
            with within_time(session, partial(WaitTimedOut, interrupted, hint=LONGER)):
                statuses = session.client.connector_statuses(looked_at)
            now = time.monotonic()
            for name in looked_at:
                if has_state(statuses.get(name), state):
                    since.setdefault(name, now)
                else:
                    since.pop(name, None)
            settled = now - started >= settle_s
            waiting = [
                name
                for name in looked_at
                if (hold and not settled)
                or name not in since
                or now - since[name] < max(stable_s, _least_s(statuses.get(name), state))
            ]
            if settled:
                for name in waiting:
                    _refuse_failed(statuses.get(name), name, state)
            if not waiting:
                return
            if session.budget.remaining_s() <= pause:
                lasting = f" for {format_duration(stable_s)}" if stable_s else ""
                raise WaitTimedOut(
                    f"not {state}{lasting} after {format_duration(now - started)}: "
                    + "; ".join(f"{name} is {describe(statuses.get(name))}" for name in waiting),
                    hint="wait longer with --timeout 10m, or see why: pyconnect connectors describe"
                    f" {waiting[0]}",
                )
            if now - started >= NOTICED_S:
                progress(_waited_for(names, waiting, state, statuses), passing=told)
                told = True
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE_S)


def _waited_for(
    names: Sequence[str],
    waiting: Sequence[str],
    state: str,
    statuses: Mapping[str, ConnectorStatus],
) -> str:
    """Return the text about a wait: the first connector that is waited for, and the number done."""
    count = f" ({len(names) - len(waiting)} of {len(names)} done)" if len(names) > 1 else ""
    first = waiting[0]
    return f"waiting for {state}{count}: {first} is {describe(statuses.get(first))}"


def looks(
    session: Session, pause_s: float, look: Callable[[], Found], *, at_once: bool = True
) -> Iterator[Found]:
    """Yield one look after another, until the reader leaves or a given --timeout is over.

    `at_once` False: the first look comes after a pause.
    """
    limited = session.settings.origins["timeout"] != NO_ORIGIN
    while True:
        if not at_once:
            over = limited and session.budget.remaining_s() <= pause_s
            if session.output.unwritten or over:
                return
            time.sleep(pause_s)
            if not limited:
                session.renew_time()
        at_once = False
        try:
            found = look()
        except (OutOfTime, Unreachable):
            if limited and session.budget.spent:
                return
            raise
        yield found


def delete_and_see(session: Session, name: str) -> None:
    """Delete a connector; ServerError if the cluster still has it although a worker reported so."""
    session.client.delete_connector(name)
    still = ServerError(f"the worker reported the deletion, but {name} still exists")
    wait_until(session, lambda: not session.client.exists(name), lambda: still, most_s=GONE_S)


def wait_until(
    session: Session,
    holds: Callable[[], bool],
    late: Callable[[], PyconnectError],
    *,
    most_s: float = math.inf,
    pause_s: float = FIRST_PAUSE_S,
) -> None:
    """Repeat a question with growing pauses; raise `late` after `most_s` or the run's time."""
    until = time.monotonic() + min(most_s, session.budget.remaining_s())
    reached = holds()
    while not reached:
        if time.monotonic() + pause_s >= until:
            raise late()
        time.sleep(pause_s)
        pause_s = min(pause_s * 1.5, LONGEST_PAUSE_S)
        with within_time(session, late):
            reached = holds()


@contextmanager
def within_time(session: Session, late: Callable[[], PyconnectError]) -> Iterator[None]:
    """Raise `late` if the run's time ends during a request for states."""
    try:
        yield
    except (OutOfTime, Unreachable) as exc:
        if not session.budget.spent:
            raise
        raise late() from exc


def has_state(status: ConnectorStatus | None, state: str) -> bool:
    """Return whether the connector and all its tasks, if any, are in `state`."""
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
            return status.connector.state == state and set(states) <= {state}


def describe(status: ConnectorStatus | None) -> str:
    """Return `RUNNING with tasks 0:RUNNING 1:FAILED`."""
    if status is None:
        return "without a status"
    tasks = " ".join(f"{task.id}:{task.state}" for task in status.tasks)
    return f"{status.connector.state} with {f'tasks {tasks}' if tasks else 'no tasks'}"


def _least_s(status: ConnectorStatus | None, state: str) -> float:
    """Return the time in seconds for which a state has to last before it counts."""
    without_tasks = state == "RUNNING" and status is not None and not status.tasks
    return NO_TASKS_S if without_tasks else 0.0


def _refuse_failed(status: ConnectorStatus | None, name: str, state: str) -> None:
    if status is None or not status.failed or state in {"FAILED", "DELETED", "STOPPED"}:
        return
    failed = [item for item in (status.connector, *status.tasks) if item.state == "FAILED"]
    trace = next((item.trace for item in failed if item.trace), None)
    reason = f": {root_cause(trace)}" if trace else ""
    raise PyconnectError(
        f"{name} is {describe(status)}{reason}",
        hint=f"whole trace: pyconnect connectors describe {name}",
    )
