"""Start, stop and move connectors and tasks until this worker runs what it should run.

Starting is decided by comparing, not from a list of things to do: `reconcile` may be called at any
time and any number of times. Work starts only while the assignment is resolved and no rejoin is
wanted, so a task never starts from a task set that is about to be assigned again; it stops as soon
as it should not run any more.

The history of failures belongs to an assignment: it is forgotten when an operator, a new config or
another owner starts the work. An automatic restart has the steps of a requested restart: the work
is stopped, RESTARTING is written, and the work starts from the newest configs. An exactly-once
source task starts only after older producers are fenced.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pyconnect_agent.core.herder import start_permissions
from pyconnect_agent.core.herder.effects import (
    PutStatus,
    StartConnector,
    TransitionConnector,
    TransitionTask,
)
from pyconnect_agent.core.herder.state import HerderState, Life, RunningConnector
from pyconnect_agent.core.herder.steps import Timer
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.reporting import Reported, Status
from pyconnect_agent.core.restart_policy import (
    NO_RESTARTS,
    NoRestart,
    RestartMode,
    RestartPolicy,
    Restarts,
    after_failure,
    after_restart,
    after_start,
    jitter_of,
    remark,
)


def reconcile(turn: Turn, connector: str) -> int:
    """Start, stop and transition a connector's instances as needed; return the number started."""
    _stop_unwanted(turn, connector)
    _transition(turn, connector)
    if not turn.state.may_start_work:
        return 0
    return _start_connector(turn, connector) + _start_tasks(turn, connector)


def stop_connector(turn: Turn, connector: str) -> None:
    """Stop a connector if it is started; `reconcile` starts it again if it is still wanted."""
    forget_failures(turn, connector, (None,))
    work = turn.work_of(connector)
    if work.connector is None or work.connector.life is not Life.STARTED:
        return
    stopping = replace(work.connector, life=Life.STOPPING)
    turn.put_work(connector, replace(work, connector=stopping))
    turn.stop(connectors=(connector,))


def stop_tasks(turn: Turn, connector: str, numbers: Iterable[int]) -> None:
    """Stop the started ones of `numbers`; forget those that have no process yet."""
    numbers = sorted(numbers)
    forget_failures(turn, connector, numbers)
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
    """Stop everything, and drop the whole assignment."""
    for connector in turn.work.keys_now():
        share = turn.work_of(connector)
        turn.put_work(
            connector, replace(share, connector_assigned=False, tasks_assigned=frozenset())
        )
    stop_everything(turn)


def stopped(
    turn: Turn, connectors: Sequence[str], task_ids: Sequence[ConnectorTaskId]
) -> list[str]:
    """Forget stopped instances and publish RESTARTING; return the names of their connectors."""
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

    After a failure the status keeps its trace, so that a user sees the reason between two attempts.
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
        # The last report is about the old target state.
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


def policy_of(state: HerderState, connector: str) -> RestartPolicy:
    """Return the policy in force for a connector and its tasks."""
    config = state.snapshot.connector_config(connector)
    keys = state.settings.agent_keys
    policy = keys.restart if config is None else keys.of_connector(config).restart
    return policy.within(agents_only=state.agents_only)


def failed(turn: Turn, connector: str, task: int | None, report: Reported) -> Reported:
    """Plan the next restart; return the report with a remark on it. `task` None: the connector."""
    share, policy = turn.work_of(connector), policy_of(turn.state, connector)
    before = share.restarts.get(task, NO_RESTARTS)
    item = connector if task is None else str(ConnectorTaskId(connector, task))
    jitter = jitter_of(turn.state.settings.worker_id, item, before.total)
    history = after_failure(
        before, policy, turn.now_ms, jitter=jitter, no_restart=report.no_restart
    )
    put_history(turn, connector, task, replace(history, trace=report.trace))
    turn.failed.append((connector, task))
    added = remark(history, policy)
    if not added:
        return report
    trace = f"{report.trace.rstrip()}\n{added}" if report.trace else added
    return replace(report, trace=trace)


def started(turn: Turn, connector: str, task: int | None) -> None:
    """Note in the history that the instance runs, or is paused as it should be."""
    history = turn.work_of(connector).restarts.get(task)
    if history is not None:
        put_history(turn, connector, task, after_start(history, turn.now_ms))


def put_history(turn: Turn, connector: str, task: int | None, history: Restarts) -> None:
    share = turn.work_of(connector)
    turn.put_work(connector, replace(share, restarts={**share.restarts, task: history}))


def forget_failures(turn: Turn, connector: str, tasks: Iterable[int | None]) -> None:
    share = turn.work_of(connector)
    gone = share.restarts.keys() & set(tasks)
    if gone:
        rest = {task: found for task, found in share.restarts.items() if task not in gone}
        turn.put_work(connector, replace(share, restarts=rest))


REBALANCING_MS = 1_000
"""The pause before a restart that is due during a rebalance is checked again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartDue(Timer):
    """Restart an instance, unless its history has changed meanwhile; `task` None: the connector."""

    connector: str
    task: int | None

    def due(self, turn: Turn) -> None:
        connector, task = self.connector, self.task
        history = turn.work_of(connector).restarts.get(task)
        if history is None or history.next_ms is None or history.next_ms > turn.now_ms:
            return
        if not turn.state.may_start_work:
            turn.wake_at(turn.now_ms + REBALANCING_MS, self)
            return
        if policy_of(turn.state, connector).mode is RestartMode.NEVER:
            given_up = replace(history, next_ms=None, ended=NoRestart.POLICY)
            put_history(turn, connector, task, given_up)
            return
        if task is None:
            stop_connector(turn, connector)
            share = replace(turn.work_of(connector), restarting_connector=True)
        else:
            stop_tasks(turn, connector, (task,))
            share = turn.work_of(connector)
            share = replace(share, restarting_tasks=share.restarting_tasks | {task})
        turn.put_work(connector, share)
        put_history(turn, connector, task, after_restart(history, turn.now_ms))
        publish_restarting(turn, connector)
        reconcile(turn, connector)


def plan_restarts(turn: Turn) -> None:
    """Set timers for the restarts of work that has failed in this turn."""
    for connector, task in turn.failed:
        history = turn.work_of(connector).restarts.get(task)
        if history is not None and history.next_ms is not None:
            turn.wake_at(history.next_ms, RestartDue(connector=connector, task=task))
