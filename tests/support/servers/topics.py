"""Topics of a real broker: made, written, read to their ends."""

from collections.abc import Iterable, Mapping, Sequence
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
from confluent_kafka.admin import AdminClient, NewTopic

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
    """With one partition there is one order to be seen. Return when brokers name them."""
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
    """Write records; `arguments` are those of the client's `produce`, for each of them."""
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for value in values:
        producer.produce(topic, value, **arguments)
    assert producer.flush(ANSWER_S) == 0


def partitions_of(bootstrap_servers: str, topic: str) -> Sequence[int]:
    """Return the numbers of the partitions."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    return sorted(admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions)


def open_records(bootstrap_servers: str, topic: str, partition: int = 0) -> int:
    """Return how many records readers of committed ones must wait for: of open transactions."""
    every, stable = (
        ends_of(bootstrap_servers, topic, [partition], committed=committed)[partition]
        for committed in (False, True)
    )
    return every - stable


def ends_of(
    bootstrap_servers: str, topic: str, partitions: Iterable[int], *, committed: bool
) -> dict[int, int]:
    """Return the end of each partition, with `committed` that of readers of committed records."""
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
    """Every record there is, in order within a partition; no aborted ones if `committed`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": unique_name("readers"),
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            # The end is told by an answer without records, which a broker holds back so long.
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
    """Of a consumer group; negative when there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": group})
    try:
        (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=ANSWER_S)
        return int(found.offset)
    except KafkaException:
        return -1
    finally:
        consumer.close()


def coordinator_partition(name: str, partitions: int) -> int:
    """Return where brokers keep the state of a group or transactional id: Java's hash."""
    code = 0
    for character in name:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % partitions
