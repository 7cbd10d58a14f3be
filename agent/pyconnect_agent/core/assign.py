"""A leader's division of connectors and tasks among the workers of its group.

`perform_assignment` answers a completed JoinGroup: it takes the members' subscriptions and returns
an assignment for each; other modules decode and encode them. The leader must not wait here, because
it sends no heartbeats meanwhile. Kafka: WorkerCoordinator.onLeaderElected, ConnectAssignor,
EagerAssignor, IncrementalCooperativeAssignor (KIP-415).

One `assign_incrementally` call is one round of the leader. It takes the work that each member owns,
and returns the work that each member gets and loses, with the state for the next round. Work that
disappeared with a worker waits for `scheduled.rebalance.max.delay.ms`, so that a worker that
restarts gets it back. Successive rounds of balancing revocations back off exponentially. The state
belongs to the worker, and survives losing and regaining leadership. A round that did not take
effect is recognised by its generation, and its assignment is forgotten.

Project decision: `agent.leader.transactional.id` replaces `connect-cluster-<group>`. A leader
fences its predecessors by initialising their id, so two ids cannot fence each other: while members
differ, the leader does not write. A member whose subscription has no id counts as a member with
Kafka's id, because Java workers send none.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, cycle
from typing import TypeVar

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

T = TypeVar("T", str, ConnectorTaskId)

_BACKOFF_BASE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorState:
    """The state that a leader keeps between rounds.

    `scheduled_ms`: the end of the wait for lost work, on the clock of `now_ms`; 0 without a wait.
    `candidates`: members without work that appeared during the wait, in order of appearance.
    """

    previous_assigned: Work = NO_WORK
    previous_revoked: Work = NO_WORK
    previous_generation: int = -1
    previous_members: frozenset[str] = frozenset()
    revoked_in_previous: bool = False
    successive_revocations: int = 0
    candidates: tuple[str, ...] = ()
    scheduled_ms: int = 0
    delay_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Inputs of one round. `owned`: the work that each member claims to own."""

    configured: Work
    owned: Mapping[str, Work]
    last_completed_generation: int
    generation: int
    max_delay_ms: int
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """The work that one member gets and loses in this round."""

    assigned: Work = NO_WORK
    revoked: Work = NO_WORK


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """Result of one round. `delay_ms` goes to every member: all join again when it has passed."""

    increments: Mapping[str, Increment]
    delay_ms: int


@dataclass(slots=True)
class _Draft:
    """Working data of one round; only `assign_incrementally` uses it."""

    owned: dict[str, Work]
    kept: dict[str, Work]
    to_revoke: dict[str, Work]
    reassigned: Work = NO_WORK


def assign_incrementally(state: AssignorState, inputs: Round) -> tuple[AssignorState, RoundResult]:
    """Compute one round of the leader. `inputs.owned` must not be empty."""
    previous = state.previous_assigned
    if state.previous_generation != inputs.last_completed_generation:
        previous = Work()
    active = _union(inputs.owned.values())
    if not (state.previous_revoked & active).empty:
        previous = active
    deleted = (previous | active) - inputs.configured
    lost = previous - active - deleted
    created = inputs.configured - previous - active
    draft = _keep_what_may_stay(inputs, deleted)
    state = replace(state, previous_revoked=Work())

    state = _handle_lost(state, inputs, lost, draft)
    state = _balance(state, inputs, draft)
    _deal(draft.kept, created | draft.reassigned)

    to_revoke = _union(draft.to_revoke.values())
    result = RoundResult(
        increments={
            member: Increment(
                assigned=draft.kept[member] - draft.owned[member], revoked=draft.to_revoke[member]
            )
            for member in inputs.owned
        },
        delay_ms=state.delay_ms,
    )
    state = replace(
        state,
        previous_assigned=(_union(draft.kept.values()) - to_revoke) | lost,
        previous_revoked=to_revoke,
        previous_generation=inputs.generation,
        previous_members=frozenset(inputs.owned),
    )
    return state, result


def successive_delay_ms(successive_revocations: int, max_delay_ms: int) -> int:
    """Return the delay before the n-th successive revocation: 40 ms, 1.6 s, 64 s, … (limited)."""
    if max_delay_ms <= 1:
        return max_delay_ms
    exponent = min(float(successive_revocations), math.log(max_delay_ms, _BACKOFF_BASE))
    return min(int(_BACKOFF_BASE**exponent), max_delay_ms)


def _keep_what_may_stay(inputs: Round, deleted: Work) -> _Draft:
    """Take deleted work, and work with several owners, from every member that has it.

    Leaving a duplicate with one owner would need an agreement on the owner. So all members lose it,
    and the next round assigns it again.
    """
    works = inputs.owned.values()
    connectors = Counter(chain.from_iterable(work.connectors for work in works))
    tasks = Counter(chain.from_iterable(work.tasks for work in works))
    duplicated = Work.of(
        (name for name, owners in connectors.items() if owners > 1),
        (task for task, owners in tasks.items() if owners > 1),
    )
    owned, kept, to_revoke = {}, {}, {}
    for member, work in sorted(inputs.owned.items()):
        gone = work & (deleted | duplicated)
        owned[member] = work - deleted
        kept[member] = work - gone
        to_revoke[member] = gone
    return _Draft(owned=owned, kept=kept, to_revoke=to_revoke)


def _handle_lost(state: AssignorState, inputs: Round, lost: Work, draft: _Draft) -> AssignorState:
    """Decide whether lost work waits, goes to candidates, or is assigned again."""
    if lost.empty and not state.revoked_in_previous:
        return replace(state, candidates=(), scheduled_ms=0, delay_ms=0)
    everybody_stayed = state.previous_members <= frozenset(inputs.owned)
    if (state.scheduled_ms <= 0 and everybody_stayed) or inputs.max_delay_ms == 0:
        # The members only missed an assignment, or no delay is configured.
        draft.reassigned = lost
        return state
    if 0 < state.scheduled_ms <= inputs.now_ms:
        present = [member for member in state.candidates if member in inputs.owned]
        if present:
            # Lost work goes to the members that came meanwhile, evenly and in order of appearance.
            for member, connector in zip(cycle(present), lost.connectors, strict=False):
                draft.kept[member] |= Work((connector,))
            for member, task in zip(cycle(present), lost.tasks, strict=False):
                draft.kept[member] |= Work((), (task,))
        else:
            draft.reassigned = lost
        return replace(state, candidates=(), scheduled_ms=0, delay_ms=0, revoked_in_previous=False)
    newcomers = tuple(
        member
        for member, work in draft.kept.items()
        if work.empty and member not in state.candidates
    )
    if inputs.now_ms < state.scheduled_ms:
        delay_ms = min(state.scheduled_ms - inputs.now_ms, inputs.max_delay_ms)
    else:
        delay_ms = inputs.max_delay_ms
    return replace(
        state,
        candidates=state.candidates + newcomers,
        delay_ms=delay_ms,
        scheduled_ms=inputs.now_ms + delay_ms,
    )


def _balance(state: AssignorState, inputs: Round, draft: _Draft) -> AssignorState:
    """Revoke the work above a fair share, unless a delay is running or has to start first."""
    if state.delay_ms > 0:
        return replace(state, revoked_in_previous=False)
    surplus = _surplus(inputs.configured, draft.kept)
    if _union(surplus.values()).empty:
        if not state.revoked_in_previous:
            return state
        return replace(state, revoked_in_previous=False, successive_revocations=0)
    if state.revoked_in_previous:
        successive = state.successive_revocations + 1
        delay_ms = successive_delay_ms(successive, inputs.max_delay_ms)
        state = replace(state, successive_revocations=successive, delay_ms=delay_ms)
        if delay_ms > 0:
            return replace(state, scheduled_ms=inputs.now_ms + delay_ms)
    for member, work in surplus.items():
        draft.to_revoke[member] = draft.to_revoke[member] | work
        draft.kept[member] = draft.kept[member] - work
    return replace(state, revoked_in_previous=True)


def _surplus(configured: Work, kept: Mapping[str, Work]) -> dict[str, Work]:
    """Return the work of each member above its fair share, separately for connectors and tasks."""
    connectors = _above_share(
        {member: work.connectors for member, work in kept.items()}, len(configured.connectors)
    )
    tasks = _above_share(
        {member: work.tasks for member, work in kept.items()}, len(configured.tasks)
    )
    return {member: Work(connectors[member], tasks[member]) for member in kept}


def _above_share(held: Mapping[str, tuple[T, ...]], total: int) -> dict[str, tuple[T, ...]]:
    share, extra = divmod(total, len(held))
    counts = [len(items) for items in held.values()]
    balanced = counts.count(share + 1) == extra and counts.count(share) == len(held) - extra
    surplus: dict[str, tuple[T, ...]] = dict.fromkeys(held, ())
    if total == 0 or not any(counts) or balanced:
        return surplus
    extras_granted = 0
    for member, items in held.items():
        if len(items) <= share:
            continue
        limit = share
        if extras_granted < extra:
            extras_granted += 1
            limit = share + 1
        surplus[member] = items[: max(len(items) - limit, 0)]
    return surplus


def _deal(kept: dict[str, Work], work: Work) -> None:
    """Give `work` to the least loaded members, separately for connectors and tasks."""
    connectors = _fill({m: len(w.connectors) for m, w in kept.items()}, work.connectors)
    tasks = _fill({m: len(w.tasks) for m, w in kept.items()}, work.tasks)
    for member, work_before in kept.items():
        kept[member] = work_before | Work(tuple(connectors[member]), tuple(tasks[member]))


def _fill(loads: dict[str, int], items: Sequence[T]) -> dict[str, list[T]]:
    dealt: dict[str, list[T]] = {member: [] for member in loads}
    remaining = list(reversed(items))
    while remaining:
        order = sorted(loads, key=lambda member: (loads[member], member))
        least = loads[order[0]]
        for member in order:
            if loads[member] != least or not remaining:
                break
            dealt[member].append(remaining.pop())
            loads[member] += 1
    return dealt


def _union(works: Iterable[Work]) -> Work:
    several = tuple(works)
    return Work.of(
        chain.from_iterable(work.connectors for work in several),
        chain.from_iterable(work.tasks for work in several),
    )


def assign_eagerly(members: Iterable[str], configured: Work) -> dict[str, Work]:
    """Return the complete work of each member id. `members` must not be empty."""
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
    """The round that this worker leads.

    `joined_with` is the snapshot whose offset is in the leader's own subscription. `latest` is the
    newest one of its store, used when a member has read further than `joined_with`.
    `last_completed_generation` is -1 before the worker's first completed join.
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
    """Advertised URL of the worker that owns each item; only the leader knows the owners."""

    connectors: Mapping[str, str]
    tasks: Mapping[ConnectorTaskId, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elected:
    """Result of an election. `owners` is None when all members have to join again first.

    `ahead`: in that case, the URLs of the members that have read further than this leader.
    """

    assignments: Mapping[str, Assignment]
    owners: Owners | None
    ahead: tuple[str, ...] = ()


def perform_assignment(state: AssignorState, election: Election) -> tuple[AssignorState, Elected]:
    """Return all members' assignments, or CONFIG_MISMATCH for all if the leader's log is behind."""
    needed_offset = max(member.config_offset for member in election.members.values())
    if election.joined_with.offset >= needed_offset:
        snapshot, offset = election.joined_with, needed_offset
    else:
        snapshot, offset = election.latest, election.latest.offset
    to_all = Assignment(
        version=election.protocol,
        leader=election.leader,
        leader_url=election.members[election.leader].url,
        config_offset=offset,
        agents_only=all(member.agent for member in election.members.values()),
    )
    if offset < needed_offset:
        error = AssignmentError.CONFIG_MISMATCH
        mismatch = replace(to_all, error=error, config_offset=needed_offset, agents_only=False)
        ahead = sorted(m.url for m in election.members.values() if m.config_offset > offset)
        assignments = dict.fromkeys(election.members, mismatch)
        return state, Elected(assignments=assignments, owners=None, ahead=tuple(ahead))

    # All connectors and their usable tasks; an inconsistent connector has no usable tasks.
    names = snapshot.connectors()
    configured = Work.of(names, (task for name in names for task in snapshot.tasks(name)))
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
    assignments = {
        m: replace(to_all, assigned=assigned[m], revoked=revoked[m], delay_ms=delay_ms)
        for m in election.members
    }
    urls = {member: subscription.url for member, subscription in election.members.items()}
    owners = Owners(
        connectors={name: urls[m] for m, work in complete.items() for name in work.connectors},
        tasks={task: urls[m] for m, work in complete.items() for task in work.tasks},
    )
    return state, Elected(assignments=assignments, owners=owners)


def owned_work(subscription: Subscription) -> Work:
    """Return the work that a member says it runs; empty when it holds no assignment."""
    return NO_WORK if subscription.allocation is None else subscription.allocation.assigned


LEADER_ID_KEY = "agent.leader.transactional.id"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderIds:
    """Transactional ids of leaders: `own` is this worker's; `apaches` is that of Apache's workers.

    `fencing`: this worker, as leader, writes in transactions (`preparing` or `enabled`). Without
    transactions no id fences another, and none can be wrong.
    """

    own: str
    apaches: str
    fencing: bool

    @property
    def told(self) -> str | None:
        """The id for the subscription; None leaves its bytes as those of an Apache worker."""
        return None if self.own == self.apaches else self.own

    def others(self, members: Mapping[str, Subscription]) -> Mapping[str, str]:
        """Return the ids that differ from `own`, keyed by worker URL and sorted by URL.

        A member without a readable subscription is keyed by its member id.
        """
        if not self.fencing:
            return {}
        told = {
            subscription.url or member: subscription.leader_transactional_id or self.apaches
            for member, subscription in members.items()
        }
        return {url: told[url] for url in sorted(told) if told[url] != self.own}
