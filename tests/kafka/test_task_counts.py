"""Task count records as the command line reads them from a config topic (KIP-618)."""

import pytest
from confluent_kafka import Producer

from pyconnect_cli.errors import NotFound
from pyconnect_cli.kafka.reader import task_counts
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import open_records

pytestmark = pytest.mark.kafka


def test_the_last_committed_count_of_each_connector(kafka_broker: SharedBroker) -> None:
    """Deleting a connector leaves its count; aborted and unreadable records count for nothing."""
    topic = unique_name("configs")
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    producer = Producer({**settings, "transactional.id": unique_name("t")})
    producer.init_transactions(30)
    transactions: list[list[tuple[str, str | None]]] = [
        [
            ("tasks-fencing-shrunk", '{"task-count":10}'),
            ("tasks-fencing-deleted", '{"task-count":3}'),
            ("connector-deleted", None),
            ("tasks-fencing-torn", '{"task-'),
            ("connector-shrunk", "{}"),
        ],
        [("tasks-fencing-shrunk", '{"task-count":99}')],
        [("tasks-fencing-other", '{"task-count":1}')],
    ]
    for number, records in enumerate(transactions):
        producer.begin_transaction()
        for key, value in records:
            producer.produce(topic, value, key)
        producer.flush(30)
        if number == 1:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    eventually(lambda: open_records(kafka_broker.bootstrap_servers, topic) == 0)
    assert task_counts(settings, topic) == {"shrunk": 10, "deleted": 3, "other": 1}
    with pytest.raises(NotFound):
        task_counts(settings, unique_name("none"))
