"""An agent with a leader's transactional id of its own, in a group with a Java worker."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.agents.agent import sink_config
from tests.support.agents.mixed_group import MixedGroup
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import worker_of
from tests.support.servers.kafka import Servers, SharedBroker

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]

KEY = "agent.leader.transactional.id"
WAIT_S = 150
MakeGroup = Callable[..., MixedGroup]


@pytest.fixture
def make_group(module_servers: Servers, kafka_broker: SharedBroker) -> Iterator[MakeGroup]:
    """Make a group of both kinds, at `preparing`; the key means something to the agent only."""
    made: list[MixedGroup] = []

    def make(leader: str) -> MixedGroup:
        settings = {"exactly.once.source.support": "preparing", KEY: unique_name("leader-id")}
        made.append(MixedGroup(module_servers, kafka_broker, leader, settings))
        return made[-1]

    yield make
    for group in made:
        for worker in group.both:
            worker.process.stop()


def test_a_java_leader_reads_the_agents_subscription(make_group: MakeGroup, tmp_path: Path) -> None:
    """It passes over the id and deals the agent its share of the work.

    The layout of the protocol `eager` is tested in test_mixed_protocols.py.
    """
    group = make_group("java")
    leader, agent = group.both
    leader.create("lines", sink_config(tmp_path / "out.txt", unique_name("t"), tasks_max="3"))
    group.wait_for_states("lines", "RUNNING", "RUNNING", "RUNNING", "RUNNING")
    assert set(group.owners("lines")) == {worker_of(leader), worker_of(agent)}


def test_an_agent_that_leads_a_java_worker_refuses_to_write(
    make_group: MakeGroup, tmp_path: Path
) -> None:
    """A Java worker would lead under Kafka's id; without it the agent writes again."""
    group = make_group("agent")
    leader, java = group.both
    body = {"name": "lines", "config": sink_config(tmp_path / "out.txt", unique_name("t"))}
    for worker in (leader, java):
        eventually(
            lambda worker=worker: worker.call("POST", "/connectors", body).status == 503, WAIT_S
        )
    text = leader.call("POST", "/connectors", body).text
    for part in (KEY, java.url, f"(connect-cluster-{group.group_id})"):
        assert part in text, text
    java.process.stop()
    eventually(lambda: leader.call("POST", "/connectors", body).status == 201, WAIT_S)
    leader.wait_for_states("lines", "RUNNING", "RUNNING")
