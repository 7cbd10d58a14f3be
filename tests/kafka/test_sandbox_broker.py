"""The sandbox's broker is a real one that can be stopped, killed, frozen and started again."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from tests.support.eventually import eventually
from tests.support.kafka import Servers, SharedBroker

from pyconnect_cli.sandbox.broker import answers_metadata

pytestmark = pytest.mark.kafka


def produce(bootstrap_servers: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def consume_one(bootstrap_servers: str, topic: str) -> bytes | None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe([topic])
        message = eventually(lambda: consumer.poll(0.5), timeout_s=30, describe="a record")
        assert message is not None
        assert message.error() is None
        return message.value()
    finally:
        consumer.close()


def test_the_shared_broker_answers(kafka_broker: SharedBroker) -> None:
    """The session's broker answers a metadata request."""
    assert answers_metadata(kafka_broker.bootstrap_servers, timeout_s=10)


def test_records_survive_a_stop_and_a_kill_on_the_same_port(servers: Servers) -> None:
    """A broker that is restarted, or killed and started, serves its records at its address."""
    broker = servers.broker()
    address = broker.bootstrap_servers
    produce(address, "kept", b"before the stop")

    assert broker.restart().bootstrap_servers == address
    assert consume_one(address, "kept") == b"before the stop"
    broker.kill()
    assert not answers_metadata(address, timeout_s=0.5)
    broker.start()

    assert broker.bootstrap_servers == address
    assert AdminClient({"bootstrap.servers": address}).list_topics("kept", 10).topics["kept"]
    produce(address, "kept", b"after the kill")
