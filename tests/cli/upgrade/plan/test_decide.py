"""Runs of upgrades against a cluster in memory, killed at every point and resumed."""

from dataclasses import replace

import pytest

from pyconnect_cli.upgrade.plan.model import (
    Kind,
    OpenTransaction,
    PhaseSource,
    UpgradedWorker,
    View,
)
from pyconnect_cli.upgrade.plan.run import Halted, Leg, StepVerified, replay
from pyconnect_clients.connect_names import Phase
from tests.cli.upgrade.plan.upgrade_world import Killed, World
from tests.support.cases import cases

pytestmark = pytest.mark.simulation

DISABLED, PREPARING, ENABLED = Phase
UP_1 = Leg(start=DISABLED, target=PREPARING)
UP_2 = Leg(start=PREPARING, target=ENABLED)
DOWN_1 = Leg(start=ENABLED, target=PREPARING)
DOWN_2 = Leg(start=PREPARING, target=DISABLED)
DIRECT = Leg(start=ENABLED, target=DISABLED)
AGENTS = (Kind.AGENT,) * 3
JAVA = (Kind.JAVA,) * 3
MIXED = (Kind.JAVA, Kind.AGENT, Kind.JAVA)


def halted(world: World) -> Halted:
    end = world.run_tool()
    assert end is not None
    return end


def check_is_done(world: World, phase: Phase) -> None:
    assert set(world.phases()) == {phase}
    run = replay(world.journal)
    assert run is not None
    assert run.finished


@cases("kinds", AGENTS, JAVA, MIXED)
@cases("leader", 0, 1, 2)
@cases("leg", UP_1, UP_2, DOWN_1, DOWN_2, DIRECT)
def test_each_worker_once_leader_last(kinds: tuple[Kind, ...], leader: int, leg: Leg) -> None:
    """A leg changes each worker once, one at a time, and the leader last."""
    world = World.of(*[leg.start] * 3, kinds=kinds, leader=leader)
    world.start(leg)
    assert world.run_tool() is None
    check_is_done(world, leg.target)
    assert sorted(world.order) == sorted(world.workers)
    assert world.order[-1] == f"http://w{leader}"


@cases("kinds", AGENTS, JAVA, MIXED)
@cases(
    "legs, full_stop",
    ((UP_1,), False),
    ((DOWN_1, DOWN_2), False),
    ((Leg(start=DISABLED, target=ENABLED),), True),
)
def test_a_kill_is_resumed(kinds: tuple[Kind, ...], legs: tuple[Leg, ...], full_stop: bool) -> None:
    """A run that was killed before any act or entry ends in the same state when resumed."""
    at = 0
    while True:
        world = World.of(*[legs[0].start] * 3, kinds=kinds)
        world.start(*legs, full_stop=full_stop)
        try:
            world.run_tool(kill_at=at)
        except Killed:
            pass
        else:
            break
        assert world.run_tool() is None, at
        check_is_done(world, legs[-1].target)
        done = [e.url for e in world.journal if isinstance(e, StepVerified)]
        assert len(done) == len(legs) * 3, (at, done)
        # The action under way may be repeated once, and no other; in a full stop all are under way.
        repeated = 3 if full_stop else 1
        assert sum(w.restarts for w in world.workers.values()) <= len(legs) * 3 + repeated, at
        at += 1
    assert at > 10


def test_kills_one_after_another_are_resumed() -> None:
    """A run that is killed after every three acts still gets to its end."""
    world = World.of(ENABLED, ENABLED, ENABLED, kinds=MIXED)
    world.start(DOWN_1, DOWN_2)
    for _ in range(50):
        try:
            world.run_tool(kill_at=3)
            break
        except Killed:
            continue
    check_is_done(world, DISABLED)


def test_a_worker_that_does_not_come_back_halts_the_run() -> None:
    """A worker that does not return halts the run; after its repair the same command continues."""
    world = World.of(DISABLED, DISABLED, DISABLED)
    world.start(UP_1)
    world.workers["http://w2"].broken = True
    end = halted(world)
    assert "http://w2 is not back yet (connection refused)" in end.reason
    assert "exactly.once.source.support=preparing" in end.hint
    assert [w.phase for w in world.workers.values()] == [DISABLED, PREPARING, DISABLED]
    world.workers["http://w2"].broken = False
    assert world.run_tool() is None
    check_is_done(world, PREPARING)
    assert world.workers["http://w1"].restarts == 1


def test_a_stranger_in_the_group_halts_the_run() -> None:
    """A new member of the group halts the run, and the reason names its version."""
    world = World.of(PREPARING, PREPARING)
    world.start(UP_2)
    world.strangers = [
        UpgradedWorker(url="http://old", version="3.2.0", instance="m", kind=Kind.JAVA)
    ]
    end = halted(world)
    assert "http://old, version 3.2.0 has joined the group" in end.reason
    assert world.order == []


def test_a_missing_member_stops_further_restarts() -> None:
    """A member that is missing before the first step halts the run without a change."""
    world = World.of(DISABLED, DISABLED, DISABLED)
    world.start(UP_1)
    world.workers["http://w1"].stopped = True
    assert "http://w1 is missing from the group" in halted(world).reason
    assert world.order == []


@cases("kinds", AGENTS, JAVA, MIXED)
@cases("cut_off", "http://w0", "http://w1", "http://w2")
@cases("legs", (UP_1,), (UP_2,), (DOWN_1, DOWN_2), (DIRECT,))
def test_a_worker_that_does_not_answer_stops_the_run_wherever_it_is(
    legs: tuple[Leg, ...], cut_off: str, kinds: tuple[Kind, ...]
) -> None:
    """While a worker does not answer, no other worker is changed."""
    at, ended = 0, False
    while not ended:
        at += 1
        world = World.of(*[legs[0].start] * 3, kinds=kinds)
        world.start(*legs)
        world.outage = (at, cut_off)
        end = world.run_tool()
        ended = not world.workers[cut_off].cut_off
        if end is not None:
            assert cut_off in end.reason
            assert end.hint
            changed = list(world.order)
            world.workers[cut_off].cut_off = False
            assert world.run_tool() is None, at
            assert world.order[: len(changed)] == changed
        check_is_done(world, legs[-1].target)
    assert at > 10


def test_new_failures_stop_the_run_and_old_ones_do_not() -> None:
    """Only a failure since the beginning of the run halts it."""
    world = World.of(DISABLED, DISABLED)
    world.failed = {"old/0"}
    world.start(UP_1, failed=("old/0",))
    assert world.run_tool() is None
    world = World.of(DISABLED, DISABLED)
    world.start(UP_1)
    world.failed = {"new/0"}
    assert "new/0 is FAILED since the run began" in halted(world).reason


def test_unreported_states_do_not_count_as_healthy() -> None:
    """A run waits for unreported states, and halts if they are FAILED or do not come."""
    world = World.of(DISABLED, DISABLED)
    world.start(UP_1)
    world.mute_until_ms, world.failed = 3_000, {"new/0"}
    assert "new/0 is FAILED since the run began" in halted(world).reason
    assert world.now_ms >= 3_000
    assert world.order == []
    world = World.of(DISABLED, DISABLED)
    world.start(UP_1)
    world.mute_until_ms = 10**9
    assert "no worker reports the states of connectors and tasks" in halted(world).reason
    assert world.order == []


def test_transactions_that_stay_open_stop_the_run() -> None:
    """A transaction that stays open halts the run before the next change."""
    world = World.of(PREPARING, PREPARING)
    world.start(UP_2)
    world.hanging = ("g-c-0",)
    assert "the transaction of g-c-0" in halted(world).reason
    world = World.of(DISABLED, DISABLED)
    world.start(Leg(start=DISABLED, target=DISABLED, replace=True), hard=True)
    world.orphans = {ORPHAN: 10**9}
    assert "open: the transaction of g-c-0" in halted(world).reason
    assert {w.version for w in world.workers.values()} == {"4.3.1"}


ORPHAN = OpenTransaction(transactional_id="g-c-0", started_ms=1, timeout_ms=60_000)


@cases("full_stop", False, True)
def test_a_step_waits_for_the_transactions_of_those_before(full_stop: bool) -> None:
    """A step ends only after the transactions from before it have ended."""
    world = World.of(PREPARING, PREPARING)
    world.start(UP_2, full_stop=full_stop)
    until_ms = 3_000
    world.orphans = {ORPHAN: until_ms}
    assert world.run_tool() is None
    assert world.now_ms >= until_ms
    check_is_done(world, ENABLED)
    world = World.of(PREPARING, PREPARING)
    world.start(UP_2, full_stop=full_stop)
    world.orphans = {ORPHAN: 10**9}
    assert "the transaction of g-c-0 is still open since before" in halted(world).reason


def test_transactions_that_begin_later_are_not_waited_for() -> None:
    """A step does not wait for transactions that began after the worker was back."""
    world = World.of(PREPARING, PREPARING)
    world.start(UP_2)
    look = world.look

    def busy() -> View:
        seen = look()
        current = replace(ORPHAN, started_ms=seen_ms(world))
        return replace(seen, open_transactions=frozenset({current}))

    world.look = busy  # type: ignore[method-assign]
    assert world.run_tool() is None
    check_is_done(world, ENABLED)


def seen_ms(world: World) -> int:
    """Return the start of the living task's transaction: a new one every second look."""
    return world.now_ms // 200


def test_a_leader_that_cannot_claim_stops_the_run_at_its_end() -> None:
    """A leader that does not claim its id halts the run, with `acls check` as the hint."""
    world = World.of(DISABLED, DISABLED)
    world.start(UP_1)
    world.leader_writes = False
    end = halted(world)
    assert "has not claimed its transactional id" in end.reason
    assert "acls check --phase preparing" in end.hint
    world.leader_writes = True
    assert world.run_tool() is None


def test_a_wrong_phase_or_a_weaker_protocol_stops_the_run() -> None:
    """A phase outside the leg or a weaker group protocol halts the run."""
    world = World.of(DISABLED, DISABLED, DISABLED)
    world.start(UP_1)
    worker = world.workers["http://w1"]
    worker.phase = worker.file = ENABLED
    assert "http://w1 is enabled; this rolling is disabled → preparing" in halted(world).reason
    world = World.of(DISABLED, DISABLED)
    world.start(UP_1)
    world.protocol = "compatible"
    assert "changed from sessioned to compatible" in halted(world).reason


def test_only_the_workers_named_are_changed() -> None:
    """With `only` the run changes these workers and is then done."""
    world = World.of(DISABLED, DISABLED, DISABLED)
    world.start(UP_1, only=("http://w1",))
    assert world.run_tool() is None
    assert list(world.phases()) == [DISABLED, PREPARING, DISABLED]


def test_full_stop_changes_no_worker_before_all_have_stopped() -> None:
    """In a full stop no worker starts with the new phase before all have stopped."""
    world = World.of(DISABLED, DISABLED, DISABLED, kinds=MIXED)
    world.start(Leg(start=DISABLED, target=ENABLED), full_stop=True)
    changed = world.change

    def change(url: str, phase: Phase) -> None:
        working = [
            w.url
            for w in world.workers.values()
            if not (w.drained or w.stopped or w.away) and w.phase is DISABLED
        ]
        assert working == []
        changed(url, phase)

    world.change = change  # type: ignore[method-assign]
    assert world.run_tool() is None
    check_is_done(world, ENABLED)


def test_software_is_replaced_after_the_soft_way_down() -> None:
    """With `hard` the software of each worker is replaced after the way down."""
    world = World.of(PREPARING, PREPARING)
    world.start(DOWN_2, Leg(start=DISABLED, target=DISABLED, replace=True), hard=True)
    assert world.run_tool() is None
    assert {w.version for w in world.workers.values()} == {"3.2.0"}


def test_inferred_phases_are_labelled() -> None:
    """An inferred phase is shown with the label `inferred`."""
    worker = UpgradedWorker(
        url="http://w", kind=Kind.JAVA, phases=frozenset({ENABLED}), source=PhaseSource.INFERRED
    )
    assert worker.phase_text == "enabled (inferred)"
