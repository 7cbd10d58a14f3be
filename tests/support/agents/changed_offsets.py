"""Connectors whose offsets are changed on agents: numbers of a source, lines of a sink."""

import json
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its __init__ has no __all__

from tests.support.agents.agent import Agent, Agents, line_count
from tests.support.agents.rest_client import JSON, Answer, call_url
from tests.support.audits.sequences import Sequences
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.offset_hooks import HOOK_SINK, HOOK_SOURCE
from tests.support.servers.topics import OffsetTopic

WAIT_S = 150
LINES = 10
PARTITIONS = 3
SUPPORT = "exactly.once.source.support"
QUICK = {"offset.flush.interval.ms": "500"}
SEGMENT_MS = "7654321"
ALTERED = "The offsets for this connector have been altered successfully"
RESET = "The offsets for this connector have been reset successfully"


class Worker:
    """An agent in a group of its own, and its offsets topic."""

    def __init__(self, agents: Agents, bootstrap_servers: str, support: str) -> None:
        group = unique_name(f"offsets-{support}")
        properties = {
            **QUICK,
            SUPPORT: support,
            "task.shutdown.graceful.timeout.ms": "5000",
            "offset.storage.partitions": "3",
            "offset.storage.segment.ms": SEGMENT_MS,
        }
        self.agent: Agent = agents.start(group_id=group, properties=properties)
        self.offsets = OffsetTopic(bootstrap_servers, f"{group}-offsets")


class Numbers:
    """A connector of numbers on a worker, stored up to 10 in each of its two partitions."""

    def __init__(self, worker: Worker, sequences: Sequences, topic: OffsetTopic, **more: str):
        self.agent = worker.agent
        self.name = unique_name("numbers")
        self.topic = topic
        self.sequences = sequences
        self.config = {
            **sequences.config(tasks=2),
            "connector.class": HOOK_SOURCE,
            "exactly.once.support": "requested",
            "hook": "true",
            **more,
        }
        if topic is not worker.offsets:
            self.config["offsets.storage.topic"] = topic.name
        self.path = f"/connectors/{self.name}/offsets"

    def create(self, **members: str) -> None:
        self.agent.create(self.name, self.config, **members)

    def run(self, limit: int) -> None:
        self.sequences.allow(limit)
        eventually(
            lambda: self.positions() == [limit, limit],
            WAIT_S,
            lambda: self.agent.call("GET", self.path).text,
        )

    def positions(self) -> list[int]:
        """Return the stored positions, in order."""
        found = self.agent.call("GET", self.path)
        if found.status != 200:
            return []
        return sorted(entry["offset"]["last"] for entry in found.json()["offsets"])

    def stored(self, topic: OffsetTopic | None = None) -> list[int]:
        """Return the stored positions of its own or another offsets topic, in order."""
        live = (topic or self.topic).live()
        return sorted(v["last"] for k, v in live.items() if json.loads(k)[0] == self.name)

    def stop(self) -> None:
        assert self.agent.call("PUT", f"/connectors/{self.name}/stop").status == 204
        self.agent.wait_for_states(self.name, "STOPPED")

    def resume(self) -> None:
        assert self.agent.call("PUT", f"/connectors/{self.name}/resume").status == 202

    def alter(self, *positions: int | None) -> Answer:
        """Alter the offsets of partitions 0, 1 … to these positions."""
        return self.send(
            {
                "offsets": [
                    {
                        "partition": {"number": str(number)},
                        "offset": None if position is None else {"last": position},
                    }
                    for number, position in enumerate(positions)
                ]
            }
        )

    def send(self, body: object) -> Answer:
        return self.agent.call("PATCH", self.path, body)

    def send_text(self, text: str) -> Answer:
        return call_url(self.agent.url, "PATCH", self.path, text, JSON)

    def reset(self) -> Answer:
        return self.agent.call("DELETE", self.path)


class Groups:
    """Consumer groups as Kafka's own admin client reports them."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def committed(self, group: str) -> dict[int, int]:
        """Return the positions by partition; empty if the group does not exist."""
        request = ConsumerGroupTopicPartitions(group)
        try:
            found = self._admin.list_consumer_group_offsets([request])[group].result(30)
        except KafkaException:
            return {}
        return {one.partition: one.offset for one in found.topic_partitions if one.offset >= 0}

    def names(self) -> set[str]:
        return {group.group_id for group in self._admin.list_consumer_groups().result(30).valid}

    def fill(self, topic: str) -> None:
        """Create a topic and write `LINES` lines to each partition."""
        self._admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        producer = Producer({"bootstrap.servers": self.bootstrap_servers})
        for partition in range(PARTITIONS):
            for number in range(LINES):
                producer.produce(topic, f"{partition}-{number}", partition=partition)
        assert producer.flush(30) == 0


class Sink:
    """A connector that has read all lines of its topic and is stopped."""

    def __init__(
        self,
        agent: Agent,
        groups: Groups,
        directory: Path,
        *,
        name: str | None = None,
        topic: str | None = None,
        **settings: str,
    ) -> None:
        self.agent = agent
        self.groups = groups
        self.name = name or unique_name("sink")
        self.group = settings.get("consumer.override.group.id", f"connect-{self.name}")
        self.topic = topic or unique_name("lines")
        self.file = directory / "out.txt"
        groups.fill(self.topic)
        topics = {} if "topics.regex" in settings else {"topics": self.topic}
        config = {
            "connector.class": HOOK_SINK,
            "file": str(self.file),
            "hook": "true",
            **topics,
            **settings,
        }
        if "topics.regex" in settings:
            config["topics.regex"] = f"{self.topic}.*"
        agent.create(self.name, config)
        self.path = f"/connectors/{self.name}/offsets"
        self.wait_until_read(PARTITIONS * LINES)
        self.stop()

    def wait_until_read(self, lines: int) -> None:
        eventually(lambda: line_count(self.file) == lines, WAIT_S, lambda: line_count(self.file))

    def stop(self) -> None:
        assert self.agent.call("PUT", f"/connectors/{self.name}/stop").status == 204
        self.agent.wait_for_states(self.name, "STOPPED")
        eventually(lambda: self.committed() == dict.fromkeys(range(PARTITIONS), LINES), WAIT_S)

    def committed(self) -> dict[int, int]:
        return self.groups.committed(self.group)

    def alter(self, *positions: int | None, topic: str | None = None) -> Answer:
        """Alter the offsets of partitions 0, 1 … to these positions."""
        entries = [
            {
                "partition": {"kafka_topic": topic or self.topic, "kafka_partition": partition},
                "offset": None if position is None else {"kafka_offset": position},
            }
            for partition, position in enumerate(positions)
        ]
        return self.agent.call("PATCH", self.path, {"offsets": entries})

    def reset(self) -> Answer:
        return self.agent.call("DELETE", self.path)
