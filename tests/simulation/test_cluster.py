"""The duties of a cluster with a worker that comes, leaves, returns or falls behind."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pyconnect_agent.core.errors import ConflictError
from pyconnect_agent.core.herder import effects as do
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.membership import UNREADABLE_BACKOFF_MS, JoinRetry
from pyconnect_agent.core.herder.state import MembershipPhase
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics import LogRecord
from tests.simulation.cluster_worker import Worker
from tests.simulation.cluster_world import MAX_DELAY_MS, Cluster, settled_cluster, work_of
from tests.simulation.herder_world import TASKS
from tests.support.cases import cases

pytestmark = pytest.mark.simulation


def connectors(count: int, tasks: int) -> list[ask.Request]:
    return [
        ask.PutConnectorConfig(connector=f"c{number:03}", config={TASKS: str(tasks)})
        for number in range(count)
    ]


def run_until_expired(cluster: Cluster, member_id: str) -> None:
    """Let the group notice one death, and let all follow that needs no time."""
    cluster.coordinator.expire(member_id)
    now_ms = cluster.now_ms
    while cluster.take_step():
        if cluster.now_ms != now_ms:
            raise AssertionError("time passed before everything else had happened")
        if all(worker.state.scheduled_rebalance for worker in cluster.running()):
            return


def test_every_worker_answers_for_all() -> None:
    """A request through any worker reaches a worker that can serve it, and takes effect on all."""
    cluster = settled_cluster(3)
    for number, worker in enumerate(cluster.workers):
        assert cluster.settled(worker, connectors(number + 1, 2)[number]).error is None
    for worker in cluster.workers:
        assert cluster.settled(worker, ask.StopConnector(connector="c000")).error is None
        assert worker.state.snapshot.target_state("c000") is TargetState.STOPPED
    assert cluster.ask(cluster.workers[1], ask.DeleteConnector(connector="c001")).hops_left == 2
    cluster.settle()
    assert cluster.leader().state.snapshot.connectors() == ("c000", "c002")
    cluster.check_rest()


def test_a_task_restart_goes_from_follower_to_leader_to_owner() -> None:
    """A restart takes two hops if follower and owner differ: only the leader knows owners."""
    cluster = settled_cluster(3, connectors(1, 3))
    leader = cluster.leader()
    asker, owner = (w for w in cluster.workers if w is not leader)
    task_id = next(iter(owner.tasks))
    before = len(cluster.starts)
    restart = cluster.settled(asker, ask.RestartTask(task_id=task_id))
    assert restart.error is None
    assert restart.hops_left == 0
    assert [(name, t) for _, name, t in cluster.starts[before:]] == [(owner.name, task_id)]


def test_a_new_worker_takes_only_its_share() -> None:
    """A fourth worker takes a quarter of a hundred connectors, and nothing else moves."""
    cluster = settled_cluster(3, connectors(100, 2))
    cluster.check_rest()
    before = {worker.name: work_of(worker) for worker in cluster.workers}
    starts = len(cluster.starts)
    added = cluster.add_worker()
    cluster.settle()
    cluster.check_rest()
    moved = work_of(added)
    assert (len(moved.connectors), len(moved.tasks)) == (25, 50)
    assert len(cluster.starts) - starts == 50
    for worker in cluster.workers[:3]:
        assert (work_of(worker) - before[worker.name]).empty


def test_lost_work_waits_for_the_scheduled_delay_and_no_longer() -> None:
    """The work of a lost follower starts elsewhere exactly at the end of the delay."""
    cluster = settled_cluster(3, connectors(3, 2))
    victim = cluster.follower()
    lost = set(victim.tasks)
    member_id, began_ms, starts = victim.member.member_id, cluster.now_ms, len(cluster.starts)
    victim.crash()
    run_until_expired(cluster, member_id)
    assert cluster.starts[starts:] == []
    cluster.settle()
    cluster.check_rest()
    restarted = cluster.starts[starts:]
    assert {task_id for _, _, task_id in restarted} == lost
    assert {at_ms - began_ms for at_ms, _, _ in restarted} == {MAX_DELAY_MS}


def test_a_worker_that_returns_within_the_delay_gets_its_work_back() -> None:
    """The lost work goes to the new member, and no other work moves."""
    cluster = settled_cluster(3, connectors(3, 2))
    victim = cluster.follower()
    lost = work_of(victim)
    kept = {w.name: work_of(w) for w in cluster.workers if w is not victim}
    member_id, starts = victim.member.member_id, len(cluster.starts)
    victim.crash()
    run_until_expired(cluster, member_id)
    victim.boot()
    cluster.settle()
    cluster.check_rest()
    assert work_of(victim) == lost
    assert {t for _, _, t in cluster.starts[starts:]} == set(lost.tasks)
    assert {w.name: work_of(w) for w in cluster.workers if w is not victim} == kept


def test_the_work_of_a_lost_leader_moves_at_once() -> None:
    """A new leader has no memory of earlier owners: it assigns unclaimed work without waiting."""
    cluster = settled_cluster(3, connectors(3, 2))
    leader = cluster.leader()
    lost, began_ms, starts = set(leader.tasks), cluster.now_ms, len(cluster.starts)
    leader.crash()
    cluster.settle()
    cluster.check_rest()
    restarted = cluster.starts[starts:]
    assert {task_id for _, _, task_id in restarted} == lost
    assert {at_ms for at_ms, _, _ in restarted} == {began_ms}


def test_a_worker_that_outlived_its_session_releases_work_of_others() -> None:
    """A worker that returns with old claims loses them: two owners of a task both lose it.

    The next round assigns the task again.
    """
    cluster = settled_cluster(3, connectors(3, 2))
    frozen = cluster.follower()
    cluster.coordinator.expire(frozen.member.member_id)
    others = [worker for worker in cluster.workers if worker is not frozen]
    # The other workers go on until the delay is over and the lost work runs elsewhere.
    for _ in range(5_000):
        if set(frozen.tasks) <= {t for worker in others for t in worker.tasks}:
            break
        frozen.up = frozen.member.alive = False
        cluster.take_step()
        frozen.up = frozen.member.alive = True
    else:
        raise AssertionError("lost work never ran elsewhere")
    cluster.settle()
    cluster.check_rest()


def with_other_config_topic(cluster: Cluster, log: list[LogRecord]) -> Worker:
    """Add a worker that was given the same group by mistake."""
    stray = cluster.add_worker()
    stray.crash()
    stray.log = log
    stray.boot()
    for worker in cluster.workers:
        worker.stray = True
    return stray


def test_a_worker_with_a_shorter_config_topic_says_so_and_keeps_away() -> None:
    """A worker whose topic ends before the group's offset warns of another topic and leaves."""
    cluster = settled_cluster(2, connectors(2, 2))
    leader = cluster.leader()
    stray = with_other_config_topic(cluster, [])
    cluster.run_until(lambda: bool(stray.warnings))
    assert stray.warnings[0].others == (leader.url,)
    assert stray.warnings[0].own_offset < stray.warnings[0].their_offset == len(cluster.log)
    assert stray.member.member_id not in cluster.coordinator.seats
    assert stray.tasks == {}


def test_a_leader_with_a_shorter_config_topic_names_the_member_ahead() -> None:
    """A leader whose topic ends before a member's offset warns of that member's other topic."""
    cluster = settled_cluster(1, connectors(1, 1))
    stray = with_other_config_topic(cluster, 3 * cluster.log)
    leader = cluster.workers[0]
    cluster.run_until(lambda: bool(leader.warnings))
    assert leader.warnings[0].others == (stray.url,)
    assert leader.warnings[0].own_offset < leader.warnings[0].their_offset == len(stray.log)


def test_unconfigured_work_comes_from_another_config_topic() -> None:
    """Unconfigured work in an assignment gives a warning, even if both topics are equally long."""
    cluster = settled_cluster(1, connectors(2, 1))
    log = [LogRecord(r.key.replace(b"c00", b"d00"), r.value) for r in cluster.log]
    stray = with_other_config_topic(cluster, log)
    cluster.run_until(lambda: bool(stray.warnings))
    assert stray.connectors == {}


def test_a_restart_is_refused_while_the_config_topic_asks_for_a_rebalance() -> None:
    """A restart is refused while tasks wait for a new assignment; the client is to try again."""
    cluster = settled_cluster(2, connectors(1, 2))
    worker = next(w for w in cluster.workers if w.tasks)
    cluster.ask(cluster.leader(), connectors(1, 3)[0])
    cluster.run_until(lambda: any(answer.queue.startswith("stop") for answer in worker.answers))
    cluster.run_until(lambda: worker.state.rebalance_expected)
    task_id = next(iter(worker.tasks))
    refused = [
        cluster.ask(worker, request)
        for request in (
            ask.RestartConnector(connector="c000"),
            ask.RestartConnectorAndTasks(connector="c000", only_failed=False, include_tasks=True),
            ask.RestartTask(task_id=task_id),
        )
    ]
    read = cluster.settled(worker, ask.GetConnectorInfo(connector="c000"))
    for asked in refused:
        assert isinstance(asked.error, ConflictError)
        assert "due to stale configuration" in asked.error.message
    assert read.error is None
    cluster.check_rest()


def test_a_worker_that_cannot_read_the_config_topic_leaves_the_group_for_a_while() -> None:
    """A worker that cannot read new configs keeps its work, starts nothing, and returns later."""
    cluster = settled_cluster(2, connectors(2, 2))
    slow = cluster.follower()
    slow.lagging = True
    kept = work_of(slow)
    cluster.ask(cluster.leader(), connectors(3, 2)[2])
    cluster.run_until(lambda: slow.state.phase is MembershipPhase.BACKING_OFF)
    assert work_of(slow) == kept
    assert len(cluster.coordinator.seats) == 1
    slow.lagging = False
    cluster.settle()
    cluster.check_rest()
    assert slow.state.snapshot.connectors() == ("c000", "c001", "c002")


@cases("meanwhile", "nothing", "coordinator lost")
def test_an_undecodable_assignment_is_followed_by_joins_at_intervals(meanwhile: str) -> None:
    """A worker pauses between joins, because a leader that leaves it out does so at each join."""
    cluster = settled_cluster(2, connectors(2, 2))
    worker, joins_ms = cluster.follower(), list[int]()
    request_rejoin = worker.group.request_rejoin

    def noted(effect: do.RequestRejoin) -> None:
        joins_ms.append(cluster.now_ms)
        request_rejoin(effect)

    worker.group.request_rejoin = noted  # type: ignore[method-assign]
    cluster.coordinator.left_out.add(worker.name)
    cluster.ask(worker, connectors(3, 2)[2])
    cluster.run_until(lambda: len(joins_ms) == 5)
    waits = [after - before for before, after in pairwise(joins_ms)]
    assert min(waits) >= UNREADABLE_BACKOFF_MS
    if meanwhile == "coordinator lost":
        cluster.run_until(lambda: worker.member.answer is not None)
        cluster.run_until(lambda: not worker.inbox and worker.member.answer is None)
        worker.member.lose_coordinator()
    cluster.coordinator.left_out.clear()
    cluster.settle()
    cluster.check_rest()


def test_a_worker_that_cannot_decode_its_assignment_can_be_drained() -> None:
    """Drained, a worker without a readable assignment gives up its work; later it joins again."""
    cluster = settled_cluster(2, connectors(2, 2))
    worker = cluster.follower()
    cluster.coordinator.left_out.add(worker.name)
    cluster.ask(worker, connectors(3, 2)[2])
    cluster.run_until(lambda: any(isinstance(timer, JoinRetry) for _, timer in worker.timers))
    worker.inbox.append(on.Drain())
    cluster.settle()
    assert worker.state.phase is MembershipPhase.DRAINED
    assert work_of(worker).empty
    cluster.coordinator.left_out.clear()
    worker.inbox.append(on.Undrain())
    cluster.settle()
    cluster.check_rest()


def test_a_change_that_is_read_during_a_join_does_not_refuse_restarts_for_ever() -> None:
    """A join's assignment includes the changes read during it, so restarts are allowed again."""
    state = settled_cluster(2, connectors(1, 2)).leader().state
    assert state.membership is not None
    state = replace(
        state, phase=MembershipPhase.JOINING, rejoin_wanted=True, rebalance_expected=True
    )
    generation = state.membership.generation + 1
    joined = on.Joined(
        member_id=state.membership.member_id,
        generation=generation,
        assignment=state.membership.assignment,
    )
    after, _ = decide(state, joined, now_ms=0)
    assert (after.phase, after.rejoin_wanted) == (MembershipPhase.RESOLVED, False)
    assert not after.rebalance_expected
