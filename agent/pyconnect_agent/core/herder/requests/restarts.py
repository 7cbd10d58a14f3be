"""Restarts: of one instance by its owner (the older requests), and of several by plan (KIP-745).

Every worker builds the plan from its own view of the statuses and then restricts it to the work
that it owns; the plan itself has no owners. Kafka: RestartPlan, RestartRequest.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyconnect_agent.core.errors import InternalError, NotAssignedError, NotFoundError
from pyconnect_agent.core.herder import instances, steps
from pyconnect_agent.core.herder.effects import Abort, ReadStatus, StopWork, WriteRestartRequest
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.steps import ConnectorRequest, Request, Waiter
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo, Status


def stronger(pending: RestartRequested | None, request: RestartRequested) -> RestartRequested:
    """Return the request to keep: one for all states, else one with tasks, else the earlier one."""
    weights = [(not r.only_failed, r.include_tasks) for r in (pending or request, request)]
    return request if pending is None or weights[1] > weights[0] else pending


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """A plan; its `state_info` shows selected instances as RESTARTING and the rest unchanged."""

    state_info: ConnectorStateInfo
    restart_connector: bool
    restart_tasks: frozenset[int]


def restart_plan(request: RestartRequested, current: ConnectorStateInfo) -> RestartPlan:
    """Return the plan of a request; selected instances keep worker id, trace and version."""

    def selected(status: Status) -> bool:
        return not request.only_failed or status.state is State.FAILED

    restarting = partial(replace, state=State.RESTARTING)
    connector, tasks = current.connector, current.tasks
    numbers = {n for n, status in tasks if request.include_tasks and selected(status)}
    return RestartPlan(
        state_info=replace(
            current,
            connector=restarting(connector) if selected(connector) else connector,
            tasks=tuple((n, restarting(old) if n in numbers else old) for n, old in tasks),
        ),
        restart_connector=selected(connector),
        restart_tasks=frozenset(numbers),
    )


_LEADER_RESTARTS = "Only the leader can process restart requests."


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConnector(ConnectorRequest):
    """Restart of the connector instance by its owner. -> None."""

    restarts = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        connector = self.connector
        if not (_known(turn, operation, connector) and _assigned(turn, operation, connector)):
            return
        instances.stop_connector(turn, connector)
        if turn.work_of(connector).connector is None:
            instances.reconcile(turn, connector)
            turn.proceed(operation, Step.STARTING, steps.STARTING_CONNECTOR)
        else:
            turn.proceed(operation, Step.STOPPING, f"stopping restarted connector {connector}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartTask(Request):
    """-> None, when the task has been asked to start; the task's status shows whether it runs."""

    task_id: ConnectorTaskId
    restarts = True

    @property
    def lane(self) -> str | None:
        return self.task_id.connector

    def begin(self, turn: Turn, operation: Operation) -> None:
        task_id, snapshot = self.task_id, turn.state.snapshot
        if not _known(turn, operation, task_id.connector):
            return
        if snapshot.task_config(task_id) is None or task_id not in snapshot.tasks(
            task_id.connector
        ):
            standalone = turn.state.settings.standalone
            text = f"Task {task_id} not found" if standalone else f"Unknown task: {task_id}"
            turn.fail(operation, NotFoundError(text))
            return
        if not _assigned(turn, operation, task_id):
            return
        instances.stop_tasks(turn, task_id.connector, (task_id.task,))
        if task_id.task in turn.work_of(task_id.connector).tasks:
            turn.proceed(operation, Step.STOPPING, f"restarting task {task_id}")
        else:
            instances.reconcile(turn, task_id.connector)
            turn.succeed(operation)


def flush_stops(turn: Turn) -> None:
    """Turn the stops of this turn into one effect."""
    connectors, tasks = tuple(turn.stopping_connectors), tuple(turn.stopping_tasks)
    if not connectors and not tasks:
        return
    turn.stopping_connectors.clear()
    turn.stopping_tasks.clear()
    turn.update(stops_in_flight=turn.state.stops_in_flight + 1)
    turn.ask(
        StopWork(connectors=connectors, tasks=tasks),
        WorkStopped(connectors=connectors, tasks=tasks),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkStopped(Waiter):
    """The wait for the end of work: then it starts again if it should, and restarts go on."""

    connectors: tuple[str, ...]
    tasks: tuple[ConnectorTaskId, ...]

    def done(self, turn: Turn, result: Any) -> None:
        for connector in instances.stopped(turn, self.connectors, self.tasks):
            operation = turn.first_in_lane(connector)
            if operation is not None and operation.step is Step.STOPPING:
                share = turn.work_of(connector)
                match operation.request:
                    case RestartConnector():
                        if share.connector is None or share.connector.reported is None:
                            turn.proceed(operation, Step.STARTING, steps.STARTING_CONNECTOR)
                    case RestartTask(task_id=task_id):
                        if task_id.task in share.tasks or not turn.state.may_start_work:
                            # `reconcile` has started the task, or will do so after the rebalance.
                            turn.succeed(operation)
                        else:
                            turn.fail(operation, InternalError(f"Failed to start task: {task_id}"))
                    case _:
                        pass

    def failed(self, turn: Turn, error: Exception) -> None:
        """End the worker: work that cannot be stopped must not be started elsewhere."""
        turn.emit(Abort(reason=f"Failed to stop connectors and tasks: {error}"))


def connector_reported(turn: Turn, connector: str, state: State) -> None:
    """Answer the restart of a connector that has reported how its start went."""
    operation = turn.first_in_lane(connector)
    if (
        operation is None
        or operation.step is not Step.STARTING
        or not isinstance(operation.request, RestartConnector)
    ):
        return
    if state is State.FAILED:
        turn.fail(operation, InternalError(f"Failed to start connector: {connector}"))
    elif state in (State.RUNNING, State.PAUSED, State.STOPPED):
        turn.succeed(operation)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConnectorAndTasks(ConnectorRequest):
    """KIP-745. -> ConnectorStateInfo that shows the selected instances as RESTARTING."""

    only_failed: bool
    include_tasks: bool
    leaders_write = True
    restarts = True

    def begin(self, turn: Turn, operation: Operation) -> None:
        if _known(turn, operation, self.connector) and turn.leads(operation, _LEADER_RESTARTS):
            # Before the record is written: its readers remove the traces from the statuses.
            status = ReadStatus(connector=self.connector)
            turn.proceed(operation, Step.READING_STATUS, self._writing, status)

    def resumed(self, turn: Turn, operation: Operation, result: Any) -> None:
        """Write the record, then answer with the read statuses, the selected ones as RESTARTING."""
        if operation.step is Step.READING_STATUS:
            if not turn.state.serving:
                turn.begin_again(operation)
            elif turn.leads(operation, _LEADER_RESTARTS):
                record = WriteRestartRequest(
                    connector=self.connector,
                    only_failed=self.only_failed,
                    include_tasks=self.include_tasks,
                )
                turn.proceed(operation, Step.WRITING, self._writing, record, status=result)
        elif operation.status is None:
            text = f"Status for connector {self.connector} not found"
            turn.fail(operation, NotFoundError(text))
        else:
            requested = RestartRequested(
                connector=self.connector,
                only_failed=self.only_failed,
                include_tasks=self.include_tasks,
            )
            turn.succeed(operation, restart_plan(requested, operation.status).state_info)

    @property
    def _writing(self) -> str:
        return f"writing restart request for connector {self.connector} to the config topic"


def execute_pending(turn: Turn) -> None:
    """Execute the restarts that were read from the config topic, once work may start here."""
    if not turn.state.restarts or not turn.state.may_start_work:
        return
    for request in turn.state.restarts.values():
        if not turn.work_of(request.connector).empty:
            turn.ask(ReadStatus(connector=request.connector), PlannedRestart(request=request))
    turn.update(restarts={})


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRestart(Waiter):
    """The wait for the statuses that a restart by plan needs."""

    request: RestartRequested

    def done(self, turn: Turn, result: ConnectorStateInfo | None) -> None:
        """Stop the selected work of this worker; write RESTARTING when it has ended, then start."""
        connector = self.request.connector
        if result is None or not turn.state.snapshot.contains(connector):
            return
        plan = restart_plan(self.request, result)
        share = turn.work_of(connector)
        numbers = share.tasks_assigned & plan.restart_tasks
        restart_connector = plan.restart_connector and share.connector_assigned
        share = replace(
            share,
            restarting_connector=share.restarting_connector or restart_connector,
            restarting_tasks=share.restarting_tasks | numbers,
        )
        turn.put_work(connector, share)
        if restart_connector:
            instances.stop_connector(turn, connector)
        instances.stop_tasks(turn, connector, numbers)
        instances.publish_restarting(turn, connector)
        instances.reconcile(turn, connector)

    def failed(self, turn: Turn, error: Exception) -> None:
        """Do nothing: a restart without statuses has no plan, and its client has its own answer."""


def _known(turn: Turn, operation: Operation, connector: str) -> bool:
    # Only here does Apache's text have a colon.
    return turn.exists(operation, connector, f"Unknown connector: {connector}")


def _assigned(turn: Turn, operation: Operation, item: str | ConnectorTaskId) -> bool:
    """Return whether the item is this worker's; if not, the answer names its owner.

    The leader knows the owner; other workers only know the leader.
    """
    if isinstance(item, ConnectorTaskId):
        kind, ours = "task", item.task in turn.work_of(item.connector).tasks_assigned
    else:
        kind, ours = "connector", turn.work_of(item).connector_assigned
    if not ours and turn.leads(operation, _LEADER_RESTARTS):
        text = f"Cannot restart {kind} since it is not assigned to this member"
        turn.fail(operation, NotAssignedError(text, target_url=turn.state.owner_url(item)))
    return ours
