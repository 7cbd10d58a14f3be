"""Incremental cooperative assignment (KIP-415; Kafka: IncrementalCooperativeAssignor).

One `assign_incrementally` call is one round of the leader. It takes the work that each member owns,
and returns the work that each member gets and loses, with the state for the next round. Work that
disappeared with a worker waits for `scheduled.rebalance.max.delay.ms`, so that a worker that
restarts gets it back. Successive rounds of balancing revocations back off exponentially.

The state belongs to the worker, survives losing and regaining leadership, and is only as good as
the generation it was made in: a round that did not take effect is recognised and forgotten.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

from pyconnect_agent.core.group_protocol import NO_WORK, Work
from pyconnect_agent.core.ids import ConnectorTaskId

T = TypeVar("T", str, ConnectorTaskId)

_BACKOFF_BASE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorState:
    """The memory of a leader between rounds.

    `scheduled_ms`: when the wait for lost work ends, on the clock of `now_ms`; 0 when none runs.
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
    """Inputs of one round. `owned` is each member's own account of its work."""

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
    """`delay_ms` is sent to every member: all join again when it has passed."""

    increments: Mapping[str, Increment]
    delay_ms: int


@dataclass(slots=True)
class _Draft:
    """Work in progress of one round; owned by `assign_incrementally` alone."""

    owned: dict[str, Work]
    kept: dict[str, Work]
    to_revoke: dict[str, Work]
    reassigned: Work = NO_WORK


def assign_incrementally(state: AssignorState, inputs: Round) -> tuple[AssignorState, RoundResult]:
    """One round of the leader. `inputs.owned` must not be empty."""
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
    """Back-off before the n-th successive revocation: 40 ms, 1.6 s, 64 s, … up to the maximum."""
    if max_delay_ms <= 1:
        return max_delay_ms
    exponent = min(float(successive_revocations), math.log(max_delay_ms, _BACKOFF_BASE))
    return min(int(_BACKOFF_BASE**exponent), max_delay_ms)


def _keep_what_may_stay(inputs: Round, deleted: Work) -> _Draft:
    """Take deleted work, and work with several owners, from every member that has it.

    Leaving a duplicate with one owner would need an agreement on the owner. So all members lose it,
    and the next round assigns it again.
    """
    duplicated = _duplicates(inputs.owned.values())
    owned, kept, to_revoke = {}, {}, {}
    for member, work in sorted(inputs.owned.items()):
        gone = work & (deleted | duplicated)
        owned[member] = work - deleted
        kept[member] = work - gone
        to_revoke[member] = gone
    return _Draft(owned=owned, kept=kept, to_revoke=to_revoke)


def _handle_lost(state: AssignorState, inputs: Round, lost: Work, draft: _Draft) -> AssignorState:
    """Decide whether lost work waits, goes back to a candidate, or is assigned again."""
    if lost.empty and not state.revoked_in_previous:
        return replace(state, candidates=(), scheduled_ms=0, delay_ms=0)
    everybody_stayed = state.previous_members <= frozenset(inputs.owned)
    if (state.scheduled_ms <= 0 and everybody_stayed) or inputs.max_delay_ms == 0:
        # The members only missed an assignment, or no worker is to be waited for.
        draft.reassigned = lost
        return state
    if 0 < state.scheduled_ms <= inputs.now_ms:
        present = [member for member in state.candidates if member in inputs.owned]
        if present:
            _deal_round_robin(draft.kept, present, lost)
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
    """Revoke the work above a fair share, unless a delay runs or must start first."""
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
    """Return the work of each member above its fair share; connectors and tasks count apart."""
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
    """Give `work` to the least loaded members, connectors and tasks counted apart."""
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


def _deal_round_robin(kept: dict[str, Work], candidates: Sequence[str], work: Work) -> None:
    """Return lost work to the members that came back, evenly and in their order of appearance."""
    for index, connector in enumerate(work.connectors):
        member = candidates[index % len(candidates)]
        kept[member] = kept[member] | Work((connector,), ())
    for index, task in enumerate(work.tasks):
        member = candidates[index % len(candidates)]
        kept[member] = kept[member] | Work((), (task,))


def _union(works: Iterable[Work]) -> Work:
    several = tuple(works)
    return Work.of(
        chain.from_iterable(work.connectors for work in several),
        chain.from_iterable(work.tasks for work in several),
    )


def _duplicates(works: Iterable[Work]) -> Work:
    seen_connectors: set[str] = set()
    seen_tasks: set[ConnectorTaskId] = set()
    connectors: set[str] = set()
    tasks: set[ConnectorTaskId] = set()
    for work in works:
        connectors.update(seen_connectors.intersection(work.connectors))
        tasks.update(seen_tasks.intersection(work.tasks))
        seen_connectors.update(work.connectors)
        seen_tasks.update(work.tasks)
    return Work.of(connectors, tasks)
