"""Two agents whose wall clocks are set while they work."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.altered_agents import ShiftedAgent
from tests.support.chaos.witness import Journal
from tests.support.eventually import eventually
from tests.support.servers.cluster import Cluster, cluster_of, status_faults
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

RESTARTS = {
    "agent.restart.policy": "on-failure",
    "agent.restart.backoff.ms": "1000",
}
DAY_S = 86_400


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(
        2, kafka_broker.bootstrap_servers, tmp_path, RESTARTS, kind=ShiftedAgent
    ) as cluster:
        yield cluster


@pytest.mark.parametrize("jump_s", [-DAY_S, DAY_S])
def test_a_set_wall_clock_moves_no_deadline(
    cluster: Cluster, journal: Journal, jump_s: float
) -> None:
    """Requests, restarts and the move of a dead worker's tasks take as long as before."""
    leader = cluster.leader()
    [follower] = cluster.followers()
    leader.create("before", journal.config(4))
    cluster.wait_until_running({"before": 4})
    starts = journal.starts()
    for agent in cluster.agents:
        assert isinstance(agent.process, ShiftedAgent)
        agent.process.set_clock(jump_s)
    # The follower signs what it forwards with the group's session key.
    follower.create("after", journal.config(2))
    cluster.wait_until_running({"before": 4, "after": 2})
    for task in follower.get("/agent/tasks"):
        if task["connector"] == "after":
            assert abs(task["since_ms"] / 1000 - jump_s - time.time()) < DAY_S / 2
    assert {entry.task for entry in journal.started_since(starts)} == {"after-0", "after-1"}
    assert status_faults(cluster.agents) == []
    killed = leader.children()[0]
    killed.kill()
    eventually(lambda: not killed.is_running(), 30)
    cluster.wait_until_running({"before": 4, "after": 2}, 30)
    cluster.kill(follower)
    began_s = time.monotonic()
    cluster.wait_until_running({"before": 4, "after": 2}, 60)
    assert time.monotonic() - began_s < 60
    assert journal.entries("overlap") == []
    assert status_faults(cluster.agents) == []
