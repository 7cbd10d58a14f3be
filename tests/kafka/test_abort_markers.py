"""The counting of aborted transactions in tests, beside transactions with a known end."""

import pytest
from confluent_kafka import Producer

from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import aborted_transactions, create_topics, open_records

pytestmark = pytest.mark.kafka


def test_aborted_transactions_are_counted(kafka_broker: SharedBroker) -> None:
    """Each once, with a marker in each of its topics; neither committed nor open ones."""
    bootstrap, topics = kafka_broker.bootstrap_servers, [unique_name("t"), unique_name("t")]
    create_topics(bootstrap, topics, partitions=2)
    name = unique_name("producer")
    for ending in ("commit", "abort", "commit", "abort", "open"):
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        for topic in topics:
            producer.produce(topic, b"x", partition=1)
        assert producer.flush(30) == 0
        if ending != "open":
            getattr(producer, f"{ending}_transaction")(30)
    assert aborted_transactions(bootstrap, topics) == 2
    assert open_records(bootstrap, topics[0], 1) == 1
    assert open_records(bootstrap, topics[0], 0) == 0
    producer.abort_transaction(30)
    assert aborted_transactions(bootstrap, topics) == 3
