"""The herder's decisions: `decide(state, event, now_ms) -> (state, effects)`.

Pure: the same arguments give the same answer. The shell (`pyconnect_agent.herder`) performs the
effects in order and posts their results as further events. Each kind of event is decided in its own
module. Steps that several events make possible (joining again, beginning a queued request,
executing a restart) are checked once, at the end of every turn.

Kafka: DistributedHerder.tick. Where Apache's worker waits inside a tick, this one records a waiter
and goes on with the next event; when the answer comes, the conditions are checked again.
"""

from __future__ import annotations

from typing import Any, assert_never

from pyconnect_agent.core.errors import PrivilegedWriteError
from pyconnect_agent.core.herder import changes
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import waiters as wait
from pyconnect_agent.core.herder.effects import Abort, Effect
from pyconnect_agent.core.herder.membership import (
    draining,
    rebalance,
    session_keys,
)
from pyconnect_agent.core.herder.membership import (
    leader_id_conflicts as disputes,
)
from pyconnect_agent.core.herder.requests import (
    configs as config_requests,
)
from pyconnect_agent.core.herder.requests import messages as ask
from pyconnect_agent.core.herder.requests import (
    offsets as offset_requests,
)
from pyconnect_agent.core.herder.requests import (
    operations,
    stages,
)
from pyconnect_agent.core.herder.requests import (
    restarts as restart_requests,
)
from pyconnect_agent.core.herder.requests import (
    target_states as state_requests,
)
from pyconnect_agent.core.herder.state import (
    ApplyTaskConfigs,
    HerderState,
    Operation,
    Phase,
    Step,
    WritePrivilege,
)
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import (
    automatic_restarts,
    fencing,
    reconfiguration,
    reports,
)
from pyconnect_agent.core.herder.work import (
    instances as work,
)
from pyconnect_agent.core.herder.work import (
    start_permissions as clearances,
)

_READING = frozenset(
    {
        Step.WRITING,
        Step.READING_BACK,
        Step.READING_CONFIG,
        Step.READING_AGAIN,
        Step.CONFIRMING,
    }
)
"""Steps whose effects return the state of the config topic after them."""


def decide(
    state: HerderState, event: on.Event, now_ms: int
) -> tuple[HerderState, tuple[Effect, ...]]:
    """`now_ms` is the shell's clock: epoch milliseconds that never go back."""
    turn = Turn(state, now_ms)
    _decide(turn, event)
    if turn.state.phase is not Phase.STOPPED:
        _settle(turn)
    return turn.finish()


def _decide(turn: Turn, event: on.Event) -> None:
    match event:
        case on.RequestArrived():
            operations.arrived(turn, event)
        case on.EffectDone(effect_id=effect_id, result=result):
            _done(turn, turn.take_waiter(effect_id), result)
        case on.EffectFailed(effect_id=effect_id, error=error):
            _failed(turn, turn.take_waiter(effect_id), error)
        case on.ConnectorReported():
            reports.connector_reported(turn, event)
        case on.TaskReported():
            reports.task_reported(turn, event)
        case on.TaskStartAsked():
            clearances.task_start_asked(turn, event)
        case on.ReconfigurationRequested(connector=connector):
            reconfiguration.request(turn, connector)
        case on.ConfigExpired(connector=connector):
            work.stop_connector(turn, connector)
        case on.ConfigAdvanced():
            changes.config_advanced(turn, event)
        case on.TimerDue(timer=timer):
            _timer_due(turn, timer)
        case _:
            _decide_on_worker(turn, event)


def _decide_on_worker(turn: Turn, event: on.WorkerEvent) -> None:
    match event:
        case on.Initializing():
            turn.begin_stage(stages.INITIALIZING)
        case on.Started():
            rebalance.started(turn, event)
        case on.Stopping():
            turn.begin_stage(stages.SHUTTING_DOWN)
            operations.stopping(turn)
            clearances.stopping(turn)
            turn.update(phase=Phase.STOPPED, rejoin_wanted=False)
        case on.Joined():
            rebalance.joined(turn, event)
        case on.AssignmentUnreadable():
            rebalance.assignment_unreadable(turn)
        case on.RejoinNeeded():
            rebalance.request_rejoin(turn)
        case on.MembershipLost():
            rebalance.membership_lost(turn)
        case on.Drain():
            draining.drain(turn)
        case on.Undrain():
            draining.undrain(turn)
        case on.GroupFailed(reason=reason):
            turn.emit(Abort(reason=reason))
        case _:
            assert_never(event)


def _settle(turn: Turn) -> None:
    """Take all steps that have become possible."""
    turn.flush_stops()
    rebalance.advance(turn)
    restart_requests.execute_pending(turn)
    while (operation := operations.next_to_begin(turn)) is not None:
        if not (draining.refused(turn, operation) or disputes.refused(turn, operation)):
            _begin(turn, operation)
    session_keys.keep_fresh(turn)
    turn.flush_stops()
    rebalance.advance(turn)


def _timer_due(turn: Turn, timer: on.Timer) -> None:
    match timer:
        case on.RequestExpiry():
            operations.deadline_passed(turn, timer)
        case on.ClearanceRetry():
            clearances.retry(turn, timer)
        case on.TaskStartRetry():
            clearances.retry_task_start(turn, timer)
        case on.JoinRetry():
            rebalance.join_due(turn)
        case on.ReconfigurationRetry():
            reconfiguration.retry_due(turn, timer)
        case on.ScheduledRebalance():
            rebalance.scheduled_rebalance_due(turn, timer)
        case on.CatchUpRetry():
            rebalance.catch_up_due(turn, timer)
        case on.ClaimRetry():
            rebalance.claim_due(turn, timer)
        case on.SessionKeyDue():
            session_keys.due(turn)
        case on.RestartDue():
            automatic_restarts.due(turn, timer)
        case _:
            assert_never(timer)


def _begin(turn: Turn, operation: Operation) -> None:
    request = operation.request
    match request:
        case ask.Probe():
            operations.succeed(turn, operation)
        case ask.GetConnectorInfo() | ask.GetConnectorConfig() | ask.GetTaskConfigs():
            config_requests.read(turn, operation, request)
        case ask.PutConnectorConfig():
            config_requests.begin_put(turn, operation, request)
        case ask.PatchConnectorConfig():
            config_requests.begin_patch(turn, operation, request)
        case ask.DeleteConnector():
            config_requests.begin_delete(turn, operation, request)
        case ask.SetTargetState():
            state_requests.begin_target_state(turn, operation, request)
        case ask.StopConnector():
            state_requests.begin_stop(turn, operation, request)
        case ask.RestartConnector() | ask.RestartConnectorAndTasks() | ask.RestartTask():
            _begin_restart(turn, operation, request)
        case ask.SubmitTaskConfigs():
            state_requests.begin_submit(turn, operation, request)
        case ask.FenceZombies():
            fencing.begin(turn, operation, request)
        case ask.ChangeOffsets():
            offset_requests.begin(turn, operation)
        case ApplyTaskConfigs():
            reconfiguration.begin_apply(turn, operation, request)
        case _:
            assert_never(request)


def _begin_restart(
    turn: Turn,
    operation: Operation,
    request: ask.RestartConnector | ask.RestartConnectorAndTasks | ask.RestartTask,
) -> None:
    match request:
        case ask.RestartConnector():
            restart_requests.begin_restart_connector(turn, operation, request)
        case ask.RestartConnectorAndTasks():
            restart_requests.begin_restart_by_plan(turn, operation, request)
        case ask.RestartTask():
            restart_requests.begin_restart_task(turn, operation, request)


def _done(turn: Turn, waiter: wait.Waiter | None, result: Any) -> None:
    match waiter:
        case None:
            pass
        case wait.OperationWaiter(request_id=request_id):
            operation = turn.operations.get(request_id)
            if operation is not None:
                _resume(turn, operation, result)
        case wait.StopWaiter():
            for connector in sorted(work.stopped(turn, waiter)):
                restart_requests.work_stopped(turn, connector)
        case wait.FlushWaiter():
            rebalance.flushed(turn, waiter)
        case wait.DrainWaiter():
            draining.flushed(turn)
        case wait.CatchUpWaiter():
            rebalance.caught_up(turn, waiter, result)
        case wait.ClaimWaiter():
            rebalance.claimed(turn, waiter)
        case wait.GenerationWaiter():
            reconfiguration.generated(turn, waiter, result)
        case wait.RestartWaiter():
            restart_requests.planned(turn, waiter, result)
        case _:
            _config_done(turn, waiter, result)


def _config_done(turn: Turn, waiter: wait.ConfigWaiter, result: Any) -> None:
    """Adopt the config topic's state, then go on with the waiter."""
    match waiter:
        case wait.FencingWaiter():
            clearances.done(turn, waiter)
        case wait.ClearanceWaiter() | wait.TaskStartWaiter():
            changes.adopt_read(turn, result)
            clearances.done(turn, waiter)
        case wait.SessionKeyWaiter():
            changes.adopt_read(turn, result)
            session_keys.written(turn)
        case _:
            assert_never(waiter)


def _failed(turn: Turn, waiter: wait.Waiter | None, error: Exception) -> None:
    match waiter:
        case None | wait.RestartWaiter():
            # Without a status there is no plan; the request's own reply has reported it.
            pass
        case wait.OperationWaiter(request_id=request_id):
            operation = turn.operations.get(request_id)
            if operation is not None:
                _operation_failed(turn, operation, error)
        case wait.StopWaiter():
            rebalance.stop_failed(turn, error)
        case wait.FlushWaiter():
            rebalance.flushed(turn, waiter)
        case wait.DrainWaiter():
            draining.flushed(turn)
        case wait.CatchUpWaiter():
            rebalance.catching_up_failed(turn, waiter)
        case wait.ClaimWaiter():
            rebalance.claim_failed(turn, waiter)
        case wait.GenerationWaiter(connector=connector):
            reconfiguration.failed(turn, connector, error)
        case wait.FencingWaiter() | wait.ClearanceWaiter() | wait.TaskStartWaiter():
            clearances.failed(turn, waiter, error)
        case wait.SessionKeyWaiter():
            if isinstance(error, PrivilegedWriteError):
                _privilege_lost(turn)
            session_keys.failed(turn)
        case _:
            assert_never(waiter)


def _resume(turn: Turn, operation: Operation, result: Any) -> None:
    """Go on with an operation whose effect is done; adopt the snapshot that was read first."""
    if operation.step in _READING:
        changes.adopt_read(turn, result)
    if disputes.refused(turn, operation):
        return
    request = operation.request
    match request:
        case ask.PutConnectorConfig() | ask.PatchConnectorConfig():
            if operation.step is Step.VALIDATING:
                config_requests.validated(turn, operation, request)
            else:
                config_requests.written(turn, operation, request.connector)
        case ask.StopConnector():
            state_requests.resume_stop(turn, operation, request)
        case ask.RestartConnectorAndTasks():
            restart_requests.resume_restart_by_plan(turn, operation, request, result)
        case ask.FenceZombies():
            fencing.resume(turn, operation, request)
        case ask.ChangeOffsets():
            offset_requests.resume(turn, operation, request, result)
        case ApplyTaskConfigs():
            reconfiguration.applied(turn, operation, request)
        case _:
            operations.succeed(turn, operation)


def _operation_failed(turn: Turn, operation: Operation, error: Exception) -> None:
    if isinstance(error, PrivilegedWriteError):
        _privilege_lost(turn)
    request = operation.request
    if isinstance(request, ApplyTaskConfigs):
        reconfiguration.failed_to_apply(turn, operation, request, error)
    elif isinstance(request, ask.FenceZombies):
        fencing.failed(turn, operation, error)
    elif isinstance(request, ask.ChangeOffsets):
        offset_requests.failed(turn, operation, request, error)
    elif isinstance(request, ask.StopConnector) and operation.step is Step.READING_BACK:
        # Both records are written; reading them back only saves the client a surprise.
        operations.succeed(turn, operation)
    else:
        operations.fail(turn, operation, error)


def _privilege_lost(turn: Turn) -> None:
    """Another leader may have taken over; if we still are the leader, claim again (KIP-618)."""
    if turn.state.privilege is not WritePrivilege.HELD:
        return
    turn.update(privilege=WritePrivilege.NONE)
    if turn.state.is_leader:
        rebalance.claim_writes(turn)
