"""Automatic restarts in a cluster at `enabled`: once, by the owner, and no other worker writes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyconnect_agent.core.herder import requests as ask
from pyconnect_agent.core.ids import ConnectorTaskId, State
from tests.simulation.cluster_world import Cluster
from tests.simulation.herder_world import TASKS

pytestmark = pytest.mark.simulation

TASK_COUNT = 3
CONFIG = {
    TASKS: str(TASK_COUNT),
    "agent.restart.policy": "auto",
    "agent.restart.backoff.ms": "1000",
    "agent.restart.max.attempts": "1000",
}


def settled() -> Cluster:
    """Two agents at rest with the connector `c`."""
    cluster = Cluster(2, exactly_once=True)
    cluster.settle()
    cluster.settled(cluster.workers[0], ask.PutConnectorConfig(connector="c", config=CONFIG))
    return cluster


def fail(cluster: Cluster, number: int) -> None:
    """A task fails at its owner; it has to be there to fail."""
    task_id = ConnectorTaskId("c", number)
    for worker in cluster.awake():
        if task_id in worker.tasks:
            worker.fail(task_id)


def states(cluster: Cluster) -> set[State]:
    return {status.state for status in cluster.task_statuses.values()}


def test_agents_learn_that_they_are_among_themselves() -> None:
    """Leader and follower: `auto` restarts."""
    cluster = settled()
    assert all(worker.state.agents_only for worker in cluster.workers)


def test_the_owner_restarts_its_task_once_and_it_writes_alone() -> None:
    """A later failure waits longer; the producer of the failed instance can write no more."""
    cluster = settled()
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
    """Work that is about to be dealt again is not started; its next owner starts it."""
    cluster = settled()
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
    """The rules of the cluster hold at each step; in the end every task runs and writes alone."""
    cluster = settled()
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
