"""Topics of source connectors, created by their rules (KIP-158), and the order of their records.

A broker may say that it leads a new partition before it accepts records for it. librdkafka, whose
next request is made before the last one is answered, then wrote record 1 behind record 10: in one
of a few hundred topics, more often on a busy machine.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from pyconnect_agent.core.clients.configs import connector_producer, producers_admin
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_sandbox.connect_worker import worker_properties
from tests.agent.tasks.source.source_loop import Source, record
from tests.support.agents.agent import Agent, Agents
from tests.support.agents.rest_client import JSON, call_url
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import LONG, chosen
from tests.support.servers.kafka import Servers, SharedAgentWorker, SharedBroker, SharedJavaWorker
from tests.support.servers.topics import create_topics, delete_topics, read_topic

WAIT_S = 150
COMPARED = ("cleanup.policy", "retention.ms", "min.insync.replicas", "compression.type")


def rules(prefix: str) -> dict[str, str]:
    """Return rules: topics with the prefix get two compacted partitions, and others three."""
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
    """Return partitions and settings of a topic; None if it does not exist."""
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


@pytest.fixture(scope="module", params=["disabled", "enabled"])
def agent(request: pytest.FixtureRequest, module_agents: Agents) -> Agent:
    """An agent with or without exactly-once support."""
    return module_agents.start(properties={"exactly.once.source.support": request.param})


@pytest.mark.kafka
def test_topics_are_created_as_the_rules_say(
    agent: Agent, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """Topics are created by the rules with either delivery guarantee; existing ones stay."""
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
    """Settings that the brokers refuse fail the task with the brokers' reason."""
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
    """One connector's rules make the same topics on a Java worker and on an agent."""
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


TOPICS = 600 if LONG else 20
TOPICS_OF_A_TASK = 20
RECORDS = 10


@pytest.fixture(scope="module")
def bootstrap(module_servers: Servers) -> str:
    """Bootstrap servers of a broker of its own, because other tests would wait for it."""
    return module_servers.broker().bootstrap_servers


@pytest.fixture
def producer(bootstrap: str) -> Iterator[TaskProducer]:
    """The producer of a source task."""
    worker = DistributedConfig.parse(worker_properties(bootstrap, "order"))
    config = connector_producer(worker, {}, "order").build().properties
    made = TaskProducer(config, lambda: Admin(producers_admin(worker, {}, "a").build().properties))
    yield made
    made.close(0)


@pytest.mark.kafka
@pytest.mark.long
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("takes_runs", [True, False])
@pytest.mark.parametrize("partitions", chosen([12], long=[1]))
@pytest.mark.parametrize("task", range(TOPICS // TOPICS_OF_A_TASK))
def test_records_are_in_order_in_a_topic_just_created(
    bootstrap: str, producer: TaskProducer, task: int, partitions: int, *, takes_runs: bool
) -> None:
    """Records of a new topic are in order: the producer has one request in flight."""
    source = Source(producer=producer)
    source.sender.takes_runs = takes_runs
    topics = [unique_name(f"new-{task}") for _ in range(TOPICS_OF_A_TASK)]
    everywhere = [(number, part) for number in range(RECORDS) for part in range(partitions)]
    for topic in topics:
        create_topics(bootstrap, [topic], partitions=partitions)
        source.poll(*(record(n, topic=topic, kafka_partition=part) for n, part in everywhere))
    assert producer.drain(WAIT_S, until=lambda: producer.in_flight() == 0)
    for topic in topics:
        found: dict[int, list[bytes]] = {}
        for each in read_topic(bootstrap, topic):
            found.setdefault(each.partition() or 0, []).append(each.value() or b"")
        in_order = [f"v{number}".encode() for number in range(RECORDS)]
        assert found == dict.fromkeys(range(partitions), in_order), topic
    delete_topics(bootstrap, topics)
