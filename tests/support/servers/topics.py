"""Topics of a real broker: creation, writes, reads to the end; offsets and aborted transactions.

Consumers never show the markers of transactions: kafka-python's classes read the log's batches.
"""

import json
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic  # type: ignore[attr-defined]  # its __init__ has no __all__
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords

from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_clients.brokers.protocol import KafkaProtocol
from tests.support.eventually import eventually
from tests.support.names import unique_name

ANSWER_S = 60


def create_topics(
    bootstrap_servers: str,
    topics: Sequence[str],
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
) -> None:
    """Create topics, by default with one partition (one order); wait until brokers name them."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    new = [NewTopic(topic, partitions, 1, config=dict(config or {})) for topic in topics]
    for future in admin.create_topics(new).values():
        future.result(ANSWER_S)
    eventually(lambda: are_there(admin, topics))


def are_there(admin: AdminClient, topics: Iterable[str]) -> bool:
    return admin.list_topics(timeout=ANSWER_S).topics.keys() >= {*topics}


def delete_topics(bootstrap_servers: str, topics: Sequence[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    for future in admin.delete_topics(list(topics)).values():
        future.result(ANSWER_S)


def recreate_topic(bootstrap_servers: str, topic: str) -> None:
    """Delete a topic and create it again; return when brokers name the new one."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def is_created() -> bool:
        try:
            create_topics(bootstrap_servers, [topic])
        except KafkaException:
            return False
        return True

    delete_topics(bootstrap_servers, [topic])
    eventually(lambda: not are_there(admin, [topic]))
    eventually(is_created)


def produce(bootstrap_servers: str, topic: str, *values: bytes, **arguments: Any) -> None:
    """Write records; `arguments` of the client's `produce` are the same for each."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in values:
        producer.produce(topic, value, **arguments)
    assert producer.flush(ANSWER_S) == 0


def partitions_of(bootstrap_servers: str, topic: str) -> Sequence[int]:
    """Return the numbers of the partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    return sorted(admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions)


def open_records(bootstrap_servers: str, topic: str, partition: int = 0) -> int:
    """Return how many records of open transactions readers of committed records wait for."""
    every, stable = (
        ends_of(bootstrap_servers, topic, [partition], committed=committed)[partition]
        for committed in (False, True)
    )
    return every - stable


def ends_of(
    bootstrap_servers: str, topic: str, partitions: Iterable[int], *, committed: bool
) -> dict[int, int]:
    """Return the end of each partition; `committed`: the end for readers of committed records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": unique_name("readers"),
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
    )
    try:
        return {
            number: consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_S)[1]
            for number in partitions
        }
    finally:
        consumer.close()


def read_topic(bootstrap_servers: str, topic: str, *, committed: bool = False) -> list[Message]:
    """Return every record, in order within a partition; with `committed` no aborted ones."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": unique_name("readers"),
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # An answer without records marks the end; a broker delays it by this time.
            "fetch.wait.max.ms": 20,
        }
    )
    try:
        waiting = set(consumer.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, n, OFFSET_BEGINNING) for n in waiting])
        found: list[Message] = []
        while waiting:
            message = consumer.poll(ANSWER_S)
            assert message is not None, f"the end of {topic} was not reached"
            error = message.error()
            if error is None:
                found.append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                waiting.discard(message.partition())
        return found
    finally:
        consumer.close()


def committed_offset(bootstrap_servers: str, group: str, topic: str, partition: int = 0) -> int:
    """Return a consumer group's committed offset; negative when there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=ANSWER_S)
        return int(found.offset)
    except KafkaException:
        return -1
    finally:
        consumer.close()


def coordinator_partition(name: str, partitions: int) -> int:
    """Return the partition with the state of a group or transactional id, by Java's hash."""
    code = 0
    for character in name:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partitions


_BY_TOPIC_NAME = 12
"""The last version of the request that names topics; later ones have ids."""
_MANY_BYTES = 8_000_000
_ABORT = 0


def aborted_transactions(bootstrap_servers: str, topics: Iterable[str]) -> int:
    """Count the transactions of these topics that ended with an abort.

    The markers of one producer and epoch count as one transaction: it has one in each partition.
    That is right for transactions that end with their producer, not for those that a task aborts.
    """
    found: set[tuple[int, int]] = set()
    with connected(KafkaAccess(bootstrap=bootstrap_servers), lambda: ANSWER_S) as protocol:
        for topic in topics:
            for partition in partitions_of(bootstrap_servers, topic):
                found |= {
                    (batch.producer_id, batch.producer_epoch)
                    for batch in _batches(protocol, topic, partition)
                    if batch.is_control_batch and _is_abort(batch)
                }
    return len(found)


def _is_abort(batch: Any) -> bool:
    """Return whether a marker's key (version, type: 0 abort, 1 commit; both int16) is an abort."""
    (marker,) = batch
    return struct.unpack(">hh", marker.key[:4])[1] == _ABORT


def _batches(protocol: KafkaProtocol, topic: str, partition: int) -> Iterator[Any]:
    offset = 0
    while True:
        answer = _fetch(protocol, topic, partition, offset)
        if answer.error_code:
            raise AssertionError(f"{topic}-{partition} at {offset}: error {answer.error_code}")
        records = MemoryRecords(bytes(answer.records or b""))
        if not records.has_next():
            return
        while (batch := records.next_batch()) is not None:
            offset = batch.base_offset + batch.last_offset_delta + 1
            yield batch


def _fetch(protocol: KafkaProtocol, topic: str, partition: int, offset: int) -> Any:
    place = FetchRequest.FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=_MANY_BYTES
    )
    request = FetchRequest(
        max_wait_ms=20,
        min_bytes=0,
        max_bytes=_MANY_BYTES,
        isolation_level=0,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[place])],
        max_version=_BY_TOPIC_NAME,
    )
    # The broker of a test is the only one: it leads every partition.
    answer = protocol.send(f"read {topic}", request, protocol.brokers()[0])
    return answer.responses[0].partitions[0]


class OffsetTopic:
    """Contents of an offsets topic, for readers of committed records."""

    def __init__(self, bootstrap_servers: str, name: str) -> None:
        self.name = name
        self._bootstrap_servers = bootstrap_servers
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers})

    def records(self) -> list[tuple[bytes, bytes | None]]:
        """Return keys and values, in order within a partition; empty without a topic."""
        found = read_topic(self._bootstrap_servers, self.name, committed=True)
        return [(record.key() or b"", record.value()) for record in found]

    def live(self, connector: str | None = None) -> dict[bytes, Any]:
        """Return the records that compaction would leave, of all or one connector, decoded."""
        entries: dict[bytes, Any] = {}
        for key, value in self.records():
            if connector not in (None, json.loads(key)[0]):
                continue
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = json.loads(value)
        return entries

    def end(self) -> int:
        """Return the number of offsets in all partitions, those of open transactions included."""
        place = self._bootstrap_servers, self.name
        return sum(ends_of(*place, partitions_of(*place), committed=False).values())

    def settings(self) -> Mapping[str, str]:
        resource = ConfigResource(ConfigResource.Type.TOPIC, self.name)
        entries = self._admin.describe_configs([resource])[resource].result(ANSWER_S)
        return {name: entry.value for name, entry in entries.items()}

    def partitions(self) -> int:
        return len(partitions_of(self._bootstrap_servers, self.name))

    def create(self, **settings: str) -> None:
        new = NewTopic(self.name, 3, 1, config={"cleanup.policy": "compact", **settings})
        self._admin.create_topics([new])[self.name].result(ANSWER_S)

    def write(self, key: bytes, value: bytes, timestamp_ms: int = 0) -> None:
        """Write as a Java worker does; `timestamp_ms` 0 means now."""
        producer = Producer(
            {"bootstrap.servers": self._bootstrap_servers, "partitioner": "murmur2_random"}
        )
        producer.produce(self.name, value, key, timestamp=timestamp_ms)
        assert producer.flush(ANSWER_S) == 0
