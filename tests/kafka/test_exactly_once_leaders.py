"""Leaders that others have replaced, and tasks that begin too late (KIP-618)."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.agents.agent import Agent
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.plugins.bad_plugins import BLOCKING_CONVERTER, HELD, HOLD
from tests.support.servers.cluster import Cluster, cluster_of
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(900)]

ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "2000"}
NO_WRITE = (
    "Failed to write to config topic; this may be due to a transient error and the request can be"
    " safely retried"
)


@pytest.fixture(scope="module")
def shared_cluster(
    kafka_broker: SharedBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two workers at `enabled`, which every test leaves alive."""
    directory = tmp_path_factory.mktemp("leaders")
    with cluster_of(2, kafka_broker.bootstrap_servers, directory, ENABLED) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Iterator[Cluster]:
    yield shared_cluster
    shared_cluster.delete_all()
    for agent in shared_cluster.agents:
        eventually(lambda agent=agent: agent.children() == [], WAIT_S)


def leads(agent: Agent) -> bool:
    return agent.call("DELETE", "/connectors/nobody?forward=false").status == 404


def task_pid(agent: Agent) -> int | None:
    """Of a task that runs there."""
    tasks = [task for task in agent.get("/agent/tasks") if task["task"] is not None]
    return int(tasks[0]["pid"]) if tasks else None


def test_zombie_leader(cluster: Cluster, sequences: Sequences) -> None:
    """A leader wakes with a request that came while another led: it writes nothing as leader.

    Either it passes the request on, which then counts everywhere, or it refuses it.
    """
    zombie = cluster.leader()
    [other] = cluster.followers()
    zombie.create(sequences.name, sequences.config(2))
    cluster.wait_until_running({sequences.name: 2})
    sequences.allow(30)
    sequences.check(30, 2)
    zombie.process.suspend()
    try:
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(
                zombie.call, "PUT", f"/connectors/{sequences.name}/config", sequences.config(1)
            )
            eventually(lambda: leads(other), WAIT_S)
            answer = other.call("PUT", f"/connectors/{sequences.name}/config", sequences.config(3))
            assert answer.status == 200, answer.text
            sequences.allow(60)
            sequences.wait_for(60, 3)
            zombie.process.resume()
            status = late.result().status
    finally:
        zombie.process.resume()
    tasks = 1 if status == 200 else 3
    assert status in (200, 409, 500)
    cluster.wait_until_running({sequences.name: tasks}, WAIT_S)
    for agent in cluster.agents:
        eventually(
            lambda agent=agent: len(agent.get(f"/connectors/{sequences.name}/tasks")) == tasks,
            WAIT_S,
        )
    assert not leads(zombie)
    sequences.allow(90)
    sequences.check(90, tasks)


def test_two_leaders(cluster: Cluster, sequences: Sequences) -> None:
    """A worker that claims the leader's id fences the other.

    One request fails, and the next is written.
    """
    leader = cluster.leader()
    sequences.producer(f"connect-cluster-{cluster.group_id}")
    config = sequences.config(2)
    [follower] = cluster.followers()
    failed = follower.call("PUT", f"/connectors/{sequences.name}/config", config)
    assert (failed.status, failed.message) == (500, NO_WRITE)
    assert leader.get("/connectors") == []
    written = follower.call("PUT", f"/connectors/{sequences.name}/config", config)
    assert written.status == 201, written.text
    cluster.wait_until_running({sequences.name: 2})
    sequences.allow(30)
    sequences.check(30, 2)


def test_fencing_while_a_task_initialises(cluster: Cluster, sequences: Sequences) -> None:
    """A worker freezes with a task that has no producer yet; a later task set runs elsewhere.

    When both wake, the task may still fence its successor, but it writes nothing.
    """
    hold = sequences.directory / HOLD
    hold.touch()
    config = {
        **sequences.config(1),
        "value.converter": BLOCKING_CONVERTER,
        "value.converter.directory": str(sequences.directory),
    }
    cluster.agents[0].create(sequences.name, config)
    eventually((sequences.directory / HELD).exists, WAIT_S)
    owner = next(agent for agent in cluster.agents if task_pid(agent) is not None)
    [other] = [agent for agent in cluster.agents if agent is not owner]
    late = task_pid(owner)
    assert late is not None
    owner.process.suspend()
    try:
        eventually(lambda: leads(other), WAIT_S)
        changed = other.call("PUT", f"/connectors/{sequences.name}/config", sequences.config(2))
        assert changed.status == 200, changed.text
        sequences.allow(30)
        sequences.wait_for(30, 2)
        hold.unlink()
        # The task first, so that nobody tells it to stop before it has its producer.
        os.kill(late, signal.SIGCONT)
    finally:
        owner.process.resume()

    def settled() -> bool:
        other.call(
            "POST", f"/connectors/{sequences.name}/restart?includeTasks=true&onlyFailed=true"
        )
        return other.states(sequences.name) == ("RUNNING",) * 3

    eventually(settled, WAIT_S, lambda: other.states(sequences.name))
    cluster.wait_until_running({sequences.name: 2}, WAIT_S)
    sequences.allow(60)
    sequences.check(60, 2)
