"""Reports of children become status records and, for a connector, the next step."""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.herder.effects import PutConnectorStatus, PutTaskStatus
from pyconnect_agent.core.herder.events import ConnectorReported, TaskReported
from pyconnect_agent.core.herder.requests import reconfiguration, restarts
from pyconnect_agent.core.herder.requests.configs import settled
from pyconnect_agent.core.herder.state import Life
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import failures
from pyconnect_agent.core.ids import State

_SAFE = frozenset({State.UNASSIGNED, State.FAILED})
"""Written only when no other worker has written since."""


def connector_reported(turn: Turn, event: ConnectorReported) -> None:
    share = turn.work_of(event.connector)
    here = share.connector is not None and share.connector.life is Life.STARTED
    trace = _counted(turn, event, event.connector, None) if here else event.trace
    status = turn.status(event.state, trace=trace, version=event.version)
    safe, late = event.state in _SAFE, _is_late(turn)
    turn.emit(
        PutConnectorStatus(connector=event.connector, status=status, safe=safe, late=safe and late)
    )
    share = turn.work_of(event.connector)
    if share.connector is None or share.connector.life is not Life.STARTED:
        return
    running = replace(share.connector, reported=event.state)
    turn.put_work(event.connector, replace(share, connector=running))
    restarts.connector_reported(turn, event.connector, event.state)
    match event.state:
        case State.RUNNING:
            reconfiguration.request(turn, event.connector)
        case State.FAILED:
            error = InternalError(f"Failed to start connector: {event.connector}")
            settled(turn, event.connector, error)
        case State.PAUSED | State.STOPPED:
            settled(turn, event.connector)
        case _:
            pass


def task_reported(turn: Turn, event: TaskReported) -> None:
    connector, number = event.task_id
    task = turn.work_of(connector).tasks.get(number)
    here = task is not None and task.life is Life.STARTED
    trace = _counted(turn, event, connector, number) if here else event.trace
    status = turn.status(event.state, trace=trace, version=event.version)
    safe, late = event.state in _SAFE, _is_late(turn)
    turn.emit(PutTaskStatus(task_id=event.task_id, status=status, safe=safe, late=safe and late))


def _is_late(turn: Turn) -> bool:
    """Return whether the group may have given this worker's work to others meanwhile."""
    return turn.state.membership is None or turn.state.claims_outdated


def _counted(
    turn: Turn, event: ConnectorReported | TaskReported, connector: str, task: int | None
) -> str | None:
    """Take a state into the history of restarts; returns the trace to publish."""
    match event.state:
        case State.FAILED:
            return failures.failed(turn, connector, task, event.trace, event.no_restart)
        case State.RUNNING | State.PAUSED:
            failures.started(turn, connector, task)
        case _:
            failures.forget(turn, connector, (task,))
    return event.trace
