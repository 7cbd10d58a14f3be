"""Before tasks of an exactly-once source connector start here (KIP-618).

The leader fences the producers of older task sets; then the config topic is read once more; then
the tasks start, unless a newer task set appeared. A task's process asks again when it has
initialised its producer. From then on no older producer can write, and if the task has fenced a
newer producer by mistake, the answer refuses its start.

A task that waits is AWAITING, unless its connector is paused: then it is PAUSED, and nothing is
fenced until it is resumed. A leader that died, or temporarily cannot fence, is asked again; when it
fails, or after 90 s, the task is REFUSED, which shows as FAILED until it is restarted. Reading the
config topic is repeated without limit, after pauses that grow to 5 s. A rebalance drops waiting
starts; they are requested again when work may start.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyconnect_agent.core.errors import NotLeaderError
from pyconnect_agent.core.herder import instances
from pyconnect_agent.core.herder.effects import (
    AnswerTaskStart,
    PutStatus,
    RequestFencing,
    StartTask,
)
from pyconnect_agent.core.herder.events import TaskStartAsked
from pyconnect_agent.core.herder.state import Life, PermissionStep, RunningTask, StartPermission
from pyconnect_agent.core.herder.steps import Timer, Waiter
from pyconnect_agent.core.herder.turn import Turn, request_error
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.reporting import Reported
from pyconnect_agent.core.restart_policy import NoRestart

GIVE_UP_MS = 90_000
"""Kafka's timeout of a request between workers."""
FIRST_BACKOFF_MS = 250
LONGEST_BACKOFF_MS = 5_000


def await_permission(turn: Turn, task_ids: Sequence[ConnectorTaskId]) -> int:
    """Let tasks of one connector wait; return how many are new. One permission serves all.

    While the connector is paused nothing is fenced, and the status of the tasks is PAUSED.
    """
    connector = task_ids[0].connector
    share, snapshot = turn.work_of(connector), turn.state.snapshot
    generation = snapshot.task_config_generations.get(connector, 0)
    target = snapshot.target_state(connector) or TargetState.STARTED
    paused = target is TargetState.PAUSED
    life = Life.PAUSED if paused else Life.AWAITING
    new = [task_id for task_id in task_ids if not paused or task_id.task not in share.tasks]
    waiting = RunningTask(generation=generation, target_state=target, life=life)
    tasks = {**share.tasks, **{task_id.task: waiting for task_id in new}}
    turn.put_work(connector, replace(share, tasks=tasks))
    if paused:
        for task_id in new:
            paused_here = turn.status(Reported(state=State.PAUSED))
            turn.emit(PutStatus(item=task_id, status=paused_here, safe=False))
        return len(new)
    active = turn.state.start_permissions.get(connector)
    if active is None or active.generation != generation:
        _begin(turn, connector, generation, since_ms=turn.now_ms)
    return len(new)


def gone(turn: Turn, connector: str, numbers: Sequence[int]) -> None:
    """Write UNASSIGNED for those of the tasks that were PAUSED without a process."""
    tasks = turn.work_of(connector).tasks
    for number in numbers:
        if tasks[number].life is Life.PAUSED:
            task_id = ConnectorTaskId(connector, number)
            unassigned = turn.status(Reported(state=State.UNASSIGNED))
            turn.emit(PutStatus(item=task_id, status=unassigned, safe=True))


def stopping(turn: Turn) -> None:
    """Withdraw the reports about tasks without a process; the ending worker stops the others."""
    for connector in turn.work.keys_now():
        gone(turn, connector, sorted(turn.work_of(connector).tasks))


def task_start_asked(turn: Turn, event: TaskStartAsked) -> None:
    read = TaskStartRead(task_id=event.task_id, request_id=event.request_id)
    if _started(turn, event.task_id) is None:
        read.done(turn, None)
    else:
        turn.ask(turn.read_to_end(), read)


def rebalancing(turn: Turn) -> None:
    """Drop waiting starts: nothing may start before the rebalance has completed.

    Another worker may lead afterwards; a late answer of the old leader has no effect.
    """
    turn.update(start_permissions={})
    for connector in turn.work.keys_now():
        waiting = _waiting(turn, connector)
        if waiting:
            _forget(turn, connector, waiting)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRetry(Timer):
    """Ask the current leader again, or read again; `number` is the permission's."""

    connector: str
    number: int

    def due(self, turn: Turn) -> None:
        connector = self.connector
        permission = _active(turn, connector, self.number)
        if permission is None:
            return
        waiting = _waiting(turn, connector)
        if not waiting or not turn.state.may_start_work:
            _end(turn, connector)
            _forget(turn, connector, waiting)
        elif permission.step is PermissionStep.READING:
            _read(turn, connector, permission)
        else:
            _begin(
                turn,
                connector,
                permission.generation,
                since_ms=permission.since_ms,
                attempt=permission.attempt,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fencing(Waiter):
    """The wait until the leader has fenced older producers; `number` is the permission's."""

    connector: str
    number: int

    def done(self, turn: Turn, result: Any) -> None:
        if permission := _active(turn, self.connector, self.number):
            _read(turn, self.connector, replace(permission, attempt=0))

    def failed(self, turn: Turn, error: Exception) -> None:
        """Ask again if that may succeed; otherwise refuse the waiting tasks."""
        connector, permission = self.connector, _active(turn, self.connector, self.number)
        if permission is None:
            return
        waiting = _waiting(turn, connector)
        # An answer relayed from the leader has the attribute too.
        transient = isinstance(error, NotLeaderError) or bool(getattr(error, "retriable", False))
        time_is_over = turn.now_ms - permission.since_ms >= GIVE_UP_MS
        if waiting and transient and not time_is_over and turn.state.may_start_work:
            _back_off(turn, connector, replace(permission, step=PermissionStep.BACKING_OFF))
            return
        _end(turn, connector)
        if transient and not turn.state.may_start_work:
            _forget(turn, connector, waiting)
            return
        share = turn.work_of(connector)
        refused = {n: replace(share.tasks[n], life=Life.REFUSED) for n in waiting}
        turn.put_work(connector, replace(share, tasks={**share.tasks, **refused}))
        # An answer relayed from the leader has this attribute too.
        permanent = bool(getattr(error, "permanent", False))
        refusal = Reported(
            state=State.FAILED,
            trace=request_error(error).message,
            no_restart=NoRestart.PERMANENT if permanent else None,
        )
        for number in waiting:
            status = turn.status(instances.failed(turn, connector, number, refusal))
            item = ConnectorTaskId(connector, number)
            turn.emit(PutStatus(item=item, status=status, safe=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRead(Waiter):
    """The last read of the config topic before a start; `number` is the permission's."""

    connector: str
    number: int

    def done(self, turn: Turn, result: Any) -> None:
        """Start the waiting tasks, now that the newest task set is known."""
        connector, permission = self.connector, _active(turn, self.connector, self.number)
        if permission is None:
            return
        _end(turn, connector)
        waiting = _waiting(turn, connector)
        if not waiting:
            return
        newest = turn.state.snapshot.task_config_generations.get(connector, 0)
        if not turn.state.may_start_work:
            _forget(turn, connector, waiting)
        elif newest != permission.generation:
            _begin(turn, connector, newest, since_ms=turn.now_ms)
        else:
            start_tasks(turn, [ConnectorTaskId(connector, number) for number in waiting])

    def failed(self, turn: Turn, error: Exception) -> None:
        """Repeat the read without limit, as in Kafka, while tasks wait for it."""
        permission = _active(turn, self.connector, self.number)
        if permission is None:
            return
        if _waiting(turn, self.connector):
            _back_off(turn, self.connector, permission)
        else:
            _end(turn, self.connector)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStartRead(Waiter, Timer):
    """A read of the config topic for a task that asks to begin; `attempt` counts failed reads."""

    task_id: ConnectorTaskId
    request_id: int
    attempt: int = 0

    def done(self, turn: Turn, result: Any) -> None:
        """Answer the task."""
        task_id, task = self.task_id, _started(turn, self.task_id)
        newest = turn.state.snapshot.task_config_generations.get(task_id.connector, 0)
        refusal = None
        if task is not None and task.generation != newest:
            refusal = (
                f"Cannot start source task {task_id} with exactly-once support as the connector has"
                " already generated a new set of task configs"
            )
        elif task is None or task_id.task not in turn.work_of(task_id.connector).tasks_assigned:
            refusal = (
                f"Cannot start source task {task_id} as it has already been revoked from this"
                " worker"
            )
        answer = AnswerTaskStart(task_id=task_id, request_id=self.request_id, refusal=refusal)
        turn.emit(answer)

    def failed(self, turn: Turn, error: Exception) -> None:
        if _started(turn, self.task_id) is not None:
            again = replace(self, attempt=self.attempt + 1)
            turn.wake_at(turn.now_ms + _backoff_ms(self.attempt), again)

    def due(self, turn: Turn) -> None:
        """Read again, unless the task was stopped meanwhile: then no answer is needed."""
        if _started(turn, self.task_id) is not None:
            turn.ask(turn.read_to_end(), self)


def _back_off(turn: Turn, connector: str, permission: StartPermission) -> None:
    """Try the step again after a pause; its new number makes earlier timers stale."""
    wait_ms = _backoff_ms(permission.attempt)
    number = _note(turn, connector, replace(permission, attempt=permission.attempt + 1))
    turn.wake_at(turn.now_ms + wait_ms, PermissionRetry(connector=connector, number=number))


def _backoff_ms(attempt: int) -> int:
    # The maximum below applies anyway; larger shifts only make large numbers.
    return min(FIRST_BACKOFF_MS << min(attempt, 16), LONGEST_BACKOFF_MS)


def _begin(turn: Turn, connector: str, generation: int, *, since_ms: int, attempt: int = 0) -> None:
    permission = StartPermission(
        step=PermissionStep.FENCING,
        generation=generation,
        number=0,
        since_ms=since_ms,
        attempt=attempt,
    )
    if connector not in turn.state.snapshot.pending_fencing:
        # The count record is newer than the task set: older producers are fenced already.
        _read(turn, connector, replace(permission, attempt=0))
        return
    number = _note(turn, connector, permission)
    leader_url = None if turn.state.is_leader else turn.state.leader_url
    fencing = RequestFencing(leader_url=leader_url, connector=connector)
    turn.ask(fencing, Fencing(connector=connector, number=number))


def _read(turn: Turn, connector: str, permission: StartPermission) -> None:
    number = _note(turn, connector, replace(permission, step=PermissionStep.READING))
    turn.ask(turn.read_to_end(), LastRead(connector=connector, number=number))


def start_tasks(turn: Turn, task_ids: Sequence[ConnectorTaskId]) -> None:
    """Start tasks of one connector from the newest task set, as the caller has allowed."""
    connector = task_ids[0].connector
    work, snapshot = turn.work_of(connector), turn.state.snapshot
    config = snapshot.connector_configs[connector]
    target = snapshot.target_state(connector) or TargetState.STARTED
    generation = snapshot.task_config_generations.get(connector, 0)
    tasks = dict(work.tasks)
    running = RunningTask(generation=generation, target_state=target)
    for task_id in task_ids:
        turn.emit(
            StartTask(
                task_id=task_id,
                connector_config=config,
                task_config=snapshot.task_configs[task_id],
                target_state=target,
                generation=generation,
                task_count=snapshot.task_count(connector),
            )
        )
        tasks[task_id.task] = running
    turn.put_work(connector, replace(work, tasks=tasks))


def _started(turn: Turn, task_id: ConnectorTaskId) -> RunningTask | None:
    task = turn.work_of(task_id.connector).tasks.get(task_id.task)
    return task if task is not None and task.life is Life.STARTED else None


def _waiting(turn: Turn, connector: str) -> list[int]:
    tasks = turn.work_of(connector).tasks
    return sorted(number for number, task in tasks.items() if task.life is Life.AWAITING)


def _forget(turn: Turn, connector: str, numbers: Sequence[int]) -> None:
    share = turn.work_of(connector)
    rest = {number: task for number, task in share.tasks.items() if number not in numbers}
    turn.put_work(connector, replace(share, tasks=rest))


def _active(turn: Turn, connector: str, number: int) -> StartPermission | None:
    """Return the permission that an answer belongs to; None when the answer is too late."""
    permission = turn.state.start_permissions.get(connector)
    return permission if permission is not None and permission.number == number else None


def _note(turn: Turn, connector: str, permission: StartPermission) -> int:
    """Store the permission's step under a new number; return the number."""
    number = turn.new_id()
    numbered = replace(permission, number=number)
    turn.update(start_permissions={**turn.state.start_permissions, connector: numbered})
    return number


def _end(turn: Turn, connector: str) -> None:
    rest = {
        name: found for name, found in turn.state.start_permissions.items() if name != connector
    }
    turn.update(start_permissions=rest)
