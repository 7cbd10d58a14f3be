"""Restarts: the legacy ones of an instance by its owner, and KIP-745's by plan."""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.errors import InternalError, NotAssignedError, NotFoundError
from pyconnect_agent.core.herder.effects import ReadStatus, WriteRestartRequest
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.requests.configs import not_leader
from pyconnect_agent.core.herder.requests.messages import (
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
)
from pyconnect_agent.core.herder.requests.operations import begin_again, fail, proceed, succeed
from pyconnect_agent.core.herder.state import Operation, Step
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.waiters import OperationWaiter, RestartWaiter
from pyconnect_agent.core.herder.work import instances as work
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.configlog import RestartRequested
from pyconnect_agent.core.reporting import ConnectorStateInfo
from pyconnect_agent.core.restart_plan import RestartPlan, restart_plan

_LEADER_RESTARTS = "Only the leader can process restart requests."


def begin_restart_connector(turn: Turn, operation: Operation, request: RestartConnector) -> None:
    connector = request.connector
    if not turn.state.snapshot.contains(connector):
        fail(turn, operation, _unknown(connector))
        return
    if not turn.work_of(connector).connector_assigned:
        text = "Cannot restart connector since it is not assigned to this member"
        _fail_elsewhere(turn, operation, text, connector)
        return
    work.stop_connector(turn, connector)
    if turn.work_of(connector).connector is None:
        work.reconcile(turn, connector)
        proceed(turn, operation, Step.STARTING, stages.STARTING_CONNECTOR)
    else:
        stage = f"stopping restarted connector {connector}"
        proceed(turn, operation, Step.STOPPING, stage)


def begin_restart_task(turn: Turn, operation: Operation, request: RestartTask) -> None:
    """Answered when the task has been asked to start; its status shows whether it runs."""
    task_id = request.task_id
    if not turn.state.snapshot.contains(task_id.connector):
        fail(turn, operation, _unknown(task_id.connector))
        return
    if turn.state.snapshot.task_config(task_id) is None or task_id not in turn.state.snapshot.tasks(
        task_id.connector
    ):
        standalone = turn.state.settings.standalone
        text = f"Task {task_id} not found" if standalone else f"Unknown task: {task_id}"
        fail(turn, operation, NotFoundError(text))
        return
    share = turn.work_of(task_id.connector)
    if task_id.task not in share.tasks_assigned:
        text = "Cannot restart task since it is not assigned to this member"
        _fail_elsewhere(turn, operation, text, task_id)
        return
    work.stop_tasks(turn, task_id.connector, (task_id.task,))
    if task_id.task in turn.work_of(task_id.connector).tasks:
        proceed(turn, operation, Step.STOPPING, f"restarting task {task_id}")
    else:
        work.reconcile(turn, task_id.connector)
        succeed(turn, operation)


def work_stopped(turn: Turn, connector: str) -> None:
    """Something of `connector` is gone: a restart in its lane goes on."""
    operation = _active(turn, connector)
    if operation is None or operation.step is not Step.STOPPING:
        return
    share = turn.work_of(connector)
    match operation.request:
        case RestartConnector():
            if share.connector is None or share.connector.reported is None:
                proceed(turn, operation, Step.STARTING, stages.STARTING_CONNECTOR)
        case RestartTask(task_id=task_id):
            running = share.tasks.get(task_id.task)
            if running is not None or not turn.state.may_start_work:
                # Started by `reconcile`, or will be after the rebalance that is on its way.
                succeed(turn, operation)
            else:
                fail(turn, operation, InternalError(f"Failed to start task: {task_id}"))
        case _:
            pass


def connector_reported(turn: Turn, connector: str, state: State) -> None:
    """The restarted connector has said how its start went."""
    operation = _active(turn, connector)
    if (
        operation is None
        or operation.step is not Step.STARTING
        or not isinstance(operation.request, RestartConnector)
    ):
        return
    if state is State.FAILED:
        fail(turn, operation, InternalError(f"Failed to start connector: {connector}"))
    elif state in (State.RUNNING, State.PAUSED, State.STOPPED):
        succeed(turn, operation)


def begin_restart_by_plan(
    turn: Turn, operation: Operation, request: RestartConnectorAndTasks
) -> None:
    if not turn.state.snapshot.contains(request.connector):
        fail(turn, operation, _unknown(request.connector))
        return
    if not turn.state.is_leader:
        fail(turn, operation, not_leader(turn, _LEADER_RESTARTS))
        return
    # Before the record is written: once it is read, the statuses lose their traces.
    stage = stages.writing_restart_request(request.connector)
    proceed(turn, operation, Step.READING_STATUS, stage)
    turn.emit(
        ReadStatus(
            effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
            connector=request.connector,
        )
    )


def resume_restart_by_plan(
    turn: Turn, operation: Operation, request: RestartConnectorAndTasks, result: object
) -> None:
    """Write the record; the reply shows the selected ones of the statuses that were read."""
    if operation.step is Step.READING_STATUS:
        if not turn.state.serving:
            begin_again(turn, operation)
            return
        if not turn.state.is_leader:
            fail(turn, operation, not_leader(turn, _LEADER_RESTARTS))
            return
        stage = stages.writing_restart_request(request.connector)
        status = result if isinstance(result, ConnectorStateInfo) else None
        proceed(turn, operation, Step.WRITING, stage, status=status)
        turn.emit(
            WriteRestartRequest(
                effect_id=turn.wait_for(OperationWaiter(request_id=operation.request_id)),
                connector=request.connector,
                only_failed=request.only_failed,
                include_tasks=request.include_tasks,
            )
        )
        return
    if operation.status is None:
        text = f"Status for connector {request.connector} not found"
        fail(turn, operation, NotFoundError(text))
        return
    record = RestartRequested(
        connector=request.connector,
        only_failed=request.only_failed,
        include_tasks=request.include_tasks,
    )
    succeed(turn, operation, restart_plan(record, operation.status).state_info)


def execute_pending(turn: Turn) -> None:
    """Plan the restarts that were read from the config topic, once work may start here."""
    if not turn.state.restarts or not turn.state.may_start_work:
        return
    for request in turn.state.restarts.values():
        if not turn.work_of(request.connector).empty:
            effect_id = turn.wait_for(RestartWaiter(request=request))
            turn.emit(ReadStatus(effect_id=effect_id, connector=request.connector))
    turn.update(restarts={})


def planned(turn: Turn, waiter: RestartWaiter, result: object) -> None:
    if isinstance(result, ConnectorStateInfo) and turn.state.snapshot.contains(
        waiter.request.connector
    ):
        _execute(turn, restart_plan(waiter.request, result))


def _execute(turn: Turn, plan: RestartPlan) -> None:
    """Stop the selected work of this worker; write RESTARTING when it is gone, then start it."""
    connector = plan.request.connector
    share = turn.work_of(connector)
    numbers = share.tasks_assigned & {task_id.task for task_id in plan.restart_tasks}
    restart_connector = plan.restart_connector and share.connector_assigned
    share = replace(
        share,
        restarting_connector=share.restarting_connector or restart_connector,
        restarting_tasks=share.restarting_tasks | numbers,
    )
    turn.put_work(connector, share)
    if restart_connector:
        work.stop_connector(turn, connector)
    work.stop_tasks(turn, connector, numbers)
    work.publish_restarting(turn, connector)
    work.reconcile(turn, connector)


def _active(turn: Turn, connector: str) -> Operation | None:
    queue = turn.lanes.get(connector)
    return turn.operations.get(queue[0]) if queue else None


def _fail_elsewhere(
    turn: Turn, operation: Operation, text: str, item: str | ConnectorTaskId
) -> None:
    """The leader knows the owner, everybody else only the leader."""
    if turn.state.is_leader:
        fail(turn, operation, NotAssignedError(text, target_url=turn.state.owner_url(item)))
    else:
        fail(turn, operation, not_leader(turn, _LEADER_RESTARTS))


def _unknown(connector: str) -> NotFoundError:
    # The colon is Apache's, here only.
    return NotFoundError(f"Unknown connector: {connector}")
