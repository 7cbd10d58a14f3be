"""What the children report becomes status records and, for a connector, the next step."""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.herder.effects import PutConnectorStatus, PutTaskStatus
from pyconnect_agent.core.herder.events import ConnectorReported, TaskReported
from pyconnect_agent.core.herder.requests import (
    configs as config_requests,
)
from pyconnect_agent.core.herder.requests import (
    restarts as restart_requests,
)
from pyconnect_agent.core.herder.state import Life
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import instances as work
from pyconnect_agent.core.herder.work import reconfiguration
from pyconnect_agent.core.ids import State

_SAFE = frozenset({State.UNASSIGNED, State.FAILED})
"""Written only when no other worker has written since."""


def connector_reported(turn: Turn, event: ConnectorReported) -> None:
    status = work.status(turn, event.state, trace=event.trace, version=event.version)
    safe = event.state in _SAFE
    turn.emit(PutConnectorStatus(connector=event.connector, status=status, safe=safe))
    share = turn.work_of(event.connector)
    if share.connector is None or share.connector.life is not Life.STARTED:
        return
    running = replace(share.connector, reported=event.state)
    turn.put_work(event.connector, replace(share, connector=running))
    restart_requests.connector_reported(turn, event.connector, event.state)
    match event.state:
        case State.RUNNING:
            reconfiguration.request(turn, event.connector)
        case State.FAILED:
            error = InternalError(f"Failed to start connector: {event.connector}")
            config_requests.settling_failed(turn, event.connector, error)
        case State.PAUSED | State.STOPPED:
            config_requests.settled(turn, event.connector)
        case _:
            pass


def task_reported(turn: Turn, event: TaskReported) -> None:
    status = work.status(turn, event.state, trace=event.trace, version=event.version)
    safe = event.state in _SAFE
    turn.emit(PutTaskStatus(task_id=event.task_id, status=status, safe=safe))
