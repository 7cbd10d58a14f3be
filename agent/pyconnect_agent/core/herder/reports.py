"""Reports of children become status records and, for a connector, the next step."""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.errors import InternalError
from pyconnect_agent.core.herder.effects import PutStatus
from pyconnect_agent.core.herder.events import InstanceReported
from pyconnect_agent.core.herder.requests import reconfiguration, restarts
from pyconnect_agent.core.herder.requests.configs import settled
from pyconnect_agent.core.herder.state import Life
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import failures
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.reporting import Reported

_SAFE = frozenset({State.UNASSIGNED, State.FAILED})
"""Written only when no other worker has written since."""


def reported(turn: Turn, event: InstanceReported) -> None:
    item, report = event.item, event.report
    connector, task = item if isinstance(item, ConnectorTaskId) else (item, None)
    share, state = turn.work_of(connector), turn.state
    running = share.connector if task is None else share.tasks.get(task)
    here = running is not None and running.life is Life.STARTED
    if here:
        report = _counted(turn, connector, task, report)
    safe = report.state in _SAFE
    # The group may have given this worker's work to others meanwhile.
    late = safe and (state.membership is None or state.claims_outdated)
    turn.emit(PutStatus(item=item, status=turn.status(report), safe=safe, late=late))
    if here and task is None:
        _connector_reported(turn, connector, report.state)


def _counted(turn: Turn, connector: str, task: int | None, report: Reported) -> Reported:
    """Take a state into the history of restarts; returns the report to publish."""
    match report.state:
        case State.FAILED:
            return failures.failed(turn, connector, task, report)
        case State.RUNNING | State.PAUSED:
            failures.started(turn, connector, task)
        case _:
            failures.forget(turn, connector, (task,))
    return report


def _connector_reported(turn: Turn, connector: str, state: State) -> None:
    share = turn.work_of(connector)
    assert share.connector is not None
    turn.put_work(connector, replace(share, connector=replace(share.connector, reported=state)))
    restarts.connector_reported(turn, connector, state)
    match state:
        case State.RUNNING:
            reconfiguration.request(turn, connector)
        case State.FAILED:
            settled(turn, connector, InternalError(f"Failed to start connector: {connector}"))
        case State.PAUSED | State.STOPPED:
            settled(turn, connector)
        case _:
            pass
