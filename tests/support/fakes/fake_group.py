"""A group coordinator of the classic protocol, and members whose steps a test takes one by one.

`FakeMember` stands for `kafka.group.GroupThread` with kafka-python behind it: it joins only when
permitted and sees the answer of a heartbeat only when the test lets it send one.
`FakeCoordinator` follows the broker's rules: the leader stays leader while it joins again in time,
a follower whose metadata did not change gets its old generation back, and a member without
heartbeats is removed only when the test ends its session.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from pyconnect_agent.kafka.group import GroupListener, JoinedGroup, LeaderHooks, MembershipSettings

Protocols = tuple[tuple[str, bytes], ...]

NO_SETTINGS = MembershipSettings(
    group_id="connect",
    client={},
    session_timeout_ms=10_000,
    heartbeat_interval_ms=3_000,
    rebalance_timeout_ms=60_000,
    request_timeout_ms=40_000,
    retry_backoff_ms=100,
)


class GroupState(Enum):
    EMPTY = auto()
    PREPARING = auto()
    COMPLETING = auto()
    STABLE = auto()


@dataclass(slots=True)
class Seat:
    """A member as the coordinator knows it; `waiting`: its JoinGroup is not answered yet."""

    member: FakeMember
    protocols: Protocols
    waiting: bool = True


@dataclass(slots=True)
class FakeCoordinator:
    """The coordinator of one group; `generations` has the members of each generation.

    Members with a name in `left_out` get an assignment that cannot be decoded.
    """

    state: GroupState = GroupState.EMPTY
    generation: int = 0
    leader: str = ""
    protocol: str = ""
    seats: dict[str, Seat] = field(default_factory=dict)
    assignments: Mapping[str, bytes] = field(default_factory=dict)
    generations: dict[int, frozenset[str]] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)
    _joined: int = 0

    def join(self, member: FakeMember) -> None:
        protocols = member.offer()
        seat = self.seats.get(member.member_id)
        if seat is None:
            self._joined += 1
            member.member_id = f"{member.name}-{self._joined}"
            # MEMBER_ID_REQUIRED: the request is repeated with the id and new metadata.
            newcomer = Seat(member, member.offer())
            self.seats[member.member_id] = newcomer
            self._prepare(newcomer)
            return
        unchanged = seat.protocols == protocols
        if unchanged and self.state is GroupState.STABLE and member.member_id != self.leader:
            member.answer = self._answer(member.member_id)
            return
        seat.protocols, seat.waiting = protocols, True
        self._prepare(seat)

    def leave(self, member_id: str) -> None:
        if self.seats.pop(member_id, None) is not None:
            self._prepare()

    def expire(self, member_id: str) -> None:
        """End the session of a member."""
        self.leave(member_id)

    @property
    def electable(self) -> bool:
        """Whether the leader can now send the assignments."""
        return self.state is GroupState.COMPLETING and self.seats[self.leader].member.alive

    def elect(self) -> None:
        """Handle the leader's SyncGroup."""
        members = {m: dict(seat.protocols)[self.protocol] for m, seat in self.seats.items()}
        leader = self.seats[self.leader].member
        self.assignments = leader.hooks.assign(self.leader, self.protocol, self.generation, members)
        assert self.assignments.keys() == self.seats.keys()
        self.state = GroupState.STABLE
        for member_id, seat in self.seats.items():
            if seat.waiting:
                seat.waiting = False
                seat.member.answer = self._answer(member_id)

    def _answer(self, member_id: str) -> JoinedGroup:
        name = self.seats[member_id].member.name
        return JoinedGroup(
            generation=self.generation,
            member_id=member_id,
            protocol_name=self.protocol,
            assignment=b"" if name in self.left_out else self.assignments[member_id],
        )

    def _prepare(self, joining: Seat | None = None) -> None:
        if self.state is GroupState.COMPLETING:
            # A member that waits for the leader's SyncGroup has to join again.
            for seat in self.seats.values():
                seat.waiting = seat is joining
        self.state = GroupState.PREPARING if self.seats else GroupState.EMPTY
        self._complete_if_all_joined()

    def _complete_if_all_joined(self) -> None:
        if self.state is not GroupState.PREPARING:
            return
        if not self.seats:
            self.state = GroupState.EMPTY
            return
        if not all(seat.waiting for seat in self.seats.values()):
            return
        self.generation += 1
        self.generations[self.generation] = frozenset(self.seats)
        if self.leader not in self.seats:
            self.leader = next(iter(self.seats))
        offered = [[name for name, _ in seat.protocols] for seat in self.seats.values()]
        self.protocol = next(n for n in offered[0] if all(n in names for names in offered))
        self.state = GroupState.COMPLETING


class FakeMember:
    """One worker's membership from its start to its crash, in place of `GroupThread`."""

    def __init__(
        self, coordinator: FakeCoordinator, name: str, hooks: LeaderHooks, listener: GroupListener
    ) -> None:
        self.name = name
        self.hooks = hooks
        self.member_id = ""
        self.alive = True
        self.answer: JoinedGroup | None = None
        self._coordinator = coordinator
        self._listener = listener
        self._needs_rejoin = True
        self._permitted = False
        self._announced = False

    # Calls of the herder's shell

    def start(self, timeout_ms: int) -> None:
        """Do nothing: the first announcement is a step of its own."""

    def stop(self, timeout_ms: int) -> None:
        self.leave("stopped")

    def confirmed_s(self) -> float | None:
        return time.monotonic() if self.alive else None

    def permit_join(self) -> None:
        self._permitted = True
        self._needs_rejoin = True

    def leave(self, reason: str) -> None:
        self._coordinator.leave(self.member_id)
        self.member_id, self.answer, self._needs_rejoin = "", None, True

    # Steps that a test takes

    def steps(self) -> Sequence[tuple[str, Callable[[], None]]]:
        """Return the steps that this member can take now, by name."""
        if not self.alive:
            return ()
        if self.answer is not None:
            return (("receive", self._receive),)
        seat = self._seat()
        if seat is not None and seat.waiting:
            return ()
        if self._needs_rejoin and not self._announced:
            return (("announce", self._announce),)
        if self._needs_rejoin and self._permitted:
            return (("join", self._join),)
        if not self._needs_rejoin and self._beat_tells():
            return (("heartbeat", self._heartbeat),)
        return ()

    def lose_coordinator(self) -> None:
        """Report the coordinator as lost, unless a JoinGroup waits for its answer."""
        seat = self._seat()
        if seat is None or not seat.waiting:
            self._listener.coordinator_lost()

    # Calls of the coordinator

    def offer(self) -> Protocols:
        return tuple(self.hooks.offered_protocols())

    def _seat(self) -> Seat | None:
        return self._coordinator.seats.get(self.member_id)

    def _announce(self) -> None:
        self._announced = True
        self._listener.rejoin_needed()

    def _join(self) -> None:
        self._coordinator.join(self)

    def _receive(self) -> None:
        assert self.answer is not None
        joined, self.answer = self.answer, None
        self._needs_rejoin = self._permitted = self._announced = False
        self._listener.joined(joined)

    def _beat_tells(self) -> bool:
        seat = self._seat()
        return seat is None or self._coordinator.state is GroupState.PREPARING

    def _heartbeat(self) -> None:
        if self._seat() is None:
            self.member_id = ""
        self._needs_rejoin = True


def member_maker(
    coordinator: FakeCoordinator, name: str, made: Callable[[FakeMember], None]
) -> Callable[..., FakeMember]:
    """Return the `make_member` of a `ConnectGroup`; `made` gets each member."""

    def make(
        settings: MembershipSettings,
        hooks: LeaderHooks,
        listener: GroupListener,
        *,
        herder_alive: Callable[[], bool],
    ) -> FakeMember:
        member = FakeMember(coordinator, name, hooks, listener)
        made(member)
        return member

    return make
