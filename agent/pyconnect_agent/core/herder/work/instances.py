"""Start, stop and move connectors and tasks until this worker runs what it should run.

Starting is decided by comparing, not from a list of things to do: `reconcile` may be called at any
time and any number of times. Work starts only while the assignment is resolved and no rejoin is
wanted, so a task never starts from a task set that is about to be assigned again; it stops as soon
as it should not run any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pyconnect_agent.core.herder.effects import (
    PutStatus,
    StartConnector,
    TransitionConnector,
    TransitionTask,
)
from pyconnect_agent.core.herder.state import Life, RunningConnector
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import failures, start_permissions
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.reporting import Reported, Status
from pyconnect_agent.core.restart_policy import NO_RESTARTS


def reconcile(turn: Turn, connector: str) -> int:
    """Start, stop and transition instances that differ; return how many were started."""
    _stop_unwanted(turn, connector)
    _transition(turn, connector)
    if not turn.state.may_start_work:
        return 0
    return _start_connector(turn, connector) + _start_tasks(turn, connector)


def stop_connector(turn: Turn, connector: str) -> None:
    """No-op unless it is started; `reconcile` starts it again when it is still wanted."""
    failures.forget(turn, connector, (None,))
    work = turn.work_of(connector)
    if work.connector is None or work.connector.life is not Life.STARTED:
        return
    stopping = replace(work.connector, life=Life.STOPPING)
    turn.put_work(connector, replace(work, connector=stopping))
    turn.stop(connectors=(connector,))


def stop_tasks(turn: Turn, connector: str, numbers: Iterable[int]) -> None:
    """Stop those of `numbers` that are started; forget those that have no process yet."""
    numbers = sorted(numbers)
    failures.forget(turn, connector, numbers)
    work = turn.work_of(connector)
    waiting = [n for n in numbers if (t := work.tasks.get(n)) and not t.life.has_process]
    if waiting:
        start_permissions.gone(turn, connector, waiting)
        rest = {n: task for n, task in work.tasks.items() if n not in waiting}
        work = replace(work, tasks=rest)
        turn.put_work(connector, work)
    started = [
        n for n in numbers if (task := work.tasks.get(n)) is not None and task.life is Life.STARTED
    ]
    if not started:
        return
    tasks = dict(work.tasks)
    for number in started:
        tasks[number] = replace(tasks[number], life=Life.STOPPING)
    turn.put_work(connector, replace(work, tasks=tasks))
    turn.stop(tasks=[ConnectorTaskId(connector, n) for n in started])


def stop_everything(turn: Turn) -> None:
    for connector in turn.work.keys_now():
        stop_connector(turn, connector)
        stop_tasks(turn, connector, turn.work_of(connector).tasks)


def give_up_everything(turn: Turn) -> None:
    """Stop everything, and own nothing any more."""
    for connector in turn.work.keys_now():
        share = turn.work_of(connector)
        turn.put_work(
            connector, replace(share, connector_assigned=False, tasks_assigned=frozenset())
        )
    stop_everything(turn)


def stopped(
    turn: Turn, connectors: Sequence[str], task_ids: Sequence[ConnectorTaskId]
) -> list[str]:
    """Forget stopped instances and publish RESTARTING; return the connectors concerned."""
    turn.update(stops_in_flight=turn.state.stops_in_flight - 1)
    for connector in connectors:
        work = turn.work_of(connector)
        turn.put_work(connector, replace(work, connector=None))
    gone: dict[str, set[int]] = {}
    for task_id in task_ids:
        gone.setdefault(task_id.connector, set()).add(task_id.task)
    for connector, numbers in gone.items():
        work = turn.work_of(connector)
        tasks = {n: task for n, task in work.tasks.items() if n not in numbers}
        turn.put_work(connector, replace(work, tasks=tasks))
    concerned = sorted({*connectors, *gone})
    for connector in concerned:
        publish_restarting(turn, connector)
        reconcile(turn, connector)
    return concerned


def publish_restarting(turn: Turn, connector: str) -> None:
    """Write RESTARTING for instances that are restarted and have stopped.

    After a failure it has the trace of the failure: a look between two attempts finds the reason.
    """
    work = turn.work_of(connector)

    def restarting(task: int | None) -> Status:
        history = work.restarts.get(task, NO_RESTARTS)
        return turn.status(Reported(state=State.RESTARTING, trace=history.trace))

    if work.restarting_connector and work.connector is None:
        work = replace(work, restarting_connector=False)
        turn.emit(PutStatus(item=connector, status=restarting(None), safe=False))
    ready = frozenset(n for n in work.restarting_tasks if n not in work.tasks)
    for number in sorted(ready):
        task_id = ConnectorTaskId(connector, number)
        turn.emit(PutStatus(item=task_id, status=restarting(number), safe=False))
    turn.put_work(connector, replace(work, restarting_tasks=work.restarting_tasks - ready))


def _stop_unwanted(turn: Turn, connector: str) -> None:
    """Stop instances that are not assigned, not configured, or started from an older config."""
    work = turn.work.get(connector)
    if work is None:
        return
    snapshot = turn.state.snapshot
    config = snapshot.connector_config(connector)
    running = work.connector
    if running is not None and (
        not work.connector_assigned
        or config is None
        or (running.config is not config and running.config != config)
    ):
        stop_connector(turn, connector)
    if not work.tasks:
        return
    generation = snapshot.task_config_generations.get(connector, 0)
    usable = _usable_tasks(snapshot, connector)
    unwanted = [
        number
        for number, task in work.tasks.items()
        if number not in work.tasks_assigned or number >= usable or task.generation != generation
    ]
    stop_tasks(turn, connector, unwanted)


def _transition(turn: Turn, connector: str) -> None:
    """Pass a changed target state to running instances."""
    work = turn.work.get(connector)
    target = turn.state.snapshot.target_state(connector)
    if work is None or target is None:
        return
    running = work.connector
    if running is not None and running.life is Life.STARTED and running.target_state is not target:
        turn.emit(TransitionConnector(connector=connector, target_state=target))
        # The last report belongs to the old target state.
        running = replace(running, target_state=target, reported=None)
        work = replace(work, connector=running)
    moving = [
        number
        for number, task in work.tasks.items()
        if task.life is Life.STARTED and task.target_state is not target
    ]
    if moving:
        tasks = dict(work.tasks)
        for number in moving:
            task_id = ConnectorTaskId(connector, number)
            turn.emit(TransitionTask(task_id=task_id, target_state=target))
            tasks[number] = replace(tasks[number], target_state=target)
        work = replace(work, tasks=tasks)
    if work is not turn.work.get(connector):
        turn.put_work(connector, work)


def _start_connector(turn: Turn, connector: str) -> int:
    work = turn.work_of(connector)
    config = turn.state.snapshot.connector_config(connector)
    if not work.connector_assigned or work.connector is not None or config is None:
        return 0
    target = turn.state.snapshot.target_state(connector) or TargetState.STARTED
    turn.emit(StartConnector(connector=connector, config=config, target_state=target))
    running = RunningConnector(config=config, target_state=target)
    turn.put_work(connector, replace(work, connector=running))
    return 1


def _start_tasks(turn: Turn, connector: str) -> int:
    work = turn.work_of(connector)
    if not work.tasks_assigned:
        return 0
    snapshot = turn.state.snapshot
    usable = _usable_tasks(snapshot, connector)
    startable = [
        task_id
        for number in sorted(work.tasks_assigned)
        if number < usable
        and (number not in work.tasks or work.tasks[number].life is Life.PAUSED)
        and (task_id := ConnectorTaskId(connector, number)) in snapshot.task_configs
    ]
    if not startable:
        return 0
    config = snapshot.connector_configs[connector]
    if turn.state.settings.needs_start_permission(config):
        return start_permissions.await_permission(turn, startable)
    start_permissions.start_tasks(turn, startable)
    return len(startable)


def _usable_tasks(snapshot: ConfigSnapshot, connector: str) -> int:
    """Return how many tasks may run.

    A stopped connector has an empty task set. If a worker that does not know STOPPED has written
    tasks for it, they must not run.
    """
    target = snapshot.target_state(connector)
    if not snapshot.contains(connector) or target is TargetState.STOPPED:
        return 0
    return 0 if connector in snapshot.inconsistent else snapshot.task_count(connector)
