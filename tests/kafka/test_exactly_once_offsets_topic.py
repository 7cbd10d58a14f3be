"""An offsets topic of a source connector's own, with and without exactly-once support (KIP-618)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource

from tests.support.agent import Agents, append_lines, closing, source_config
from tests.support.eventually import eventually
from tests.support.kafka import SharedBroker
from tests.support.names import unique_name
from tests.support.sequences import WAIT_S, Sequences

pytestmark = pytest.mark.kafka

SUPPORT = "exactly.once.source.support"
QUICK = {"offset.flush.interval.ms": "500", "task.shutdown.graceful.timeout.ms": "5000"}


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


@pytest.fixture
def sequences(kafka_broker: SharedBroker, tmp_path: Path) -> Sequences:
    return Sequences(kafka_broker.bootstrap_servers, tmp_path)


@pytest.fixture
def own_topic() -> str:
    return unique_name("own-offsets")


class OffsetTopics:
    """What is in offset topics of one cluster, for readers of committed records."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def records(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """Keys and values, in order within a partition; empty without a topic."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap_servers,
                "group.id": unique_name("readers"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        try:
            metadata = consumer.list_topics(topic, timeout=10).topics[topic]
            waiting = set(metadata.partitions)
            consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in waiting])
            found: list[tuple[bytes, bytes | None]] = []
            while waiting:
                message = consumer.poll(10)
                assert message is not None, f"the end of {topic} was not reached"
                error = message.error()
                if error is None:
                    found.append((message.key() or b"", message.value()))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard(message.partition())
            return found
        finally:
            consumer.close()

    def live(self, topic: str) -> dict[bytes, Any]:
        """What compaction would leave of a topic, values decoded."""
        entries: dict[bytes, Any] = {}
        for key, value in self.records(topic):
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = json.loads(value)
        return entries

    def settings(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        entries = admin.describe_configs([resource])[resource].result(10)
        return {name: entry.value for name, entry in entries.items()}

    def partitions(self, topic: str) -> int:
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        return len(admin.list_topics(topic, timeout=10).topics[topic].partitions)

    def write(self, topic: str, key: bytes, value: bytes) -> None:
        producer = Producer(
            {"bootstrap.servers": self._bootstrap_servers, "partitioner": "murmur2_random"}
        )
        producer.produce(topic, value, key)
        assert producer.flush(30) == 0


@pytest.fixture
def topics(kafka_broker: SharedBroker) -> OffsetTopics:
    return OffsetTopics(kafka_broker.bootstrap_servers)


def key_of(connector: str, number: int = 0) -> bytes:
    return json.dumps([connector, {"number": str(number)}], separators=(",", ":")).encode()


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_offsets_are_in_the_own_topic_and_copied_to_the_workers(
    agents: Agents, sequences: Sequences, topics: OffsetTopics, own_topic: str, support: str
) -> None:
    """The topic is made as the worker's settings say; a restarted task goes on from it."""
    group = unique_name("own")
    properties = {
        **QUICK,
        SUPPORT: support,
        "offset.storage.partitions": "3",
        "offset.storage.segment.ms": "7654321",
    }
    agent = agents.start(group_id=group, properties=properties)
    config = {
        **sequences.config(),
        "exactly.once.support": "requested",
        "offsets.storage.topic": own_topic,
    }
    agent.create("numbers", config)
    agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.allow(30)
    sequences.check(30)
    last = {key_of("numbers"): {"last": 30}}
    eventually(lambda: topics.live(own_topic) == last, WAIT_S, lambda: topics.live(own_topic))
    worker_topic = f"{group}-offsets"
    eventually(lambda: topics.live(worker_topic) == last, WAIT_S)
    settings = topics.settings(own_topic)
    assert (settings["cleanup.policy"], settings["segment.ms"]) == ("compact", "7654321")
    assert topics.partitions(own_topic) == 3
    assert agent.call("POST", "/connectors/numbers/tasks/0/restart").status == 204
    sequences.allow(50)
    sequences.check(50)


def test_rest_shows_the_own_topics_offsets_before_the_workers(
    agents: Agents, topics: OffsetTopics, own_topic: str, tmp_path: Path
) -> None:
    """A partition that only the worker's topic has shows through; a newer own value wins."""
    group = unique_name("own")
    agent = agents.start(group_id=group, properties=QUICK)
    lines = tmp_path / "lines"
    append_lines(lines, 1, 5)
    config = source_config(lines, unique_name("lines"), offsets_storage_topic=own_topic)
    agent.create("file", config)
    key = json.dumps(["file", {"filename": str(lines)}], separators=(",", ":")).encode()
    size = lines.stat().st_size
    eventually(lambda: topics.live(f"{group}-offsets") == {key: {"position": size}}, WAIT_S)
    assert topics.live(own_topic) == {key: {"position": size}}
    topics.write(f"{group}-offsets", key, b'{"position":3}')
    topics.write(f"{group}-offsets", b'["file",{"filename":"other"}]', b'{"position":9}')
    shown = agent.get("/connectors/file/offsets")["offsets"]
    found = {entry["partition"]["filename"]: entry["offset"]["position"] for entry in shown}
    assert found == {str(lines): size, "other": 9}
