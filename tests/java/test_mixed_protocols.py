"""A Java worker and an agent in one group under each of Connect's older protocols."""

from collections import Counter
from pathlib import Path

import pytest

from tests.support.agents.agent import Agent, sink_config
from tests.support.agents.mixed_group import WAIT_S, MixedGroup
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import worker_of
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


# An agent's own id for leaders is in its subscription; a Java worker that leads passes over it.
OWN_ID = {"exactly.once.source.support": "preparing", "agent.leader.transactional.id": "own-id"}


@pytest.mark.parametrize(
    ("leader", "properties"),
    [
        pytest.param(
            "java",
            {"connect.protocol": "eager", **OWN_ID},
            id="java-eager",
            marks=pytest.mark.long(only=True),
        ),
        pytest.param("agent", {"connect.protocol": "compatible"}, id="agent-compatible"),
    ],
)
def test_work_is_shared_and_taken_over(
    module_servers: Servers,
    kafka_broker: SharedBroker,
    tmp_path: Path,
    leader: str,
    properties: dict[str, str],
) -> None:
    """Dealt evenly, stopped and resumed through the follower, kept when the leader dies."""
    group = MixedGroup(module_servers, kafka_broker, leader, properties)
    for number, worker in enumerate(reversed(group.both)):
        config = sink_config(tmp_path / "out.txt", unique_name("lines"), tasks_max="2")
        create(worker, f"c{number}", config)
    for name in ("c0", "c1"):
        group.wait_for_states(name, *["RUNNING"] * 3)
    owners = Counter(owner for name in ("c0", "c1") for owner in group.owners(name))
    assert owners == {worker_of(worker): 3 for worker in group.both}
    survivor = group.both[1]
    assert survivor.call("PUT", "/connectors/c0/stop").status == 204
    group.wait_for_states("c0", "STOPPED")
    assert survivor.call("PUT", "/connectors/c0/resume").status == 202
    group.wait_for_states("c0", *["RUNNING"] * 3)
    group.leader.process.kill()
    for name in ("c0", "c1"):
        eventually(lambda name=name: runs_at(survivor, name), WAIT_S)
    survivor.process.stop()


def create(worker: Agent, name: str, config: dict[str, str]) -> None:
    """409 while a rebalance is under way, as clients have to expect."""
    body = {"name": name, "config": config}
    eventually(lambda: worker.call("POST", "/connectors", body).status == 201, WAIT_S)


def runs_at(worker: Agent, name: str) -> bool:
    status = worker.get(f"/connectors/{name}/status")
    parts = [status["connector"], *status["tasks"]]
    return len(parts) == 3 and all(
        (part["worker_id"], part["state"]) == (worker_of(worker), "RUNNING") for part in parts
    )
