"""The queue of requests: begin them in order, answer each exactly once.

Requests for one connector run one after another in its lane; different connectors do not wait for
each other. Nothing begins during a rebalance, apart from pause and resume, which Apache's worker
also writes from its REST thread. A restart that arrives while the config topic asks for a rebalance
is refused, because the connector and its tasks are about to be assigned again.

When the client's time is over, the answer names the current stage. Writes that have begun are
completed; a request that still waits is dropped (Apache would run it later).
"""

from dataclasses import dataclass, replace

from pyconnect_agent.core.errors import (
    ConflictError,
    InternalError,
    RequestError,
    RequestTimedOutError,
    ServiceUnavailableError,
)
from pyconnect_agent.core.herder.effects import Reply
from pyconnect_agent.core.herder.events import RequestArrived
from pyconnect_agent.core.herder.requests.configs import SetTargetState
from pyconnect_agent.core.herder.requests.fencing import FenceZombies
from pyconnect_agent.core.herder.state import FINISHED_ONCE_BEGUN, MembershipPhase, Operation, Step
from pyconnect_agent.core.herder.steps import Request, Timer
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.reporting import timed_out_text

SHUTTING_DOWN = "Worker is shutting down"
STALE_CONFIGURATION = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a"
    " concurrent config change)"
)
DRAINED = (
    "This worker is drained and no member of its group. Send the request to another worker, or"
    ' take this one back with POST /agent/drain {"undrain": true}.'
)


def arrived(turn: Turn, event: RequestArrived) -> None:
    error: RequestError | None = None
    if turn.state.phase is MembershipPhase.STOPPED:
        error = _shutting_down(event.request)
    elif turn.state.rebalance_expected and event.request.restarts:
        error = ConflictError(STALE_CONFIGURATION)
    if error is not None:
        turn.emit(Reply(request_id=event.request_id, error=error))
        return
    turn.wake_at(event.deadline_ms, RequestExpiry(request_id=event.request_id))
    turn.enqueue(event.request_id, event.request, deadline_ms=event.deadline_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestExpiry(Timer):
    request_id: int

    def due(self, turn: Turn) -> None:
        operation = turn.operations.get(self.request_id)
        if operation is None or operation.answered:
            return
        begun = operation.step is not Step.QUEUED
        stage = operation.stage if begun and operation.stage is not None else turn.state.stage
        error = RequestTimedOutError(timed_out_text(stage))
        turn.emit(Reply(request_id=operation.request_id, error=error))
        if operation.step in FINISHED_ONCE_BEGUN:
            turn.operations.set(operation.request_id, replace(operation, answered=True))
        else:
            turn.forget(operation)


def stopping(turn: Turn) -> None:
    """Answer every request; no operation begins or goes on after this."""
    for request_id in turn.operations.keys_now():
        operation = turn.operations.get(request_id)
        if operation is not None:
            turn.fail(operation, _shutting_down(operation.request))


def begin_all(turn: Turn) -> None:
    """Begin the operations that may begin.

    If the worker has begun to serve in this turn, all are checked; else only new ones and those
    whose predecessor has ended.
    """
    while True:
        if turn.take_began_serving():
            turn.may_begin.extend(turn.operations.keys_now())
        if not turn.may_begin:
            return
        operation = turn.operations.get(turn.may_begin.popleft())
        if (
            operation is None
            or operation.step is not Step.QUEUED
            or not _may_begin(turn, operation)
        ):
            continue
        request = operation.request
        if turn.state.phase is MembershipPhase.DRAINED and not request.served_drained:
            turn.fail(operation, ServiceUnavailableError(DRAINED))
        elif not turn.refused_in_dispute(operation):
            request.begin(turn, operation)


def _may_begin(turn: Turn, operation: Operation) -> bool:
    """Return whether the operation is the first in its lane, and the worker serves it."""
    if operation.lane is not None and turn.first_in_lane(operation.lane) is not operation:
        return False
    if isinstance(operation.request, SetTargetState):
        return turn.state.phase is not MembershipPhase.STARTING
    return turn.state.serving


def _shutting_down(request: Request) -> RequestError:
    """Return the error for a request; workers that wait for fencing ask the next leader then."""
    if isinstance(request, FenceZombies):
        return ServiceUnavailableError(SHUTTING_DOWN)
    return InternalError(SHUTTING_DOWN)
