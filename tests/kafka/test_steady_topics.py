"""The command line reads topics that are written all the time, as busy sources' offsets are."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from pyconnect_cli.kafka.offset_topics import OffsetsTopics
from pyconnect_cli.upgrade.cluster.broker_facts import aborted_offsets
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker


@contextmanager
def steady_writer(bootstrap_servers: str, topic: str, key: bytes, value: bytes) -> Iterator[None]:
    """Commit one record after the other while the block runs; the first is there before it."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "transactional.id": unique_name("steady")}
    )
    producer.init_transactions(30)
    enough = threading.Event()

    def commit_one() -> None:
        producer.begin_transaction()
        producer.produce(topic, value, key)
        producer.commit_transaction(30)

    def commit_on() -> None:
        while not enough.is_set():
            commit_one()

    commit_one()
    thread = threading.Thread(target=commit_on)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()


pytestmark = pytest.mark.kafka

KEY = b'["busy",{"file":"a"}]'


@pytest.fixture
def busy_topic(kafka_broker: SharedBroker) -> Iterator[str]:
    topic = unique_name("offsets")
    with steady_writer(kafka_broker.bootstrap_servers, topic, KEY, b'{"position":1}'):
        yield topic


def test_offsets_of_a_running_source_are_not_taken_for_aborted(
    kafka_broker: SharedBroker, busy_topic: str
) -> None:
    """Neither one whose transaction is open when the topic is read, nor one committed meanwhile."""
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    assert [aborted_offsets(settings, busy_topic) for _ in range(3)] == [()] * 3


def test_stored_offsets_are_read_while_sources_write(
    kafka_broker: SharedBroker, busy_topic: str
) -> None:
    """Reading ends where the topic ended when it began."""
    topics = OffsetsTopics({"bootstrap.servers": kafka_broker.bootstrap_servers}, lambda: 60.0)
    assert [place.key for place in topics.read([busy_topic])] == [KEY]
