"""The answer of the elected leader to a completed JoinGroup.

It takes the members' subscriptions and returns one assignment per member; other modules decode and
encode them. The leader must not wait here, because it sends no heartbeats meanwhile.
Kafka: WorkerCoordinator.onLeaderElected, ConnectAssignor, EagerAssignor.

Project decision: `agent.leader.transactional.id` replaces `connect-cluster-<group>`. A leader
fences its predecessors by initialising their id, so two ids cannot fence each other: while members
differ, the leader does not write. A member that says nothing counts as one with Kafka's id, which a
Java worker is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import cycle

from pyconnect_agent.core.assign.incremental import AssignorState, Round, assign_incrementally
from pyconnect_agent.core.group_protocol import (
    NO_WORK,
    Assignment,
    AssignmentError,
    ProtocolVersion,
    Subscription,
    Work,
)
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot


def assign_eagerly(members: Iterable[str], configured: Work) -> dict[str, Work]:
    """Complete work of each member id. `members` must not be empty."""
    ordered = sorted(members)
    connectors: dict[str, list[str]] = {member: [] for member in ordered}
    tasks: dict[str, list[ConnectorTaskId]] = {member: [] for member in ordered}
    turn = cycle(ordered)
    for connector in configured.connectors:
        connectors[next(turn)].append(connector)
    for task in configured.tasks:
        tasks[next(turn)].append(task)
    return {member: Work.of(connectors[member], tasks[member]) for member in ordered}


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The round this worker was elected for.

    `joined_with` is the snapshot whose offset stands in the leader's own subscription, `latest` the
    newest one of its store; the latter is used when some member has read further than the former.
    `last_completed_generation` is -1 before this worker ever completed a join.
    """

    protocol: ProtocolVersion
    leader: str
    generation: int
    last_completed_generation: int
    members: Mapping[str, Subscription]
    joined_with: ConfigSnapshot
    latest: ConfigSnapshot
    max_delay_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Owners:
    """Advertised URL of the worker that owns each item; only the leader of a round knows them."""

    connectors: Mapping[str, str]
    tasks: Mapping[ConnectorTaskId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """`owners` is None when all members have to join again first.

    `ahead`: in that case, the URLs of the members that have read further than this leader.
    """

    assignments: Mapping[str, Assignment]
    owners: Owners | None
    ahead: tuple[str, ...] = ()


def perform_assignment(state: AssignorState, election: Election) -> tuple[AssignorState, Elected]:
    """Assignments of all members, or CONFIG_MISMATCH for all when the leader's log lags behind."""
    needed_offset = max(member.config_offset for member in election.members.values())
    leader_url = election.members[election.leader].url
    if election.joined_with.offset >= needed_offset:
        snapshot, offset = election.joined_with, needed_offset
    else:
        snapshot, offset = election.latest, election.latest.offset
    if offset < needed_offset:
        mismatch = Assignment(
            version=election.protocol,
            error=AssignmentError.CONFIG_MISMATCH,
            leader=election.leader,
            leader_url=leader_url,
            config_offset=needed_offset,
        )
        ahead = sorted(m.url for m in election.members.values() if m.config_offset > offset)
        assignments = dict.fromkeys(election.members, mismatch)
        return state, Elected(assignments=assignments, owners=None, ahead=tuple(ahead))

    configured = configured_work(snapshot)
    if election.protocol is ProtocolVersion.EAGER:
        complete = assign_eagerly(election.members, configured)
        assigned, revoked, delay_ms = complete, dict.fromkeys(election.members, NO_WORK), 0
    else:
        owned = {member: owned_work(sub) for member, sub in election.members.items()}
        state, result = assign_incrementally(
            state,
            Round(
                configured=configured,
                owned=owned,
                last_completed_generation=election.last_completed_generation,
                generation=election.generation,
                max_delay_ms=election.max_delay_ms,
                now_ms=election.now_ms,
            ),
        )
        delay_ms = result.delay_ms
        assigned = {member: inc.assigned for member, inc in result.increments.items()}
        revoked = {member: inc.revoked for member, inc in result.increments.items()}
        complete = {m: (owned[m] - revoked[m]) | assigned[m] for m in owned}
    agents_only = all(member.agent for member in election.members.values())
    assignments = {
        member: Assignment(
            version=election.protocol,
            leader=election.leader,
            leader_url=leader_url,
            config_offset=offset,
            assigned=assigned[member],
            revoked=revoked[member],
            delay_ms=delay_ms,
            agents_only=agents_only,
        )
        for member in election.members
    }
    return state, Elected(assignments=assignments, owners=_owners(election.members, complete))


def configured_work(snapshot: ConfigSnapshot) -> Work:
    """All connectors and their usable tasks; an inconsistent connector contributes no tasks."""
    names = snapshot.connectors()
    return Work.of(names, (task for name in names for task in snapshot.tasks(name)))


def owned_work(subscription: Subscription) -> Work:
    """Return the work that a member reports to run; empty when it holds no assignment."""
    return NO_WORK if subscription.allocation is None else subscription.allocation.assigned


def _owners(members: Mapping[str, Subscription], complete: Mapping[str, Work]) -> Owners:
    connectors: dict[str, str] = {}
    tasks: dict[ConnectorTaskId, str] = {}
    for member, work in complete.items():
        url = members[member].url
        connectors.update(dict.fromkeys(work.connectors, url))
        tasks.update(dict.fromkeys(work.tasks, url))
    return Owners(connectors=connectors, tasks=tasks)


LEADER_ID_KEY = "agent.leader.transactional.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIds:
    """`own`: under which this worker leads; `apaches`: under which any other worker would.

    `fencing`: this worker, as leader, writes in transactions (`preparing` or `enabled`). Without
    them no id fences anybody, and none can be wrong.
    """

    own: str
    apaches: str
    fencing: bool

    @property
    def told(self) -> str | None:
        """The id in the subscription; None keeps the bytes of an Apache worker."""
        return None if self.own == self.apaches else self.own

    def others(self, members: Mapping[str, Subscription]) -> Mapping[str, str]:
        """Return the ids that differ from `own` by their worker's URL, in the URLs' order.

        A member whose subscription could not be read is named by its member id.
        """
        if not self.fencing:
            return {}
        told = {
            subscription.url or member: subscription.leader_transactional_id or self.apaches
            for member, subscription in members.items()
        }
        return {url: told[url] for url in sorted(told) if told[url] != self.own}
