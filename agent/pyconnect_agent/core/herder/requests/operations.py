"""The queue of requests: begin them in order, answer each exactly once.

Requests for one connector run one after another in its lane; different connectors do not wait for
each other. Nothing begins during a rebalance, apart from pause and resume, which Apache's worker
also writes from its REST thread. A restart that arrives while the config topic asks for a rebalance
is refused, because its connector and tasks are about to be assigned again.

When the client's time is over, the answer names the current stage. Writes that have begun are
finished; a request that still waits is dropped (Apache would run it later).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyconnect_agent.core.errors import (
    AgentError,
    ConflictError,
    InternalError,
    PrivilegedWriteError,
    RequestError,
    RequestTimedOutError,
    ServiceUnavailableError,
)
from pyconnect_agent.core.herder.effects import Reply
from pyconnect_agent.core.herder.events import RequestArrived, RequestExpiry
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.messages import (
    FenceZombies,
    GetConnectorConfig,
    GetConnectorInfo,
    GetTaskConfigs,
    Probe,
    Request,
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    SetTargetState,
)
from pyconnect_agent.core.herder.state import ApplyTaskConfigs, Operation, Phase, Step
from pyconnect_agent.core.herder.turn import Turn

SHUTTING_DOWN = "Worker is shutting down"
STALE_CONFIGURATION = (
    "Cannot complete request momentarily due to stale configuration (typically caused by a"
    " concurrent config change)"
)
_RESTARTS = (RestartConnector, RestartConnectorAndTasks, RestartTask)
_WRITING = frozenset({Step.WRITING, Step.WRITING_TARGET_STATE, Step.READING_BACK})
# Offsets are not the config topic's: a rebalance does not wait for them.
FINISHED_ONCE_BEGUN = _WRITING | {Step.CHANGING}


def arrived(turn: Turn, event: RequestArrived) -> None:
    if turn.state.phase is Phase.STOPPED:
        turn.emit(Reply(request_id=event.request_id, error=_shutting_down(event.request)))
        return
    if turn.state.rebalance_expected and isinstance(event.request, _RESTARTS):
        turn.emit(Reply(request_id=event.request_id, error=ConflictError(STALE_CONFIGURATION)))
        return
    timer = RequestExpiry(request_id=event.request_id)
    turn.wake_at(event.deadline_ms, timer)
    enqueue(turn, event.request_id, event.request, deadline_ms=event.deadline_ms)


def enqueue(
    turn: Turn, request_id: int, request: Request | ApplyTaskConfigs, *, deadline_ms: int | None
) -> None:
    lane = _lane(request)
    operation = Operation(
        request_id=request_id, request=request, deadline_ms=deadline_ms, lane=lane
    )
    turn.operations.set(request_id, operation)
    if lane is not None:
        turn.lanes.set(lane, (*(turn.lanes.get(lane) or ()), request_id))
    turn.may_begin.append(request_id)


def deadline_passed(turn: Turn, timer: RequestExpiry) -> None:
    operation = turn.operations.get(timer.request_id)
    if operation is None or operation.answered:
        return
    begun = operation.step is not Step.QUEUED
    stage = operation.stage if begun and operation.stage is not None else turn.state.stage
    error = RequestTimedOutError(stages.timed_out_text(stage))
    turn.emit(Reply(request_id=operation.request_id, error=error))
    if operation.step in FINISHED_ONCE_BEGUN:
        turn.operations.set(operation.request_id, replace(operation, answered=True))
    else:
        _forget(turn, operation)


def stopping(turn: Turn) -> None:
    """Answer everything; nothing is begun or finished after this."""
    for request_id in turn.operations.keys_now():
        operation = turn.operations.get(request_id)
        if operation is not None:
            fail(turn, operation, _shutting_down(operation.request))


def next_to_begin(turn: Turn) -> Operation | None:
    """Return an operation that may begin now, or None.

    All are looked at when the worker has begun to serve in this turn, else only new ones and those
    whose predecessor is through.
    """
    if turn.take_began_serving():
        turn.may_begin.extend(turn.operations.keys_now())
    while turn.may_begin:
        operation = turn.operations.get(turn.may_begin.popleft())
        if (
            operation is not None
            and operation.step is Step.QUEUED
            and _first_in_lane(turn, operation)
            and _served(turn, operation)
        ):
            return operation
    return None


def proceed(turn: Turn, operation: Operation, step: Step, stage: str, **changes: Any) -> Operation:
    """Note that the operation is in `step`; returns it as it is now."""
    begun = replace(operation, step=step, stage=turn.begin_stage(stage), **changes)
    turn.operations.set(operation.request_id, begun)
    return begun


def begin_again(turn: Turn, operation: Operation) -> None:
    """Put it back among the waiting: a rebalance has begun while it only looked around."""
    turn.operations.set(operation.request_id, replace(operation, step=Step.QUEUED, stage=None))


def succeed(turn: Turn, operation: Operation, result: Any = None) -> None:
    turn.end_stage(operation.stage)
    if _wants_answer(operation):
        turn.emit(Reply(request_id=operation.request_id, result=result))
    _forget(turn, operation)


def fail(turn: Turn, operation: Operation, error: Exception) -> None:
    turn.end_stage(operation.stage)
    if _wants_answer(operation):
        turn.emit(Reply(request_id=operation.request_id, error=request_error(error)))
    _forget(turn, operation)


def request_error(error: Exception) -> RequestError:
    """The answer to a client about a failed effect."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, PrivilegedWriteError):
        return InternalError(
            "Failed to write to config topic; this may be due to a transient error and the request"
            " can be safely retried"
        )
    if isinstance(error, AgentError):
        return InternalError(error.message, permanent=error.permanent)
    return InternalError(str(error) or type(error).__name__)


def writes_in_flight(turn: Turn) -> bool:
    return any(operation.step in _WRITING for operation in turn.operations.current.values())


def leave_lane(turn: Turn, operation: Operation) -> None:
    """Let the connector's next operation begin; this one only waits for what they do."""
    _forget(turn, operation)
    turn.operations.set(operation.request_id, replace(operation, lane=None))


def _shutting_down(request: Request | ApplyTaskConfigs) -> RequestError:
    """Workers that wait for fencing ask the next leader."""
    if isinstance(request, FenceZombies):
        return ServiceUnavailableError(SHUTTING_DOWN)
    return InternalError(SHUTTING_DOWN)


def _wants_answer(operation: Operation) -> bool:
    return operation.deadline_ms is not None and not operation.answered


def _forget(turn: Turn, operation: Operation) -> None:
    turn.operations.discard(operation.request_id)
    if operation.lane is None:
        return
    queue = turn.lanes.get(operation.lane) or ()
    rest = tuple(number for number in queue if number != operation.request_id)
    if rest:
        turn.lanes.set(operation.lane, rest)
        turn.may_begin.append(rest[0])
    else:
        turn.lanes.discard(operation.lane)


def _lane(request: Request | ApplyTaskConfigs) -> str | None:
    match request:
        case Probe() | GetConnectorInfo() | GetConnectorConfig() | GetTaskConfigs():
            return None
        case RestartTask(task_id=task_id):
            return task_id.connector
        case FenceZombies(connector=connector):
            # Not the connector's own: its configs may change while zombies are fenced.
            return f"{connector} fencing"
        case _:
            return request.connector


def _first_in_lane(turn: Turn, operation: Operation) -> bool:
    if operation.lane is None:
        return True
    queue = turn.lanes.get(operation.lane)
    return queue is not None and queue[0] == operation.request_id


def _served(turn: Turn, operation: Operation) -> bool:
    if isinstance(operation.request, SetTargetState):
        return turn.state.phase is not Phase.STARTING
    return turn.state.serving
