"""Before tasks of an exactly-once source connector start here (KIP-618; spec exactly-once.md §9).

Layer: core. What ran before their task set is fenced by the leader; then the config topic is read
once more; then they start, unless a newer task set appeared. A task's process asks again when it
has initialised its producer: nobody older can write from there on, and nobody newer was fenced by
mistake and goes unnoticed.

A task that waits is CLEARING. One that was not cleared is REFUSED, which shows as FAILED until it
is restarted. What waits while the group rebalances is forgotten, and asked for anew when work may
start again. Whoever calls `done` has adopted what was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyconnect_agent.core.errors import NotLeaderError
from pyconnect_agent.core.herder import task_start
from pyconnect_agent.core.herder.effects import (
    AnswerTaskStart,
    PutTaskStatus,
    ReadConfigToEnd,
    RequestFencing,
)
from pyconnect_agent.core.herder.events import TaskStartAsked
from pyconnect_agent.core.herder.operations import request_error
from pyconnect_agent.core.herder.own_status import status
from pyconnect_agent.core.herder.state import Clearance, ClearanceStep, Life, RunningTask
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import ClearanceWaiter, FencingWaiter, TaskStartWaiter
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState


def await_clearance(turn: Turn, task_ids: Sequence[ConnectorTaskId]) -> None:
    """Let tasks of one connector wait; one clearance serves all of them."""
    connector = task_ids[0].connector
    share, snapshot = turn.work_of(connector), turn.state.snapshot
    generation = snapshot.task_config_generations.get(connector, 0)
    target = snapshot.target_state(connector) or TargetState.STARTED
    waiting = RunningTask(generation=generation, target_state=target, life=Life.CLEARING)
    tasks = {**share.tasks, **{task_id.task: waiting for task_id in task_ids}}
    turn.put_work(connector, replace(share, tasks=tasks))
    active = turn.state.clearances.get(connector)
    if active is None or active.generation != generation:
        _begin(turn, connector, generation)


def done(turn: Turn, waiter: FencingWaiter | ClearanceWaiter | TaskStartWaiter) -> None:
    """Go on; what was read is in the snapshot."""
    match waiter:
        case FencingWaiter(connector=connector, generation=generation):
            if _is_active(turn, connector, generation, ClearanceStep.FENCING):
                _read(turn, connector, generation)
        case ClearanceWaiter():
            _start_waiting(turn, waiter)
        case TaskStartWaiter():
            _answer(turn, waiter.task_id, waiter.request_id)


def failed(
    turn: Turn, waiter: FencingWaiter | ClearanceWaiter | TaskStartWaiter, error: Exception
) -> None:
    """Fencing is not repeated; reading is, without limit as in Kafka, while it is waited for."""
    match waiter:
        case FencingWaiter():
            _fencing_failed(turn, waiter, error)
        case ClearanceWaiter():
            _reading_failed(turn, waiter)
        case TaskStartWaiter():
            if _started(turn, waiter.task_id) is not None:
                _read_for_task(turn, waiter.task_id, waiter.request_id)


def task_start_asked(turn: Turn, event: TaskStartAsked) -> None:
    if _started(turn, event.task_id) is None:
        _answer(turn, event.task_id, event.request_id)
    else:
        _read_for_task(turn, event.task_id, event.request_id)


def rebalancing(turn: Turn) -> None:
    """Nothing may start before the group is through: what waits is not carried over."""
    for connector in turn.work.keys_now():
        waiting = _waiting(turn, connector)
        if waiting:
            _forget(turn, connector, waiting)


def _fencing_failed(turn: Turn, waiter: FencingWaiter, error: Exception) -> None:
    """Refuse what waits, unless it was only the wrong worker that was asked."""
    connector = waiter.connector
    if not _is_active(turn, connector, waiter.generation, ClearanceStep.FENCING):
        return
    _end(turn, connector)
    waiting = _waiting(turn, connector)
    if not waiting:
        return
    if isinstance(error, NotLeaderError) and turn.state.may_start_work:
        _begin(turn, connector, waiter.generation)
        return
    share = turn.work_of(connector)
    refused = {n: replace(share.tasks[n], life=Life.REFUSED) for n in waiting}
    turn.put_work(connector, replace(share, tasks={**share.tasks, **refused}))
    trace = request_error(error).message
    for number in waiting:
        task_id = ConnectorTaskId(connector, number)
        failed = status(turn, State.FAILED, trace=trace)
        turn.emit(PutTaskStatus(task_id=task_id, status=failed, safe=True))


def _start_waiting(turn: Turn, waiter: ClearanceWaiter) -> None:
    """Start what waits, now that the newest task set is known."""
    connector = waiter.connector
    if not _is_active(turn, connector, waiter.generation, ClearanceStep.READING):
        return
    _end(turn, connector)
    waiting = _waiting(turn, connector)
    if not waiting:
        return
    snapshot = turn.state.snapshot
    if not turn.state.may_start_work:
        _forget(turn, connector, waiting)
    elif snapshot.task_config_generations.get(connector, 0) != waiter.generation:
        _begin(turn, connector, snapshot.task_config_generations.get(connector, 0))
    else:
        task_start.start(turn, [ConnectorTaskId(connector, number) for number in waiting])


def _reading_failed(turn: Turn, waiter: ClearanceWaiter) -> None:
    connector = waiter.connector
    if not _is_active(turn, connector, waiter.generation, ClearanceStep.READING):
        return
    if _waiting(turn, connector):
        _read(turn, connector, waiter.generation)
    else:
        _end(turn, connector)


def _begin(turn: Turn, connector: str, generation: int) -> None:
    if connector not in turn.state.snapshot.pending_fencing:
        # The count record is newer than the task set: its older instances are fenced already.
        _read(turn, connector, generation)
        return
    _note(turn, connector, ClearanceStep.FENCING, generation)
    waiter = FencingWaiter(connector=connector, generation=generation)
    turn.emit(
        RequestFencing(
            effect_id=turn.wait_for(waiter),
            leader_url=None if turn.state.is_leader else turn.state.leader_url,
            connector=connector,
        )
    )


def _read(turn: Turn, connector: str, generation: int) -> None:
    _note(turn, connector, ClearanceStep.READING, generation)
    waiter = ClearanceWaiter(connector=connector, generation=generation)
    turn.emit(
        ReadConfigToEnd(
            effect_id=turn.wait_for(waiter),
            timeout_ms=turn.state.settings.worker_sync_timeout_ms,
        )
    )


def _read_for_task(turn: Turn, task_id: ConnectorTaskId, request_id: int) -> None:
    waiter = TaskStartWaiter(task_id=task_id, request_id=request_id)
    turn.emit(
        ReadConfigToEnd(
            effect_id=turn.wait_for(waiter),
            timeout_ms=turn.state.settings.worker_sync_timeout_ms,
        )
    )


def _answer(turn: Turn, task_id: ConnectorTaskId, request_id: int) -> None:
    task = _started(turn, task_id)
    newest = turn.state.snapshot.task_config_generations.get(task_id.connector, 0)
    refusal = None
    if task is not None and task.generation != newest:
        refusal = (
            f"Cannot start source task {task_id} with exactly-once support as the connector has"
            " already generated a new set of task configs"
        )
    elif task is None or task_id.task not in turn.work_of(task_id.connector).tasks_assigned:
        refusal = (
            f"Cannot start source task {task_id} as it has already been revoked from this worker"
        )
    turn.emit(AnswerTaskStart(task_id=task_id, request_id=request_id, refusal=refusal))


def _started(turn: Turn, task_id: ConnectorTaskId) -> RunningTask | None:
    task = turn.work_of(task_id.connector).tasks.get(task_id.task)
    return task if task is not None and task.life is Life.STARTED else None


def _waiting(turn: Turn, connector: str) -> list[int]:
    tasks = turn.work_of(connector).tasks
    return sorted(number for number, task in tasks.items() if task.life is Life.CLEARING)


def _forget(turn: Turn, connector: str, numbers: Sequence[int]) -> None:
    share = turn.work_of(connector)
    rest = {number: task for number, task in share.tasks.items() if number not in numbers}
    turn.put_work(connector, replace(share, tasks=rest))


def _is_active(turn: Turn, connector: str, generation: int, step: ClearanceStep) -> bool:
    return turn.state.clearances.get(connector) == Clearance(step=step, generation=generation)


def _note(turn: Turn, connector: str, step: ClearanceStep, generation: int) -> None:
    clearance = Clearance(step=step, generation=generation)
    turn.update(clearances={**turn.state.clearances, connector: clearance})


def _end(turn: Turn, connector: str) -> None:
    rest = {name: found for name, found in turn.state.clearances.items() if name != connector}
    turn.update(clearances=rest)
