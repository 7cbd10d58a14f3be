"""Connectors whose processes have ended because they are idle, in agents on a broker."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.agent import Agent, Agents, append_lines, source_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.bad_plugins import idle_source
from tests.support.servers.cluster import (
    SESSION_MS,
    Cluster,
    cluster_of,
    status_faults,
    statuses_in,
    worker_of,
)
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

WAIT_S = 150


@pytest.fixture
def cluster(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Cluster]:
    with cluster_of(2, kafka_broker.bootstrap_servers, tmp_path) as cluster:
        yield cluster


def asleep(agent: Agent) -> list[str]:
    return [work["connector"] for work in agent.get("/agent/tasks") if work["asleep"]]


def test_a_worker_with_only_sleeping_connectors_loses_its_membership_and_comes_back(
    cluster: Cluster, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A worker with only sleeping connectors can lose its membership, and statuses stay true."""
    leader, (follower,) = cluster.leader(), cluster.followers()
    names = [f"c{number}" for number in range(4)]
    for name in names:
        config = idle_source(name, tmp_path, made="0")
        del config["name"]
        leader.create(name, config)
    eventually(lambda: [len(asleep(each)) for each in cluster.agents] == [2, 2], WAIT_S)
    eventually(lambda: follower.children() == [], WAIT_S)
    os.kill(follower.process.pid, signal.SIGSTOP)
    try:
        eventually(lambda: sorted(asleep(leader)) == names, WAIT_S + SESSION_MS / 1000)
        listed = leader.get("/connectors?expand=status").values()
        owners = {found["status"]["connector"]["worker_id"] for found in listed}
        assert owners == {worker_of(leader)}
    finally:
        os.kill(follower.process.pid, signal.SIGCONT)
    eventually(lambda: [len(asleep(each)) for each in cluster.agents] == [2, 2], WAIT_S)
    cluster.wait_until_running(dict.fromkeys(names, 0))

    def faults() -> list[str]:
        written = statuses_in(kafka_broker.bootstrap_servers, f"{cluster.group_id}-status")
        return status_faults(cluster.agents, written)

    eventually(lambda: faults() == [], WAIT_S, faults)
    # Each start has its stop, even on the frozen worker.
    for name in names:
        calls = [call for call in (tmp_path / name).read_text().split() if call != "configs"]
        assert calls == ["start", "stop"] * (len(calls) // 2)


def test_every_request_finds_a_sleeping_connector(agents: Agents, tmp_path: Path) -> None:
    """Each request about a sleeping connector works: validation, states, offsets, configs."""
    agent = agents.start()
    file = tmp_path / "in.txt"
    append_lines(file, 1, 10)
    config = source_config(file, unique_name("lines"))
    agent.create("c", config)
    both = "RUNNING", "RUNNING"
    agent.wait_for_states("c", *both)

    def sleep() -> None:
        eventually(lambda: asleep(agent) == ["c"], WAIT_S)

    sleep()
    plugin = "/connector-plugins/FileStreamSource/config/validate"
    assert agent.call("PUT", plugin, {**config, "name": "c"}).json()["error_count"] == 0
    assert agent.call("POST", "/connectors/c/restart").status == 204
    eventually(lambda: asleep(agent) == [], WAIT_S)
    agent.wait_for_states("c", *both)
    sleep()
    agent.do("PUT", "/connectors/c/pause")
    agent.wait_for_states("c", "PAUSED", "PAUSED")
    agent.do("PUT", "/connectors/c/resume")
    agent.wait_for_states("c", *both)
    sleep()
    agent.do("PUT", "/connectors/c/stop")
    agent.wait_for_states("c", "STOPPED")
    assert asleep(agent) == []
    (offset,) = agent.get("/connectors/c/offsets")["offsets"]
    change = {"offsets": [{**offset, "offset": {"position": 0}}]}
    assert agent.call("PATCH", "/connectors/c/offsets", change).status == 200
    agent.do("PUT", "/connectors/c/resume")
    agent.wait_for_states("c", *both)
    sleep()
    agent.do("PUT", "/connectors/c/config", {**config, "batch.size": "7"})
    eventually(
        lambda: agent.get("/connectors/c/tasks")[0]["config"].get("batch.size") == "7", WAIT_S
    )
    agent.wait_for_states("c", *both)
    sleep()
    agent.do("DELETE", "/connectors/c")
    eventually(lambda: agent.get("/agent/tasks") == [], WAIT_S)
    eventually(lambda: agent.children() == [], WAIT_S)
    assert "ended by itself" not in agent.log()
