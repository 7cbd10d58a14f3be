"""The herder's decisions: `decide(state, event, now_ms) -> (state, effects)`.

Pure: the same arguments give the same answer. The shell (`pyconnect_agent.herder`) performs the
effects in order and posts their results as further events. An answered effect, a timer and a
request know their own next step (`steps`). Steps that several events make possible (joining again,
beginning a queued request, executing a restart) are checked once, at the end of every turn.

Kafka: DistributedHerder.tick. Where Apache's worker waits inside a tick, this one records a waiter
and goes on with the next event; when the answer comes, the conditions are checked again.
"""

from __future__ import annotations

from typing import assert_never

from pyconnect_agent.core.errors import PrivilegedWriteError
from pyconnect_agent.core.herder import changes, reports
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.effects import Abort, Effect
from pyconnect_agent.core.herder.membership import draining, rebalance, session_keys
from pyconnect_agent.core.herder.requests import operations, reconfiguration, restarts, stages
from pyconnect_agent.core.herder.state import HerderState, MembershipPhase
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import automatic_restarts, instances, start_permissions
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot


def decide(
    state: HerderState, event: on.Event, now_ms: int
) -> tuple[HerderState, tuple[Effect, ...]]:
    """`now_ms` is the shell's clock: epoch milliseconds that never go back."""
    turn = Turn(state, now_ms)
    match event:
        case on.RequestArrived():
            operations.arrived(turn, event)
        case on.EffectDone() | on.EffectFailed():
            _answered(turn, event)
        case on.TimerDue(timer=timer):
            timer.due(turn)
        case on.InstanceReported():
            reports.reported(turn, event)
        case on.TaskStartAsked():
            start_permissions.task_start_asked(turn, event)
        case on.ReconfigurationRequested(connector=connector):
            reconfiguration.request(turn, connector)
        case on.ConfigExpired(connector=connector):
            instances.stop_connector(turn, connector)
        case on.ConfigAdvanced():
            changes.config_advanced(turn, event)
        case _:
            _decide_on_worker(turn, event)
    if turn.state.phase is not MembershipPhase.STOPPED:
        restarts.flush_stops(turn)
        rebalance.advance(turn)
        restarts.execute_pending(turn)
        operations.begin_all(turn)
        session_keys.keep_fresh(turn)
        restarts.flush_stops(turn)
        rebalance.advance(turn)
    restarts.flush_stops(turn)
    automatic_restarts.plan(turn)
    return turn.finish()


def _answered(turn: Turn, event: on.EffectDone | on.EffectFailed) -> None:
    """Take what the answer says about the config topic, then go on with the waiter."""
    waiter = turn.take_waiter(event.effect_id)
    match event:
        case on.EffectDone(result=result):
            if isinstance(result, ConfigSnapshot):
                changes.adopt_read(turn, result)
            if waiter is not None:
                waiter.done(turn, result)
        case on.EffectFailed(error=error):
            if isinstance(error, PrivilegedWriteError):
                rebalance.privilege_lost(turn)
            if waiter is not None:
                waiter.failed(turn, error)


def _decide_on_worker(turn: Turn, event: on.WorkerEvent) -> None:
    match event:
        case on.Initializing():
            turn.begin_stage(stages.INITIALIZING)
        case on.Started():
            rebalance.started(turn, event)
        case on.Stopping():
            turn.begin_stage(stages.SHUTTING_DOWN)
            operations.stopping(turn)
            start_permissions.stopping(turn)
            turn.update(phase=MembershipPhase.STOPPED, rejoin_wanted=False)
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
