"""Topics of source connectors, created by their rules (KIP-158), on a real broker."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.agents.agent import Agent, Agents, closing
from tests.support.agents.rest_client import JSON, call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedAgentWorker, SharedBroker, SharedJavaWorker

WAIT_S = 150
COMPARED = ("cleanup.policy", "retention.ms", "min.insync.replicas", "compression.type")


def rules(prefix: str) -> dict[str, str]:
    """Topics that begin with the prefix get two compacted partitions, others three."""
    return {
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.retention.ms": "86400000",
        "topic.creation.groups": "compacted",
        "topic.creation.compacted.include": rf"{prefix}\S*",
        "topic.creation.compacted.exclude": ".*-plain",
        "topic.creation.compacted.partitions": "2",
        "topic.creation.compacted.cleanup.policy": "compact",
    }


def source(file: Path, topic: str, settings: dict[str, str]) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(file),
        "topic": topic,
        **settings,
    }


def shape(bootstrap_servers: str, topic: str) -> dict[str, Any] | None:
    """Partitions and settings of a topic, None while there is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    if topic not in admin.list_topics(timeout=30).topics:
        return None
    described = admin.list_topics(topic, timeout=30).topics[topic]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30)
    return {
        "partitions": len(described.partitions),
        "replicas": {len(partition.replicas) for partition in described.partitions.values()},
        **{name: entries[name].value for name in COMPARED},
    }


def created(bootstrap_servers: str, topic: str) -> dict[str, Any]:
    """Wait for a topic and return its shape."""
    eventually(lambda: shape(bootstrap_servers, topic) is not None, WAIT_S)
    found = shape(bootstrap_servers, topic)
    assert found is not None
    return found


@pytest.fixture(params=["disabled", "enabled"])
def agent(
    request: pytest.FixtureRequest, kafka_broker: SharedBroker, tmp_path: Path
) -> Iterator[Agent]:
    """A worker, with and without exactly-once support."""
    properties = {"exactly.once.source.support": request.param}
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        yield agents.start(properties=properties)


@pytest.mark.kafka
def test_topics_are_created_as_the_rules_say(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The delivery guarantee does not matter; an existing topic stays as it is."""
    lines = tmp_path / "lines"
    lines.write_text("a line\n")
    prefix = unique_name("made")
    for name in ("c-1", "c-plain"):
        agent.create(name, source(lines, prefix + name, rules(prefix)))
    servers = kafka_broker.bootstrap_servers
    compacted, plain = created(servers, f"{prefix}c-1"), created(servers, f"{prefix}c-plain")
    assert (compacted["partitions"], compacted["cleanup.policy"]) == (2, "compact")
    assert (plain["partitions"], plain["cleanup.policy"]) == (3, "delete")
    assert plain["retention.ms"] == "86400000"
    agent.create("again", source(lines, f"{prefix}c-plain", rules(prefix)))
    agent.wait_for_states("again", "RUNNING", "RUNNING")
    assert shape(servers, f"{prefix}c-plain") == plain


@pytest.mark.kafka
def test_settings_that_the_brokers_refuse_fail_the_task(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """With the brokers' reason in the trace."""
    lines = tmp_path / "lines"
    lines.write_text("a line\n")
    topic = unique_name("refused")
    wrong = {**rules(topic), "topic.creation.compacted.cleanup.policy": "shred"}
    agent.create("wrong", source(lines, topic, wrong))
    agent.wait_for_states("wrong", "RUNNING", "FAILED")
    trace = agent.get("/connectors/wrong/status")["tasks"][0]["trace"]
    assert f"Unable to create topic(s) '{topic}'" in trace
    assert "shred" in trace


@pytest.mark.java
def test_both_workers_create_the_same(
    java_worker: SharedJavaWorker,
    agent_worker: SharedAgentWorker,
    kafka_broker: SharedBroker,
    tmp_path: Path,
) -> None:
    """One connector's rules on a Java worker and on ours give topics of the same shape."""
    lines = tmp_path / "lines"
    lines.write_text("a line\n")
    shapes = []
    for worker in (java_worker, agent_worker):
        for ending in ("-1", "-plain"):
            topic = unique_name("same") + ending
            config = {"name": topic, **source(lines, topic, rules("same"))}
            path = f"/connectors/{topic}"
            answer = call_url(worker.url, "PUT", f"{path}/config", json.dumps(config), JSON)
            assert answer.status == 201, answer.text
            shapes.append(created(kafka_broker.bootstrap_servers, topic))
            assert call_url(worker.url, "DELETE", path).status == 204
    assert shapes[:2] == shapes[2:]
    assert [found["partitions"] for found in shapes] == [2, 3, 2, 3]
