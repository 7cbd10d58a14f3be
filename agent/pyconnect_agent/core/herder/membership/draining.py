"""Give up all work, but go on serving REST; later take part again.

In any phase of a rebalance, all work stops and the statuses are flushed. Then this worker leaves
the group, and joins again only on request. No Kafka counterpart. A drain and its end may come
at any time and in any order; the last one counts.

A drained worker goes on reading the internal topics. It answers reads and writes target states, as
every worker does; a request that needs a leader or an owner is refused with 503.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.herder.effects import FlushStatuses, LeaveGroup
from pyconnect_agent.core.herder.events import Joined
from pyconnect_agent.core.herder.requests import stages
from pyconnect_agent.core.herder.state import Membership, MembershipPhase, WritePrivilege
from pyconnect_agent.core.herder.steps import Waiter
from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.herder.work import instances

LEAVE_REASON = "the worker is drained"


def drain(turn: Turn) -> None:
    """Begin; no-op when it has been begun."""
    state = turn.state
    if state.drain_wanted or state.phase is MembershipPhase.STOPPED:
        return
    turn.update(drain_wanted=True)
    match state.phase:
        case MembershipPhase.STARTING | MembershipPhase.LEAVING | MembershipPhase.DRAINED:
            pass
        case MembershipPhase.JOINING:
            # The join cannot be taken back; its assignment is not started.
            instances.give_up_everything(turn)
            turn.update(claims_outdated=True)
        case _:
            instances.give_up_everything(turn)
            begin(turn)


def undrain(turn: Turn) -> None:
    """Take part again, once a drain under way is through."""
    turn.update(drain_wanted=False)
    if turn.state.phase is MembershipPhase.DRAINED:
        _return(turn)


def joined(turn: Turn, event: Joined) -> None:
    """A join that was under way has completed: leave the group without taking anything."""
    turn.update(
        membership=Membership(
            member_id=event.member_id,
            generation=event.generation,
            assignment=event.assignment,
            owners=event.owners,
        ),
        claims_outdated=False,
    )
    begin(turn)


def begin(turn: Turn) -> None:
    """All work is being stopped; `advance` goes on when it is gone."""
    turn.end_stage(turn.state.stage)
    turn.update(phase=MembershipPhase.DRAINING, rejoin_wanted=False, scheduled_rebalance=False)


def advance(turn: Turn) -> None:
    """All work and all writes are through: have the last statuses written, then leave."""
    turn.begin_stage(stages.FLUSHING_STATUSES)
    turn.update(phase=MembershipPhase.LEAVING)
    turn.ask(FlushStatuses(), LastFlush())


@dataclass(frozen=True, slots=True, kw_only=True)
class LastFlush(Waiter):
    """The last statuses before this worker leaves its group are being written."""

    def done(self, turn: Turn, result: Any) -> None:
        if turn.state.phase is not MembershipPhase.LEAVING:
            return
        turn.end_stage(turn.state.stage)
        turn.emit(LeaveGroup(reason=LEAVE_REASON))
        drained(turn)

    def failed(self, turn: Turn, error: Exception) -> None:
        """Leave also when the statuses could not be written: others will write theirs."""
        self.done(turn, None)


def drained(turn: Turn) -> None:
    """The worker runs no work, and no other worker expects work of it."""
    turn.update(
        phase=MembershipPhase.DRAINED, membership=None, privilege=WritePrivilege.NONE, ready=True
    )
    if not turn.state.drain_wanted:
        _return(turn)


def _return(turn: Turn) -> None:
    turn.update(phase=MembershipPhase.UNRESOLVED, rejoin_wanted=True)
