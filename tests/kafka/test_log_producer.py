"""Writes to internal topics that are larger than what the client queues."""

import pytest

from pyconnect_agent.core.errors import KafkaError, RetriableKafkaError
from pyconnect_agent.core.internal_topics.log_record import LogRecord
from pyconnect_agent.kafka.producer import LogProducer
from pyconnect_sandbox.ports import free_port
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import OffsetTopic

pytestmark = pytest.mark.kafka

SMALL_QUEUE = {"queue.buffering.max.messages": 10}
RECORDS = [LogRecord(b"%d" % number, b"1") for number in range(500)]


def test_a_batch_larger_than_the_clients_queue_is_written_whole(kafka_broker: SharedBroker) -> None:
    """As a reset of very many offsets is."""
    topic = OffsetTopic(kafka_broker.bootstrap_servers, unique_name("batches"))
    config = {"bootstrap.servers": kafka_broker.bootstrap_servers, **SMALL_QUEUE}
    producer = LogProducer(topic.name, config, "writes")
    producer.write(RECORDS, 60_000)
    producer.stop(10_000)
    assert len(topic.records()) == len(RECORDS)


def test_a_record_may_be_as_large_as_a_java_workers(kafka_broker: SharedBroker) -> None:
    """A config that a Java worker has written can be written again; a larger one is refused."""
    topic = OffsetTopic(kafka_broker.bootstrap_servers, unique_name("large"))
    producer = LogProducer(
        topic.name, {"bootstrap.servers": kafka_broker.bootstrap_servers}, "writes"
    )
    producer.write([LogRecord(b"key", b"v" * 1_048_000)], 60_000)
    with pytest.raises(KafkaError, match="MSG_SIZE_TOO_LARGE"):
        producer.write([LogRecord(b"key", b"v" * 1_048_576)], 60_000)
    producer.stop(10_000)
    assert len(topic.records()) == 1


def test_a_batch_waits_for_room_until_its_deadline() -> None:
    """No thread takes records out of the queue."""
    config = {"bootstrap.servers": f"127.0.0.1:{free_port()}", **SMALL_QUEUE}
    producer = LogProducer("nowhere", config, "writes")
    with pytest.raises(RetriableKafkaError):
        producer.write(RECORDS, 300)
    producer.stop(0)
