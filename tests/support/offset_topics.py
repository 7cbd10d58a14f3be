"""Offset topics as readers of committed records see them, and as Java workers write them."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition

from tests.support.names import unique_name

READ_S = 10
WRITE_S = 30


class OffsetTopic:
    """One topic; every method reads or writes it anew."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self._bootstrap_servers = bootstrap_servers
        self.name = name

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Keys and values, in order within a partition."""
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
            waiting = set(
                consumer.list_topics(self.name, timeout=READ_S).topics[self.name].partitions
            )
            consumer.assign([TopicPartition(self.name, n, OFFSET_BEGINNING) for n in waiting])
            found: list[tuple[bytes, bytes | None]] = []
            while waiting:
                message = consumer.poll(READ_S)
                assert message is not None, f"the end of {self.name} was not reached"
                error = message.error()
                if error is None:
                    found.append((message.key() or b"", message.value()))
                else:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard(message.partition())
            return found
        finally:
            consumer.close()

    def live(self) -> dict[bytes, Any]:
        """What compaction would leave, values decoded."""
        entries: dict[bytes, Any] = {}
        for key, value in self.records():
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = json.loads(value)
        return entries

    def write(self, key: bytes, value: bytes) -> None:
        """Write as a Java worker would."""
        producer = Producer(
            {"bootstrap.servers": self._bootstrap_servers, "partitioner": "murmur2_random"}
        )
        producer.produce(self.name, value, key)
        assert producer.flush(WRITE_S) == 0
