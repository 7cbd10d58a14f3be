"""The herder's decisions: `decide(state, event, now_ms) -> (state, effects)`.

Pure: the same arguments give the same answer. The shell (`pyconnect_agent.herder`) performs the
effects in order and posts their results as further events. An answered effect, a timer and a
request know their own next step (`steps`). Steps that several events make possible (joining again,
beginning a queued request, executing a restart) are checked once, at the end of every turn.

Kafka: DistributedHerder.tick. Where Apache's worker waits inside a tick, this one records a waiter
and goes on with the next event; when the answer comes, the conditions are checked again.

Changes of the config topic: new and removed connectors and commits of task configs ask for a
rebalance; the worker that runs the connector handles every other change. A snapshot that an effect
has read may be ahead of the changes that are still in the inbox. The differences are then found by
comparison, and the late changes have no effect.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from pyconnect_agent.core.errors import InternalError, PrivilegedWriteError
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import (
    instances,
    membership,
    session_keys,
    start_permissions,
    steps,
)
from pyconnect_agent.core.herder.effects import Abort, ApplyLoggerLevel, Effect, PutStatus
from pyconnect_agent.core.herder.events import ConfigAdvanced, InstanceReported
from pyconnect_agent.core.herder.requests import operations, reconfiguration, restarts
from pyconnect_agent.core.herder.requests.configs import settled
from pyconnect_agent.core.herder.requests.restarts import stronger
from pyconnect_agent.core.herder.state import HerderState, Life, MembershipPhase
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.internal_topics.configlog import (
    ConfigChange,
    ConnectorConfigRemoved,
    ConnectorConfigUpdated,
    LoggerLevelUpdated,
    RestartRequested,
    SessionKeyUpdated,
    TargetStateChanged,
    TaskConfigsUpdated,
)


def config_advanced(turn: Turn, event: ConfigAdvanced) -> None:
    if event.snapshot.offset > turn.state.snapshot.offset:
        _adopt(turn, event.snapshot, event.changes)
    for change in event.changes:
        match change:
            case RestartRequested(connector=connector):
                pending = turn.state.restarts.get(connector)
                restarts = {**turn.state.restarts, connector: stronger(pending, change)}
                turn.update(restarts=restarts)
            case LoggerLevelUpdated(namespace=namespace, level=level):
                turn.emit(ApplyLoggerLevel(namespace=namespace, level=level))
            case _:
                pass


def differences(old: ConfigSnapshot, new: ConfigSnapshot) -> tuple[ConfigChange, ...]:
    """Return the changes from one snapshot to a later one, at most one per connector and kind."""
    changes: list[ConfigChange] = [
        ConnectorConfigRemoved(connector=connector)
        for connector in old.connector_configs.keys() - new.connector_configs.keys()
    ]
    for connector, config in new.connector_configs.items():
        before = old.connector_configs.get(connector)
        if before is not config and before != config:
            changes.append(ConnectorConfigUpdated(connector=connector))
        if old.target_states.get(connector) is not new.target_states.get(connector):
            changes.append(TargetStateChanged(connector=connector))
        if _task_set(old, connector) != _task_set(new, connector):
            changes.append(TaskConfigsUpdated(connector=connector))
    return tuple(changes)


def _adopt(turn: Turn, snapshot: ConfigSnapshot, changes: Iterable[ConfigChange]) -> None:
    old = turn.state.snapshot
    turn.update(snapshot=snapshot)
    if turn.state.phase in (MembershipPhase.STARTING, MembershipPhase.STOPPED):
        return
    touched: dict[str, None] = {}
    rebalance = False
    for change in changes:
        match change:
            case ConnectorConfigUpdated(connector=connector):
                rebalance = rebalance or not old.contains(connector)
                touched[connector] = None
                # Also when the text is the same: a user writes it again to have secrets read again.
                if old.contains(connector):
                    instances.stop_connector(turn, connector)
            case ConnectorConfigRemoved(connector=connector):
                rebalance = rebalance or old.contains(connector)
                touched[connector] = None
            case TaskConfigsUpdated(connector=connector):
                rebalance = True
                touched[connector] = None
            case TargetStateChanged(connector=connector):
                touched[connector] = None
            case SessionKeyUpdated() | RestartRequested() | LoggerLevelUpdated():
                pass
    # While lost work waits for its worker, any newer state of the config topic needs a new
    # assignment.
    member = turn.state.membership
    past_assignment = member is not None and snapshot.offset != member.assignment.config_offset
    if rebalance or (turn.state.scheduled_rebalance and past_assignment):
        turn.update(
            rejoin_wanted=True, rebalance_expected=turn.state.rebalance_expected or rebalance
        )
    for connector in touched:
        instances.reconcile(turn, connector)


def _task_set(snapshot: ConfigSnapshot, connector: str) -> tuple[int, int, bool]:
    return (
        snapshot.task_count(connector),
        snapshot.task_config_generations.get(connector, 0),
        connector in snapshot.inconsistent,
    )


_SAFE = frozenset({State.UNASSIGNED, State.FAILED})
"""States that are written only if no other worker has written since."""


def reported(turn: Turn, event: InstanceReported) -> None:
    item, report = event.item, event.report
    connector, task = item if isinstance(item, ConnectorTaskId) else (item, None)
    share, state = turn.work_of(connector), turn.state
    running = share.connector if task is None else share.tasks.get(task)
    here = running is not None and running.life is Life.STARTED
    if here:
        match report.state:
            case State.FAILED:
                report = instances.failed(turn, connector, task, report)
            case State.RUNNING | State.PAUSED:
                instances.started(turn, connector, task)
            case _:
                instances.forget_failures(turn, connector, (task,))
    safe = report.state in _SAFE
    # The group may have given this worker's work to another worker meanwhile.
    late = safe and (state.membership is None or state.claims_outdated)
    turn.emit(PutStatus(item=item, status=turn.status(report), safe=safe, late=late))
    if here and task is None:
        share = turn.work_of(connector)
        assert share.connector is not None
        running = replace(share.connector, reported=report.state)
        turn.put_work(connector, replace(share, connector=running))
        restarts.connector_reported(turn, connector, report.state)
        match report.state:
            case State.RUNNING:
                reconfiguration.request(turn, connector)
            case State.FAILED:
                settled(turn, connector, InternalError(f"Failed to start connector: {connector}"))
            case State.PAUSED | State.STOPPED:
                settled(turn, connector)
            case _:
                pass


def decide(
    state: HerderState, event: on.Event, now_ms: int
) -> tuple[HerderState, tuple[Effect, ...]]:
    """Handle one event. `now_ms` is the shell's clock: epoch milliseconds that never go back."""
    turn = Turn(state, now_ms)
    match event:
        case on.RequestArrived():
            operations.arrived(turn, event)
        case on.EffectDone() | on.EffectFailed():
            _answered(turn, event)
        case on.TimerDue(timer=timer):
            timer.due(turn)
        case on.InstanceReported():
            reported(turn, event)
        case on.TaskStartAsked():
            start_permissions.task_start_asked(turn, event)
        case on.ReconfigurationRequested(connector=connector):
            reconfiguration.request(turn, connector)
        case on.ConfigExpired(connector=connector):
            instances.stop_connector(turn, connector)
        case on.ConfigAdvanced():
            config_advanced(turn, event)
        case _:
            _decide_on_worker(turn, event)
    if turn.state.phase is not MembershipPhase.STOPPED:
        restarts.flush_stops(turn)
        membership.advance(turn)
        restarts.execute_pending(turn)
        operations.begin_all(turn)
        session_keys.keep_fresh(turn)
        restarts.flush_stops(turn)
        membership.advance(turn)
    restarts.flush_stops(turn)
    instances.plan_restarts(turn)
    return turn.finish()


def _answered(turn: Turn, event: on.EffectDone | on.EffectFailed) -> None:
    """Take the answer's snapshot or lost privilege, then go on with the waiter."""
    waiter = turn.take_waiter(event.effect_id)
    match event:
        case on.EffectDone(result=result):
            known = turn.state.snapshot
            if isinstance(result, ConfigSnapshot) and result.offset > known.offset:
                _adopt(turn, result, differences(known, result))
            if waiter is not None:
                waiter.done(turn, result)
        case on.EffectFailed(error=error):
            if isinstance(error, PrivilegedWriteError):
                membership.privilege_lost(turn)
            if waiter is not None:
                waiter.failed(turn, error)


def _decide_on_worker(turn: Turn, event: on.WorkerEvent) -> None:
    match event:
        case on.Initializing():
            turn.begin_stage(steps.INITIALIZING)
        case on.Started():
            membership.started(turn, event)
        case on.Stopping():
            turn.begin_stage(steps.SHUTTING_DOWN)
            operations.stopping(turn)
            start_permissions.stopping(turn)
            turn.update(phase=MembershipPhase.STOPPED, rejoin_wanted=False)
        case on.Joined():
            membership.joined(turn, event)
        case on.AssignmentUnreadable():
            membership.assignment_unreadable(turn)
        case on.RejoinNeeded():
            membership.request_rejoin(turn)
        case on.MembershipLost():
            membership.membership_lost(turn)
        case on.Drain():
            membership.drain(turn)
        case on.Undrain():
            membership.undrain(turn)
        case on.GroupFailed(reason=reason):
            turn.emit(Abort(reason=reason))
        case _:
            assert_never(event)
