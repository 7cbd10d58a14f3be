"""The membership in the group: from one assignment to the next, and out of the group on request.

Kafka: DistributedHerder.handleRebalanceCompleted and RebalanceListener. Revoked work stops, the
worker catches up with the config topic, work starts, and the worker joins again. A join waits until
everything that must not run during it has stopped, and until the leader's operations on the config
topic that have begun are complete. In Apache's worker one thread does both, so a half-done stop of
a connector never meets a rebalance there either.

A worker that is drained gives up all work and goes on serving REST; Kafka has no counterpart. In
any phase of a rebalance, all work stops and the statuses are flushed. Then the worker leaves the
group, and joins again only on request. A drain and its end may come at any time and in any order;
the last one counts. A drained worker goes on reading the internal topics. It answers reads and
writes target states, as every worker does; a request that needs a leader or an owner is refused
with 503.
"""

from dataclasses import dataclass, replace
from typing import Any

from pyconnect_agent.core.group_protocol import AssignmentError, Work
from pyconnect_agent.core.herder import instances, session_keys, start_permissions, steps
from pyconnect_agent.core.herder.effects import (
    ClaimWrites,
    CleanStatuses,
    FlushStatuses,
    ForgetTopics,
    LeaveGroup,
    RequestRejoin,
    WarnOfOtherConfigTopic,
)
from pyconnect_agent.core.herder.events import Joined, Started
from pyconnect_agent.core.herder.state import (
    Membership,
    MembershipPhase,
    WritePrivilege,
    owned_work,
)
from pyconnect_agent.core.herder.steps import Timer, Waiter
from pyconnect_agent.core.herder.turn import Turn

_NOT_MEMBER = (MembershipPhase.STARTING, MembershipPhase.STOPPED, MembershipPhase.DRAINED)
_GIVING_UP = (MembershipPhase.DRAINING, MembershipPhase.LEAVING)
BACKOFF_RETRIES = 5
SHORTEST_BACKOFF_MS = 100
CLAIM_BACKOFF_MS = 250
UNREADABLE_BACKOFF_MS = 1_000


def started(turn: Turn, event: Started) -> None:
    turn.end_stage(turn.state.stage)
    # A change of the config topic may have brought a newer snapshot before.
    if event.snapshot.offset > turn.state.snapshot.offset:
        turn.update(snapshot=event.snapshot)
    if turn.state.drain_wanted:
        _drained(turn)
        return
    turn.update(rejoin_wanted=True, phase=MembershipPhase.JOINING)
    _join(turn)


def request_rejoin(turn: Turn) -> None:
    """Ask for a join, which happens as soon as `advance` finds all conditions true."""
    turn.update(rejoin_wanted=True)


def advance(turn: Turn) -> None:
    """Take the next step, if all its conditions hold. Called at the end of every turn."""
    state = turn.state
    if state.phase is MembershipPhase.STOPPED or turn.stops_pending:
        return
    if state.phase is MembershipPhase.REVOKING:
        if state.revoked.empty:
            _begin_generation(turn)
            return
        turn.begin_stage(steps.FLUSHING_STATUSES)
        turn.update(phase=MembershipPhase.FLUSHING)
        turn.ask(FlushStatuses(), Flush(generation=_membership(turn).generation))
        return
    if state.phase is MembershipPhase.DRAINING:
        if not turn.writes_in_flight:
            _leave(turn)
        return
    may_leave = state.phase in (MembershipPhase.RESOLVED, MembershipPhase.UNRESOLVED)
    if not state.rejoin_wanted or not may_leave or turn.writes_in_flight:
        return
    if state.membership is not None and not state.membership.incremental:
        # With the `default` protocol everything stops before the join.
        instances.stop_everything(turn)
    if not turn.stops_pending:
        _join(turn)


def joined(turn: Turn, event: Joined) -> None:
    """Take the assignment and stop all other work, whose last statuses carry the old generation."""
    if turn.state.phase is MembershipPhase.STOPPED:
        return
    turn.end_stage(turn.state.stage)
    membership = Membership(
        member_id=event.member_id,
        generation=event.generation,
        assignment=event.assignment,
        owners=event.owners,
        ahead=event.ahead,
        other_leader_ids=event.other_leader_ids,
    )
    if turn.state.drain_wanted:
        # The worker leaves the group without taking work.
        turn.update(membership=membership, claims_outdated=False)
        _begin_drain(turn)
        return
    assignment = event.assignment
    if membership.incremental:
        revoked = assignment.revoked
    else:
        revoked = owned_work(turn.work.current) - assignment.assigned
    _disown(turn, revoked)
    _own(turn, assignment.assigned)
    turn.update(
        membership=membership,
        phase=MembershipPhase.REVOKING,
        revoked=revoked,
        rejoin_wanted=turn.state.claims_outdated,
        claims_outdated=False,
        scheduled_rebalance=assignment.delay_ms > 0,
        privilege=turn.state.privilege if membership.may_write else WritePrivilege.NONE,
    )
    if assignment.delay_ms > 0:
        timer = ScheduledRebalance(generation=event.generation)
        turn.wake_at(turn.now_ms + assignment.delay_ms, timer)


def assignment_unreadable(turn: Turn) -> None:
    """Join again after a pause, so that a leader that fails each time does not keep the group busy.

    Running work goes on, as between any two joins; only this worker's generation is unknown.
    """
    if turn.state.phase is MembershipPhase.STOPPED:
        return
    turn.update(membership=None, privilege=WritePrivilege.NONE)
    turn.wake_at(turn.now_ms + UNREADABLE_BACKOFF_MS, JoinRetry())


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRetry(Timer):
    """The pause before joining again after an assignment that could not be decoded."""

    def due(self, turn: Turn) -> None:
        """Let `advance` join when all conditions hold; if a drain is wanted, begin it instead."""
        if turn.state.phase is not MembershipPhase.JOINING:
            return
        turn.update(claims_outdated=False)
        if turn.state.drain_wanted:
            _begin_drain(turn)
        else:
            turn.update(phase=MembershipPhase.UNRESOLVED, rejoin_wanted=True)


def membership_lost(turn: Turn) -> None:
    """Stop all work, because none may run outside the group; then join again."""
    if turn.state.phase in _NOT_MEMBER or turn.state.phase in _GIVING_UP:
        return
    instances.give_up_everything(turn)
    if turn.state.phase is MembershipPhase.JOINING:
        # The join that is under way claims work that was just given up, so another join must
        # follow.
        turn.update(claims_outdated=True)
        return
    turn.update(
        membership=None,
        phase=MembershipPhase.UNRESOLVED,
        rejoin_wanted=True,
        scheduled_rebalance=False,
        privilege=WritePrivilege.NONE,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush(Waiter):
    """The wait until the statuses of revoked work are written."""

    generation: int

    def done(self, turn: Turn, result: Any) -> None:
        """Begin the new generation, also when the statuses could not be written."""
        if turn.state.phase is MembershipPhase.FLUSHING and _current(turn, self.generation):
            turn.end_stage(turn.state.stage)
            _begin_generation(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        self.done(turn, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatchUp(Waiter, Timer):
    """The read of the config topic up to the assignment's offset, repeated after a pause."""

    generation: int

    def done(self, turn: Turn, result: Any) -> None:
        turn.end_stage(turn.state.stage)
        if turn.state.phase is not MembershipPhase.CATCHING_UP or not _current(
            turn, self.generation
        ):
            return
        assignment = _membership(turn).assignment
        if turn.state.snapshot.offset < assignment.config_offset:
            # The topic ends here, so a member that has read further reads another topic.
            _warn_of_other_config_topic(turn)
            self._leave_and_back_off(turn, "its config topic ends before that of the group")
            return
        turn.update(backoff_retries=BACKOFF_RETRIES)
        left_group = turn.state.rejoin_wanted
        if left_group or assignment.error or turn.state.snapshot.offset != assignment.config_offset:
            _give_up_assignment(turn)
        else:
            _resolve(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        """Leave the group and wait before reading again."""
        turn.end_stage(turn.state.stage)
        if turn.state.phase is MembershipPhase.CATCHING_UP and _current(turn, self.generation):
            self._leave_and_back_off(turn, "taking too long to read the log")

    def due(self, turn: Turn) -> None:
        if turn.state.phase is MembershipPhase.BACKING_OFF and _current(turn, self.generation):
            _read_config(turn)

    def _leave_and_back_off(self, turn: Turn, reason: str) -> None:
        turn.emit(LeaveGroup(reason=reason))
        turn.update(phase=MembershipPhase.BACKING_OFF, rejoin_wanted=True)
        settings, retries = turn.state.settings, turn.state.backoff_retries
        if not _membership(turn).incremental:
            delay_ms = settings.worker_unsync_backoff_ms
        elif retries > 0:
            delay_ms = settings.scheduled_rebalance_max_delay_ms // 10 // retries
            turn.update(backoff_retries=retries - 1)
        else:
            delay_ms = 0
            instances.stop_everything(turn)
            turn.update(backoff_retries=BACKOFF_RETRIES)
        turn.wake_at(turn.now_ms + max(delay_ms, SHORTEST_BACKOFF_MS), self)


def _warn_of_other_config_topic(turn: Turn) -> None:
    membership = _membership(turn)
    turn.emit(
        WarnOfOtherConfigTopic(
            own_topic=turn.state.settings.config_topic,
            own_offset=turn.state.snapshot.offset,
            others=membership.ahead or (membership.assignment.leader_url,),
            their_offset=membership.assignment.config_offset,
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRebalance(Timer):
    """The end of the delay in which lost work waits for its worker."""

    generation: int

    def due(self, turn: Turn) -> None:
        if turn.state.scheduled_rebalance and _current(turn, self.generation):
            turn.update(scheduled_rebalance=False)
            request_rejoin(turn)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(Waiter, Timer):
    """The claim of the write privilege, repeated after a pause."""

    generation: int

    def done(self, turn: Turn, result: Any) -> None:
        if self._wanted(turn):
            turn.update(privilege=WritePrivilege.HELD)

    def failed(self, turn: Turn, error: Exception) -> None:
        if self._wanted(turn):
            turn.wake_at(turn.now_ms + CLAIM_BACKOFF_MS, self)

    def due(self, turn: Turn) -> None:
        if self._wanted(turn):
            claim_writes(turn)

    def _wanted(self, turn: Turn) -> bool:
        claiming = turn.state.privilege is WritePrivilege.CLAIMING
        return claiming and _current(turn, self.generation)


def claim_writes(turn: Turn) -> None:
    """As leader: fence earlier leaders from the config topic before writing to it."""
    turn.update(privilege=WritePrivilege.CLAIMING)
    turn.ask(ClaimWrites(), Claim(generation=_membership(turn).generation))


def privilege_lost(turn: Turn) -> None:
    """As leader, claim the privilege again: another leader may have taken it (KIP-618)."""
    stopped = turn.state.phase is MembershipPhase.STOPPED
    if stopped or turn.state.privilege is not WritePrivilege.HELD:
        return
    turn.update(privilege=WritePrivilege.NONE)
    if turn.state.is_leader:
        claim_writes(turn)


def _join(turn: Turn) -> None:
    start_permissions.rebalancing(turn)
    turn.begin_stage(steps.ENSURING_MEMBERSHIP)
    turn.update(phase=MembershipPhase.JOINING, rejoin_wanted=False, rebalance_expected=False)
    turn.emit(RequestRejoin(snapshot=turn.state.snapshot, owned=owned_work(turn.work.current)))


def _own(turn: Turn, assigned: Work) -> None:
    tasks: dict[str, set[int]] = {}
    for task_id in assigned.tasks:
        tasks.setdefault(task_id.connector, set()).add(task_id.task)
    for connector in {*assigned.connectors, *tasks}:
        share = turn.work_of(connector)
        numbers = share.tasks_assigned | tasks.get(connector, set())
        turn.put_work(connector, replace(share, tasks_assigned=numbers))
    for connector in assigned.connectors:
        turn.put_work(connector, replace(turn.work_of(connector), connector_assigned=True))


def _disown(turn: Turn, revoked: Work) -> None:
    tasks: dict[str, set[int]] = {}
    for task_id in revoked.tasks:
        tasks.setdefault(task_id.connector, set()).add(task_id.task)
    for connector, numbers in tasks.items():
        instances.stop_tasks(turn, connector, numbers)
        share = turn.work_of(connector)
        turn.put_work(connector, replace(share, tasks_assigned=share.tasks_assigned - numbers))
    for connector in revoked.connectors:
        instances.stop_connector(turn, connector)
        turn.put_work(connector, replace(turn.work_of(connector), connector_assigned=False))


def _begin_generation(turn: Turn) -> None:
    """Begin the generation; read the config topic first if the leader has read further."""
    membership = _membership(turn)
    assignment, snapshot = membership.assignment, turn.state.snapshot
    turn.update(status_generation=membership.generation)
    gone = tuple(c for c in turn.state.revoked.connectors if not snapshot.contains(c))
    if gone:
        turn.emit(ForgetTopics(connectors=gone))
    if membership.may_write and turn.state.privilege is not WritePrivilege.HELD:
        claim_writes(turn)
    behind = snapshot.offset < assignment.config_offset
    failed = assignment.error != AssignmentError.NONE
    if behind or (failed and membership.is_leader):
        _read_config(turn)
    elif failed or snapshot.offset != assignment.config_offset:
        _give_up_assignment(turn)
    else:
        _resolve(turn)


def _read_config(turn: Turn) -> None:
    turn.begin_stage(steps.READING_CONFIG)
    turn.update(phase=MembershipPhase.CATCHING_UP)
    turn.ask(turn.read_to_end(), CatchUp(generation=_membership(turn).generation))


def _resolve(turn: Turn) -> None:
    """Start the work; if work was revoked, join again so that other members get it."""
    membership = _membership(turn)
    # The assignment includes the changes that asked for a rebalance during the join.
    turn.update(phase=MembershipPhase.RESOLVED, ready=True, rebalance_expected=False)
    if any(not turn.state.snapshot.contains(c) for c in membership.assignment.assigned.connectors):
        _warn_of_other_config_topic(turn)
    if membership.is_leader:
        turn.emit(CleanStatuses(snapshot=turn.state.snapshot, revoked=turn.state.revoked))
        session_keys.watch(turn)
    begun = sum(instances.reconcile(turn, connector) for connector in turn.work.keys_now())
    if begun:
        stage = f"starting {begun} connector(s) and task(s) after a rebalance"
        turn.end_stage(turn.begin_stage(stage))
    if not membership.assignment.revoked.empty:
        # Otherwise the next subscription would carry the revocations again.
        assignment = replace(membership.assignment, revoked=Work())
        turn.update(membership=replace(membership, assignment=assignment))
        request_rejoin(turn)


def _give_up_assignment(turn: Turn) -> None:
    """Start nothing and join again: the assignment belongs to another state of the config topic."""
    turn.update(phase=MembershipPhase.UNRESOLVED)
    request_rejoin(turn)


def _current(turn: Turn, generation: int) -> bool:
    return turn.state.membership is not None and turn.state.membership.generation == generation


def _membership(turn: Turn) -> Membership:
    assert turn.state.membership is not None
    return turn.state.membership


LEAVE_REASON = "the worker is drained"


def drain(turn: Turn) -> None:
    """Begin a drain; do nothing if one has begun."""
    state = turn.state
    if state.drain_wanted or state.phase is MembershipPhase.STOPPED:
        return
    turn.update(drain_wanted=True)
    match state.phase:
        case MembershipPhase.STARTING | MembershipPhase.LEAVING | MembershipPhase.DRAINED:
            pass
        case MembershipPhase.JOINING:
            # The join cannot be cancelled; its assignment is not started.
            instances.give_up_everything(turn)
            turn.update(claims_outdated=True)
        case _:
            instances.give_up_everything(turn)
            _begin_drain(turn)


def undrain(turn: Turn) -> None:
    """Join the group again, after the end of a drain that is under way."""
    turn.update(drain_wanted=False)
    if turn.state.phase is MembershipPhase.DRAINED:
        _return(turn)


def _begin_drain(turn: Turn) -> None:
    """Enter DRAINING; `advance` goes on when all work has stopped."""
    turn.end_stage(turn.state.stage)
    turn.update(phase=MembershipPhase.DRAINING, rejoin_wanted=False, scheduled_rebalance=False)


def _leave(turn: Turn) -> None:
    """Flush the last statuses, then leave the group: no work runs, and no write is under way."""
    turn.begin_stage(steps.FLUSHING_STATUSES)
    turn.update(phase=MembershipPhase.LEAVING)
    turn.ask(FlushStatuses(), LastFlush())


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFlush(Waiter):
    """The wait until the last statuses are written, before this worker leaves its group."""

    def done(self, turn: Turn, result: Any) -> None:
        if turn.state.phase is not MembershipPhase.LEAVING:
            return
        turn.end_stage(turn.state.stage)
        turn.emit(LeaveGroup(reason=LEAVE_REASON))
        _drained(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        """Leave the group also if a write failed: the next owners write their own statuses."""
        self.done(turn, None)


def _drained(turn: Turn) -> None:
    """Enter DRAINED: no work runs here, and no other worker expects work of this one."""
    turn.update(
        phase=MembershipPhase.DRAINED, membership=None, privilege=WritePrivilege.NONE, ready=True
    )
    if not turn.state.drain_wanted:
        _return(turn)


def _return(turn: Turn) -> None:
    turn.update(phase=MembershipPhase.UNRESOLVED, rejoin_wanted=True)
