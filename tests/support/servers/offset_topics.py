"""Offset topics as their readers see them, and as other workers write them."""

import json
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __init__ has no __all__
    AdminClient,
    ConfigResource,
    NewTopic,
)

from tests.support.servers.topics import ANSWER_S, ends_of, partitions_of, read_topic


class OffsetTopics:
    """Contents of offset topics of one cluster, for readers of committed records."""

    def __init__(self, bootstrap_servers: str) -> None:
        self._bootstrap_servers = bootstrap_servers

    def records(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """Keys and values, in order within a partition; empty without a topic."""
        found = read_topic(self._bootstrap_servers, topic, committed=True)
        return [(record.key() or b"", record.value()) for record in found]

    def live(self, topic: str) -> dict[bytes, Any]:
        """Return the records that compaction would leave of a topic, values decoded."""
        entries: dict[bytes, Any] = {}
        for key, value in self.records(topic):
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = json.loads(value)
        return entries

    def end(self, topic: str) -> int:
        """Return the number of offsets in all partitions, those of open transactions included."""
        partitions = partitions_of(self._bootstrap_servers, topic)
        return sum(ends_of(self._bootstrap_servers, topic, partitions, committed=False).values())

    def settings(self, topic: str) -> Mapping[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        entries = admin.describe_configs([resource])[resource].result(ANSWER_S)
        return {name: entry.value for name, entry in entries.items()}

    def partitions(self, topic: str) -> int:
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        return len(admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions)

    def create(self, topic: str, **settings: str) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap_servers})
        config = {"cleanup.policy": "compact", **settings}
        admin.create_topics([NewTopic(topic, 3, 1, config=config)])[topic].result(ANSWER_S)

    def write(self, topic: str, key: bytes, value: bytes, timestamp_ms: int = 0) -> None:
        """Write as a Java worker would; `timestamp_ms` 0 is now."""
        producer = Producer(
            {"bootstrap.servers": self._bootstrap_servers, "partitioner": "murmur2_random"}
        )
        producer.produce(topic, value, key, timestamp=timestamp_ms)
        assert producer.flush(ANSWER_S) == 0


class OffsetTopic:
    """One of them."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self._topics = OffsetTopics(bootstrap_servers)
        self.name = name

    def records(self) -> list[tuple[bytes, bytes | None]]:
        return self._topics.records(self.name)

    def live(self) -> dict[bytes, Any]:
        return self._topics.live(self.name)

    def end(self) -> int:
        return self._topics.end(self.name)

    def write(self, key: bytes, value: bytes) -> None:
        self._topics.write(self.name, key, value)
