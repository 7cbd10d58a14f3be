"""Before tasks of an exactly-once source connector start here (KIP-618).

Layer: core. The leader fences the producers of older task sets; then the config topic is read once
more; then the tasks start, unless a newer task set appeared. A task's process asks again when it
has initialised its producer. From then on no older producer can write, and if the task has fenced a
newer producer by mistake, the answer refuses its start.

A task that waits is CLEARING, unless its connector is paused: then it is PAUSED, and nothing is
fenced until it is resumed. A leader that died, or cannot fence just now, is asked again; when it
fails, or after 90 s, the task is REFUSED, which shows as FAILED until it is restarted. Reading the
config topic is repeated for as long as it takes, after pauses that grow to 5 s. A rebalance drops
waiting starts; they are requested again when work may start. The caller of `done` has adopted the
config that was read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyconnect_agent.core.errors import NotLeaderError
from pyconnect_agent.core.herder.effects import (
    AnswerTaskStart,
    PutTaskStatus,
    ReadConfigToEnd,
    RequestFencing,
)
from pyconnect_agent.core.herder.events import ClearanceRetry, TaskStartAsked, TaskStartRetry
from pyconnect_agent.core.herder.requests.operations import request_error
from pyconnect_agent.core.herder.state import Clearance, ClearanceStep, Life, RunningTask
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import ClearanceWaiter, FencingWaiter, TaskStartWaiter
from pyconnect_agent.core.herder.work import failures, task_start
from pyconnect_agent.core.herder.work.status import status
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.restart_policy import NoRestart

GIVE_UP_MS = 90_000
"""Kafka's limit of a request between workers."""
FIRST_BACKOFF_MS = 250
LONGEST_BACKOFF_MS = 5_000


def await_clearance(turn: Turn, task_ids: Sequence[ConnectorTaskId]) -> int:
    """Let tasks of one connector wait, returns how many are new; one clearance serves all.

    While the connector is paused nothing is fenced: the tasks are asked to be PAUSED.
    """
    connector = task_ids[0].connector
    share, snapshot = turn.work_of(connector), turn.state.snapshot
    generation = snapshot.task_config_generations.get(connector, 0)
    target = snapshot.target_state(connector) or TargetState.STARTED
    paused = target is TargetState.PAUSED
    life = Life.PAUSED if paused else Life.CLEARING
    new = [task_id for task_id in task_ids if not paused or task_id.task not in share.tasks]
    waiting = RunningTask(generation=generation, target_state=target, life=life)
    tasks = {**share.tasks, **{task_id.task: waiting for task_id in new}}
    turn.put_work(connector, replace(share, tasks=tasks))
    if paused:
        for task_id in new:
            paused_here = status(turn, State.PAUSED)
            turn.emit(PutTaskStatus(task_id=task_id, status=paused_here, safe=False))
        return len(new)
    active = turn.state.clearances.get(connector)
    if active is None or active.generation != generation:
        _begin(turn, connector, generation, since_ms=turn.now_ms)
    return len(new)


def gone(turn: Turn, connector: str, numbers: Sequence[int]) -> None:
    """Tasks without a process are not run here any more: withdraw the reports about them."""
    tasks = turn.work_of(connector).tasks
    for number in numbers:
        if tasks[number].life is Life.PAUSED:
            task_id = ConnectorTaskId(connector, number)
            unassigned = status(turn, State.UNASSIGNED)
            turn.emit(PutTaskStatus(task_id=task_id, status=unassigned, safe=True))


def stopping(turn: Turn) -> None:
    """The worker ends: it stops the tasks that have a process itself."""
    for connector in turn.work.keys_now():
        gone(turn, connector, sorted(turn.work_of(connector).tasks))


def done(turn: Turn, waiter: FencingWaiter | ClearanceWaiter | TaskStartWaiter) -> None:
    """Go on; the snapshot has the config that was read."""
    match waiter:
        case FencingWaiter(connector=connector):
            if clearance := _active(turn, waiter):
                _read(turn, connector, replace(clearance, attempt=0))
        case ClearanceWaiter():
            _start_waiting(turn, waiter)
        case TaskStartWaiter():
            _answer(turn, waiter.task_id, waiter.request_id)


def failed(
    turn: Turn, waiter: FencingWaiter | ClearanceWaiter | TaskStartWaiter, error: Exception
) -> None:
    """Reading is repeated without limit as in Kafka, while it is waited for."""
    match waiter:
        case FencingWaiter():
            _fencing_failed(turn, waiter, error)
        case ClearanceWaiter():
            _reading_failed(turn, waiter)
        case TaskStartWaiter():
            if _started(turn, waiter.task_id) is not None:
                timer = TaskStartRetry(
                    task_id=waiter.task_id,
                    request_id=waiter.request_id,
                    attempt=waiter.attempt + 1,
                )
                turn.wake_at(turn.now_ms + _backoff_ms(waiter.attempt), timer)


def retry(turn: Turn, timer: ClearanceRetry) -> None:
    """Ask again, whichever worker leads now; or read again."""
    connector = timer.connector
    clearance = turn.state.clearances.get(connector)
    if clearance is None or clearance.number != timer.number:
        return
    waiting = _waiting(turn, connector)
    if not waiting or not turn.state.may_start_work:
        _end(turn, connector)
        _forget(turn, connector, waiting)
        return
    if clearance.step is ClearanceStep.READING:
        _read(turn, connector, clearance)
        return
    _begin(
        turn,
        connector,
        clearance.generation,
        since_ms=clearance.since_ms,
        attempt=clearance.attempt,
    )


def task_start_asked(turn: Turn, event: TaskStartAsked) -> None:
    if _started(turn, event.task_id) is None:
        _answer(turn, event.task_id, event.request_id)
    else:
        _read_for_task(turn, event.task_id, event.request_id)


def retry_task_start(turn: Turn, timer: TaskStartRetry) -> None:
    """Read again, unless the task was stopped meanwhile: then it waits for no answer."""
    if _started(turn, timer.task_id) is not None:
        _read_for_task(turn, timer.task_id, timer.request_id, attempt=timer.attempt)


def rebalancing(turn: Turn) -> None:
    """Drop waiting starts: nothing may start before the rebalance has completed.

    Another worker may lead then; a late answer of the old leader does not count.
    """
    turn.update(clearances={})
    for connector in turn.work.keys_now():
        waiting = _waiting(turn, connector)
        if waiting:
            _forget(turn, connector, waiting)


def _fencing_failed(turn: Turn, waiter: FencingWaiter, error: Exception) -> None:
    """Ask again when that may succeed; else refuse the waiting tasks until they are restarted."""
    connector, clearance = waiter.connector, _active(turn, waiter)
    if clearance is None:
        return
    waiting = _waiting(turn, connector)
    # Also an answer that was relayed from the leader says whether it is.
    transient = isinstance(error, NotLeaderError) or bool(getattr(error, "retriable", False))
    time_is_over = turn.now_ms - clearance.since_ms >= GIVE_UP_MS
    if waiting and transient and not time_is_over and turn.state.may_start_work:
        _back_off(turn, connector, replace(clearance, step=ClearanceStep.BACKING_OFF))
        return
    _end(turn, connector)
    if transient and not turn.state.may_start_work:
        _forget(turn, connector, waiting)
        return
    share = turn.work_of(connector)
    refused = {n: replace(share.tasks[n], life=Life.REFUSED) for n in waiting}
    turn.put_work(connector, replace(share, tasks={**share.tasks, **refused}))
    message = request_error(error).message
    # Also this one may have been relayed.
    permanent = bool(getattr(error, "permanent", False))
    no_restart = NoRestart.PERMANENT if permanent else None
    for number in waiting:
        task_id = ConnectorTaskId(connector, number)
        trace = failures.failed(turn, connector, number, message, no_restart)
        failed = status(turn, State.FAILED, trace=trace)
        turn.emit(PutTaskStatus(task_id=task_id, status=failed, safe=True))


def _start_waiting(turn: Turn, waiter: ClearanceWaiter) -> None:
    """Start the waiting tasks, now that the newest task set is known."""
    connector, clearance = waiter.connector, _active(turn, waiter)
    if clearance is None:
        return
    _end(turn, connector)
    waiting = _waiting(turn, connector)
    if not waiting:
        return
    newest = turn.state.snapshot.task_config_generations.get(connector, 0)
    if not turn.state.may_start_work:
        _forget(turn, connector, waiting)
    elif newest != clearance.generation:
        _begin(turn, connector, newest, since_ms=turn.now_ms)
    else:
        task_start.start(turn, [ConnectorTaskId(connector, number) for number in waiting])


def _reading_failed(turn: Turn, waiter: ClearanceWaiter) -> None:
    connector, clearance = waiter.connector, _active(turn, waiter)
    if clearance is None:
        return
    if _waiting(turn, connector):
        _back_off(turn, connector, clearance)
    else:
        _end(turn, connector)


def _back_off(turn: Turn, connector: str, clearance: Clearance) -> None:
    """Try the step again after a pause; a timer that comes late finds another number."""
    wait_ms = _backoff_ms(clearance.attempt)
    number = _note(turn, connector, replace(clearance, attempt=clearance.attempt + 1))
    turn.wake_at(turn.now_ms + wait_ms, ClearanceRetry(connector=connector, number=number))


def _backoff_ms(attempt: int) -> int:
    # The limit below applies anyway; larger shifts only make large numbers.
    return min(FIRST_BACKOFF_MS << min(attempt, 16), LONGEST_BACKOFF_MS)


def _begin(turn: Turn, connector: str, generation: int, *, since_ms: int, attempt: int = 0) -> None:
    clearance = Clearance(
        step=ClearanceStep.FENCING,
        generation=generation,
        number=0,
        since_ms=since_ms,
        attempt=attempt,
    )
    if connector not in turn.state.snapshot.pending_fencing:
        # The count record is newer than the task set: its older instances are fenced already.
        _read(turn, connector, replace(clearance, attempt=0))
        return
    number = _note(turn, connector, clearance)
    waiter = FencingWaiter(connector=connector, number=number)
    turn.emit(
        RequestFencing(
            effect_id=turn.wait_for(waiter),
            leader_url=None if turn.state.is_leader else turn.state.leader_url,
            connector=connector,
        )
    )


def _read(turn: Turn, connector: str, clearance: Clearance) -> None:
    number = _note(turn, connector, replace(clearance, step=ClearanceStep.READING))
    waiter = ClearanceWaiter(connector=connector, number=number)
    turn.emit(
        ReadConfigToEnd(
            effect_id=turn.wait_for(waiter),
            timeout_ms=turn.state.settings.worker_sync_timeout_ms,
        )
    )


def _read_for_task(
    turn: Turn, task_id: ConnectorTaskId, request_id: int, *, attempt: int = 0
) -> None:
    waiter = TaskStartWaiter(task_id=task_id, request_id=request_id, attempt=attempt)
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


def _active(turn: Turn, waiter: FencingWaiter | ClearanceWaiter) -> Clearance | None:
    """The clearance that an answer belongs to; None when it comes too late."""
    clearance = turn.state.clearances.get(waiter.connector)
    return clearance if clearance is not None and clearance.number == waiter.number else None


def _note(turn: Turn, connector: str, clearance: Clearance) -> int:
    """Enter a step under a number of its own, which is returned."""
    number = turn.new_id()
    numbered = replace(clearance, number=number)
    turn.update(clearances={**turn.state.clearances, connector: numbered})
    return number


def _end(turn: Turn, connector: str) -> None:
    rest = {name: found for name, found in turn.state.clearances.items() if name != connector}
    turn.update(clearances=rest)
