"""Membership in the `connect` group, for the herder's shell.

The herder's request to join becomes a join with its claims, and a completed join becomes a `Joined`
event. As leader it assigns work from the newest config snapshot. Kafka: WorkerCoordinator.

Threading: `request_rejoin`, `leave` on the event loop; listener methods on the group thread; hooks
on Kafka's network thread. Each attribute of the next subscription has one writer: the group thread
sets the last assignment, the event loop the owned work. The network thread owns the assignor's
state.

`LocalGroup`, of standalone workers, has one member: every join succeeds at once.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyconnect_agent.core.assign import (
    LEADER_ID_KEY,
    AssignorState,
    Election,
    LeaderIds,
    Owners,
    perform_assignment,
)
from pyconnect_agent.core.group_protocol import (
    NO_WORK,
    Assignment,
    ProtocolDecodeError,
    ProtocolVersion,
    Subscription,
    Work,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from pyconnect_agent.core.herder.effects import RequestRejoin
from pyconnect_agent.core.herder.events import (
    AssignmentUnreadable,
    Event,
    Joined,
    MembershipLost,
    RejoinNeeded,
)
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.kafka.group import (
    GroupListener,
    GroupThread,
    JoinedGroup,
    LeaderHooks,
    MembershipSettings,
)

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """Settings of a group. `worker_url`: the advertised one; `protocol`: the newest one offered."""

    membership: MembershipSettings
    worker_url: str
    protocol: ProtocolVersion
    scheduled_rebalance_max_delay_ms: int
    open_timeout_ms: int
    leader_ids: LeaderIds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPorts:
    """The worker's functions that the group calls. `post` may be called from any thread."""

    post: Callable[[Event], None]
    config_snapshot: Callable[[], ConfigSnapshot]
    herder_alive: Callable[[], bool]
    failed: Callable[[BaseException], None]


@dataclass(slots=True)
class _Leadership:
    """The leader's state, on the network thread. `joined_with`: of the latest subscription."""

    assignor: AssignorState = field(default_factory=AssignorState)
    joined_with: ConfigSnapshot = field(default_factory=ConfigSnapshot)
    owners: Owners | None = None
    ahead: tuple[str, ...] = ()
    other_leader_ids: Mapping[str, str] = field(default_factory=dict)


class GroupMember(Protocol):
    """A member of the group: `GroupThread`, or a simulated one."""

    def start(self, timeout_ms: int) -> None: ...
    def confirmed_s(self) -> float | None: ...
    def permit_join(self) -> None: ...
    def leave(self, reason: str) -> None: ...
    def stop(self, timeout_ms: int) -> None: ...


class MakeMember(Protocol):
    def __call__(
        self,
        settings: MembershipSettings,
        hooks: LeaderHooks,
        listener: GroupListener,
        *,
        herder_alive: Callable[[], bool],
    ) -> GroupMember: ...


class Clock(Protocol):
    def now_ms(self) -> int: ...


class ConnectGroup:
    """The `performer.Group` of a distributed worker; also listener and hooks of its thread."""

    def __init__(
        self,
        options: GroupOptions,
        ports: GroupPorts,
        clock: Clock,
        make_member: MakeMember = GroupThread,
    ) -> None:
        self._options = options
        self._ports = ports
        self._clock = clock
        self._last: Assignment | None = None
        """The last assignment; None if this worker may claim nothing."""
        self._owned = NO_WORK
        self._leadership = _Leadership()
        self._last_completed_generation = -1
        self._thread = make_member(options.membership, self, self, herder_alive=ports.herder_alive)

    # The herder's side

    def begin_after(self, generation: int) -> None:
        """Do nothing: the coordinator numbers the generations."""

    def start(self) -> None:
        """Connect to the brokers; blocks. RetriableKafkaError if none answers in time."""
        self._thread.start(self._options.open_timeout_ms)

    def stop(self, timeout_ms: int) -> None:
        """Leave the group (blocks)."""
        self._thread.stop(timeout_ms)

    def confirmed_s(self) -> float | None:
        return self._thread.confirmed_s()

    def request_rejoin(self, effect: RequestRejoin) -> None:
        self._owned = effect.owned
        self._thread.permit_join()

    def leave(self, reason: str) -> None:
        self._thread.leave(reason)

    # The group thread's side

    def rejoin_needed(self) -> None:
        self._ports.post(RejoinNeeded())

    def joined(self, joined: JoinedGroup) -> None:
        try:
            assignment = decode_assignment(joined.assignment)
            protocol = ProtocolVersion.of_group_name(joined.protocol_name)
        except (ProtocolDecodeError, ValueError) as exc:
            # A member that the leader left out gets an empty assignment.
            LOG.warning("assignment cannot be read; joining again", extra={"reason": str(exc)})
            self._ports.post(AssignmentUnreadable())
            return
        # The layout's version decides how the herder reads it; the name is the agreed protocol.
        assignment = replace(assignment, version=protocol)
        self._last_completed_generation = joined.generation
        self._last = assignment
        is_leader = assignment.leader == joined.member_id
        self._ports.post(
            Joined(
                member_id=joined.member_id,
                generation=joined.generation,
                assignment=assignment,
                owners=self._leadership.owners if is_leader else None,
                ahead=self._leadership.ahead if is_leader else (),
                other_leader_ids=self._leadership.other_leader_ids if is_leader else {},
            )
        )

    def coordinator_lost(self) -> None:
        self._last = None
        self._ports.post(MembershipLost())

    def failed(self, error: BaseException) -> None:
        self._ports.failed(error)

    # The network thread's side

    def offered_protocols(self) -> Sequence[tuple[str, bytes]]:
        snapshot = self._ports.config_snapshot()
        self._leadership.joined_with = snapshot
        return [
            (protocol.group_name, self._subscription(protocol, snapshot.offset))
            for protocol in self._options.protocol.offered()
        ]

    def assign(
        self, leader: str, protocol_name: str, generation: int, members: Mapping[str, bytes]
    ) -> Mapping[str, bytes]:
        protocol = ProtocolVersion.of_group_name(protocol_name)
        subscriptions = {m: _subscription_of(m, data) for m, data in members.items()}
        ids = self._options.leader_ids
        others = self._leadership.other_leader_ids = ids.others(subscriptions)
        if others:
            LOG.error(
                "members would lead under another transactional id; as leader this worker writes"
                " nothing until all agree",
                extra={"key": LEADER_ID_KEY, "own_id": ids.own, "other_ids": dict(others)},
            )
        election = Election(
            protocol=protocol,
            leader=leader,
            generation=generation,
            last_completed_generation=self._last_completed_generation,
            members=subscriptions,
            joined_with=self._leadership.joined_with,
            latest=self._ports.config_snapshot(),
            max_delay_ms=self._options.scheduled_rebalance_max_delay_ms,
            now_ms=self._clock.now_ms(),
        )
        self._leadership.assignor, verdict = perform_assignment(self._leadership.assignor, election)
        self._leadership.owners, self._leadership.ahead = verdict.owners, verdict.ahead
        LOG.info(
            "assigned work as leader",
            extra={"generation": generation, "members": len(members), "protocol": protocol_name},
        )
        return {m: encode_assignment(a) for m, a in verdict.assignments.items()}

    def _subscription(self, protocol: ProtocolVersion, config_offset: int) -> bytes:
        last = self._last
        allocation = None
        if last is not None and protocol is not ProtocolVersion.EAGER:
            # All revocations are handled before a join. If kept, each subscription would have new
            # metadata.
            allocation = replace(
                last, version=protocol, assigned=self._owned, revoked=NO_WORK, agents_only=False
            )
        return encode_subscription(
            Subscription(
                version=protocol,
                url=self._options.worker_url,
                config_offset=config_offset,
                allocation=allocation,
                leader_transactional_id=self._options.leader_ids.told,
                agent=True,
            )
        )


def _subscription_of(member: str, data: bytes) -> Subscription:
    try:
        return decode_subscription(data)
    except ProtocolDecodeError as exc:
        # An unreadable subscription must not stop the leader. Its member gets work that it may not
        # understand, and joins again.
        LOG.error("member cannot be understood", extra={"member": member, "reason": str(exc)})
        return Subscription(version=0, url="", config_offset=-1)


def local_assignment(
    member_id: str, worker_url: str, snapshot: ConfigSnapshot, owned: Work
) -> Assignment:
    """Assign everything that is configured, and revoke all other owned work."""
    names = snapshot.connectors()
    configured = Work(names, tuple(task_id for name in names for task_id in snapshot.tasks(name)))
    return Assignment(
        version=ProtocolVersion.COMPATIBLE,
        leader=member_id,
        leader_url=worker_url,
        config_offset=snapshot.offset,
        assigned=configured - owned,
        revoked=owned - configured,
    )


class LocalGroup:
    """The `performer.Group` of a standalone worker. Lives on the event loop."""

    def __init__(self, worker_url: str, post: Callable[[Event], None]) -> None:
        self._worker_url = worker_url
        self._post = post
        self._generation = 0

    def start(self) -> None:
        """Do nothing: there is no coordinator."""

    def stop(self, timeout_ms: int) -> None:
        """Do nothing: there is no other member."""

    def confirmed_s(self) -> float | None:
        return time.monotonic()

    def begin_after(self, generation: int) -> None:
        """Continue the generations of the worker's earlier processes."""
        self._generation = generation

    def request_rejoin(self, effect: RequestRejoin) -> None:
        self._generation += 1
        member_id = self._worker_url
        assignment = local_assignment(member_id, self._worker_url, effect.snapshot, effect.owned)
        joined = Joined(member_id=member_id, generation=self._generation, assignment=assignment)
        self._post(joined)

    def leave(self, reason: str) -> None:
        """Do nothing: there is no other member."""
