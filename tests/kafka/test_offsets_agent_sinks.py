"""Offsets of sinks altered and reset on agents (KIP-875), in their consumer groups."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.support.agents.agent import Agent, Agents
from tests.support.agents.changed_offsets import LINES, PARTITIONS, QUICK, WAIT_S, Groups, Sink
from tests.support.audits.sinks import UNSTOPPABLE_SINK
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

SAFE_TO_RETRY = "If the connector is in a stopped state, this operation can be safely retried"


@pytest.fixture(scope="module")
def agent(module_agents: Agents) -> Agent:
    return module_agents.start(properties={**QUICK, "task.shutdown.graceful.timeout.ms": "1000"})


@pytest.fixture(scope="module")
def groups(kafka_broker: SharedBroker) -> Groups:
    return Groups(kafka_broker.bootstrap_servers)


@pytest.mark.parametrize("own_group", [False, True], ids=["connect-group", "own-group"])
def test_a_stopped_sink_is_altered_reset_and_resumed(
    agent: Agent, groups: Groups, tmp_path: Path, own_group: bool
) -> None:
    """The group has each change at once, and a resumed connector reads from there."""
    settings = {"topics.regex": "yes"}
    if own_group:
        settings["consumer.override.group.id"] = unique_name("own-group")
    sink = Sink(agent, groups, tmp_path, **settings)
    assert sink.alter(None, 5, 5).status == 200
    assert sink.committed() == {1: 5, 2: 5}
    assert sink.alter(9, None).status == 200
    assert sink.committed() == {0: 9, 2: 5}
    assert agent.call("PUT", f"/connectors/{sink.name}/resume").status == 202
    sink.wait_until_read(30 + 1 + 10 + 5)
    sink.stop()
    for _ in range(2):
        assert sink.reset().status == 200
        assert (sink.committed(), agent.get(sink.path)) == ({}, {"offsets": []})
        assert sink.group not in groups.names()
    assert agent.call("PUT", f"/connectors/{sink.name}/resume").status == 202
    sink.wait_until_read(46 + 30)
    assert (f"connect-{sink.name}" in groups.names()) is not own_group
    agent.call("DELETE", f"/connectors/{sink.name}")


def test_members_of_the_group_keep_its_offsets_and_are_named(
    agent: Agent, groups: Groups, tmp_path: Path
) -> None:
    """Tasks that have not ended are such members; without them the same request succeeds."""
    sink = Sink(agent, groups, tmp_path)
    member = Consumer(
        {
            "bootstrap.servers": groups.bootstrap_servers,
            "group.id": sink.group,
            "client.id": "a-zombie",
            "enable.auto.commit": False,
        }
    )
    member.subscribe([sink.topic])
    eventually(lambda: bool(member.poll(0.2) or member.assignment()), WAIT_S)
    stored = sink.committed()
    for verb, answer in (
        ("alter", sink.alter(1)),
        ("alter", sink.alter(None)),
        ("reset", sink.reset()),
    ):
        assert answer.status == 500
        assert answer.message.startswith(f"Failed to {verb} consumer group offsets for connector")
        assert SAFE_TO_RETRY in answer.message
        assert f"Members of group {sink.group}: a-zombie at " in answer.message
        assert sink.committed() == stored
    member.close()
    assert sink.alter(1).status == 200
    assert sink.committed() == {**stored, 0: 1}
    agent.call("DELETE", f"/connectors/{sink.name}")


def test_a_task_that_hangs_in_stop_keeps_its_groups_offsets_until_its_session_ends(
    agent: Agent, groups: Groups
) -> None:
    """The killed process could not leave the group, and the answer names it."""
    name, topic = unique_name("unstoppable"), unique_name("lines")
    groups.fill(topic)
    config = {
        "connector.class": UNSTOPPABLE_SINK,
        "topics": topic,
        "consumer.override.session.timeout.ms": "20000",
    }
    agent.create(name, config)
    stored = dict.fromkeys(range(PARTITIONS), LINES)
    eventually(lambda: groups.committed(f"connect-{name}") == stored, WAIT_S)
    assert agent.call("PUT", f"/connectors/{name}/stop").status == 204
    agent.wait_for_states(name, "STOPPED")
    partition = {"kafka_topic": topic, "kafka_partition": 0}
    path, body = f"/connectors/{name}/offsets", {"offsets": [{"partition": partition}]}
    for answer in (agent.call("PATCH", path, body), agent.call("DELETE", path)):
        assert answer.status == 500
        assert "zombie sink task" in answer.message
        assert f"Members of group connect-{name}: connector-consumer-{name}-0 at" in answer.message
    assert groups.committed(f"connect-{name}") == stored
    eventually(lambda: agent.call("DELETE", path).status == 200, WAIT_S)
    assert f"connect-{name}" not in groups.names()
    agent.call("DELETE", f"/connectors/{name}")


def test_the_possible_part_of_a_request_is_done(
    agent: Agent, groups: Groups, tmp_path: Path
) -> None:
    """A partition that Kafka does not have fails the request, which can be repeated."""
    sink = Sink(agent, groups, tmp_path)
    failure = f"Failed to alter consumer group offsets for connector {sink.name}"
    answer = sink.alter(2, None, 2, 2)
    assert (answer.status, answer.message) == (500, failure)
    assert sink.committed() == {0: 2, 2: 2}
    answer = sink.alter(1, topic="no-such-topic")
    assert (answer.status, answer.message) == (500, failure)
    answer = sink.alter(-1, 3)
    assert answer.message == f"Failed to modify offsets for sink connector {sink.name}"
    assert sink.committed() == {0: 2, 2: 2}
    agent.call("DELETE", f"/connectors/{sink.name}")


def test_a_new_config_counts_for_the_next_change(
    agent: Agent, groups: Groups, tmp_path: Path
) -> None:
    """The group and the connector's answer may change; stored offsets stay."""
    sink = Sink(agent, groups, tmp_path)
    config = f"/connectors/{sink.name}/config"
    assert agent.call("PATCH", config, {"hook": "false"}).status == 200
    answer = sink.alter(4)
    assert (answer.status, "framework-managed offsets" in answer.text) == (200, True)
    other = unique_name("other")
    assert agent.call("PATCH", config, {"consumer.override.group.id": other}).status == 200
    assert sink.alter(3).status == 200
    assert groups.committed(other) == {0: 3}
    assert sink.committed() == {0: 4, 1: LINES, 2: LINES}
    assert agent.call("PATCH", config, {"hook": "refuse"}).status == 200
    assert sink.reset().message == "The connector refuses"
    assert groups.committed(other) == {0: 3}
    agent.call("DELETE", f"/connectors/{sink.name}")
