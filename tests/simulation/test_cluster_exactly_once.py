"""A cluster at `enabled`: tasks of lost workers, and automatic restarts (KIP-618)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.herder.state import Step
from pyconnect_agent.core.ids import ConnectorTaskId, State, TargetState
from tests.simulation.cluster_worker import Worker
from tests.simulation.cluster_world import Cluster
from tests.simulation.herder_world import TASKS
from tests.support.cases import cases

pytestmark = pytest.mark.simulation


def settled(size: int, tasks: int) -> Cluster:
    """Return a cluster at rest with the connector `c`."""
    cluster = Cluster(size, exactly_once=True)
    cluster.settle()
    configure(cluster, cluster.workers[0], tasks)
    return cluster


def configure(cluster: Cluster, worker: Worker, tasks: int) -> None:
    request = ask.PutConnectorConfig(connector="c", config={TASKS: str(tasks)})
    assert cluster.settled(worker, request).error is None


def freeze(cluster: Cluster, worker: Worker) -> None:
    """Stop a worker beyond its session, while its tasks' processes go on."""
    worker.frozen = True
    cluster.coordinator.expire(worker.member.member_id)


def writers(cluster: Cluster) -> list[tuple[str, int]]:
    """Return worker and number of each task of `c` that could write now."""
    return [(found.worker.name, found.task_id.task) for found in cluster.producers.writers("c")]


@cases("leads", True, False)
@cases("before, after", (3, 1), (2, 4), (1, 1), (1, 2))
def test_no_task_of_an_older_set_can_write_any_more(leads: bool, before: int, after: int) -> None:
    """After a change of the tasks, only the newest can write, whichever worker was lost."""
    cluster = settled(2, before)
    assert len(writers(cluster)) == before
    lost = next(w for w in cluster.workers if w.state.is_leader is leads)
    other = next(w for w in cluster.workers if w is not lost)
    freeze(cluster, lost)
    cluster.run_until(lambda: other.state.is_leader)
    configure(cluster, other, after)
    assert sorted(writers(cluster)) == [(other.name, number) for number in range(after)]
    lost.frozen = False
    cluster.settle()
    cluster.check_rest()
    assert len(writers(cluster)) == after


def test_a_task_that_initialises_after_a_newer_set_began_writes_nothing() -> None:
    """A late task fences its successor, but may not begin; the successor's restart goes on."""
    cluster = settled(2, 2)
    late = next(w for w in cluster.workers if not w.state.is_leader)
    other = next(w for w in cluster.workers if w is not late)
    restart = ask.RestartConnectorAndTasks(connector="c", only_failed=False, include_tasks=True)
    cluster.ask(late, restart)
    [task_id] = late.tasks
    old = late.tasks[task_id]
    cluster.run_until(lambda: late.tasks.get(task_id, old) is not old)
    freeze(cluster, late)
    configure(cluster, other, 2)
    assert sorted(writers(cluster)) == [(other.name, 0), (other.name, 1)]
    [initialise] = [a for a in late.answers if a.queue == f"task {task_id}"]
    late.answer(initialise)
    assert sorted(writers(cluster)) == [(other.name, 1 - task_id.task)]
    late.frozen = False
    cluster.settle()
    cluster.check_rest()
    assert len(writers(cluster)) <= 2


@cases("written", False, True)
@cases("step", Step.READING_CONFIG, Step.FENCING, Step.READING_AGAIN, Step.WRITING)
@cases("before, after", (3, 5), (5, 2), (1, 3))
def test_a_leader_that_dies_in_a_round_leaves_the_rest_to_the_next(
    before: int, after: int, step: Step, written: bool
) -> None:
    """The next leader completes the round of a leader that died at any step, and counts all tasks.

    The step may be done but not reported.
    """
    cluster = settled(3, before)
    leader = next(worker for worker in cluster.workers if worker.state.is_leader)
    other = next(worker for worker in cluster.workers if worker is not leader)
    cluster.ask(other, ask.PutConnectorConfig(connector="c", config={TASKS: str(after)}))
    cluster.run_until(lambda: step in rounds(leader))
    if written:
        queue = {Step.FENCING: "fencing", Step.WRITING: "writes"}.get(step, "reads")
        leader.answer(next(a for a in leader.answerable() if a.queue == queue))
    leader.crash()
    cluster.settle()
    cluster.check_rest()
    assert sorted(number for _, number in writers(cluster)) == list(range(after))
    assert cluster.workers[0].replayed().task_count_records == {"c": after}
    leader.boot()
    configure(cluster, other, before)
    assert sorted(number for _, number in writers(cluster)) == list(range(before))


def rounds(leader: Worker) -> set[Step]:
    """Return the steps of the fencing rounds that are under way."""
    operations = leader.state.operations.values()
    return {found.step for found in operations if isinstance(found.request, ask.FenceZombies)}


@cases("step", Step.FENCING, Step.READING_AGAIN, Step.WRITING)
def test_a_stop_during_a_round_leaves_nothing_that_can_write(step: Step) -> None:
    """After a stop during a round, no task can write and the count is 0; resumed, all tasks run."""
    cluster = settled(3, 3)
    leader = next(worker for worker in cluster.workers if worker.state.is_leader)
    cluster.ask(leader, ask.PutConnectorConfig(connector="c", config={TASKS: "5"}))
    cluster.run_until(lambda: step in rounds(leader))
    stopping = cluster.settled(leader, ask.StopConnector(connector="c"))
    assert stopping.error is None
    cluster.check_rest()
    assert writers(cluster) == []
    changing = cluster.settled(leader, ask.ChangeOffsets(connector="c", offsets=None))
    assert changing.error is None
    assert cluster.workers[0].replayed().task_count_records == {"c": 0}
    started = TargetState.STARTED
    cluster.settled(leader, ask.SetTargetState(connector="c", target_state=started))
    cluster.check_rest()
    assert sorted(number for _, number in writers(cluster)) == list(range(5))
    assert cluster.workers[0].replayed().task_count_records == {"c": 5}


TASK_COUNT = 3
CONFIG = {
    TASKS: str(TASK_COUNT),
    "agent.restart.policy": "auto",
    "agent.restart.backoff.ms": "1000",
    "agent.restart.max.attempts": "1000",
}


def restarting_cluster() -> Cluster:
    """Return two agents at rest with the connector `c`."""
    cluster = Cluster(2, exactly_once=True)
    cluster.settle()
    cluster.settled(cluster.workers[0], ask.PutConnectorConfig(connector="c", config=CONFIG))
    return cluster


def fail(cluster: Cluster, number: int) -> None:
    """Let a task fail at its owner, if it has one."""
    task_id = ConnectorTaskId("c", number)
    for worker in cluster.awake():
        if task_id in worker.tasks:
            worker.fail(task_id)


def states(cluster: Cluster) -> set[State]:
    return {status.state for status in cluster.task_statuses.values()}


def test_agents_learn_that_they_are_among_themselves() -> None:
    """Leader and follower know that all members are agents, so that `auto` restarts tasks."""
    cluster = restarting_cluster()
    assert all(worker.state.agents_only for worker in cluster.workers)


def test_the_owner_restarts_its_task_once_and_it_writes_alone() -> None:
    """The owner restarts a failed task each time, and the failed instance cannot write."""
    cluster = restarting_cluster()
    for _ in range(3):
        before = len(cluster.starts)
        fail(cluster, 0)
        cluster.settle()
        started = [task_id for _, _, task_id in cluster.starts[before:]]
        assert started == [ConnectorTaskId("c", 0)]
        assert states(cluster) == {State.RUNNING}
        assert len(cluster.producers.writers("c")) == TASK_COUNT
        cluster.check_rest()


def test_a_restart_that_falls_due_in_a_rebalance_waits_for_it() -> None:
    """Failed work that is about to be assigned again is started only by its next owner."""
    cluster = restarting_cluster()
    fail(cluster, 0)
    fail(cluster, 1)
    cluster.add_worker()
    cluster.settle()
    cluster.check_rest()
    assert states(cluster) == {State.RUNNING}
    assert len(cluster.producers.writers("c")) == TASK_COUNT


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["fail", "step", "crash", "expire"]), st.integers(0, 2)),
        max_size=40,
    )
)
def test_failures_and_rebalances_end_with_each_task_once(events: list[tuple[str, int]]) -> None:
    """The cluster keeps its rules at each step; in the end every task runs and writes alone."""
    cluster = restarting_cluster()
    for kind, number in events:
        match kind:
            case "fail":
                fail(cluster, number)
            case "crash":
                cluster.workers[number % 2].crash()
                cluster.workers[number % 2].boot()
            case "expire":
                cluster.coordinator.expire(cluster.workers[number % 2].member.member_id)
            case _:
                for _ in range(5 * number):
                    cluster.take_step()
    cluster.settle()
    cluster.check_rest()
    assert states(cluster) == {State.RUNNING}
    assert sorted(found.task_id.task for found in cluster.producers.writers("c")) == [0, 1, 2]
