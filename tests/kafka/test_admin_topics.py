"""Questions about topics that are not there, on a broker that creates topics when it is asked."""

import pytest
from confluent_kafka import Producer

from pyconnect_agent.kafka.admin import Admin
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka


def test_asking_for_a_topic_does_not_create_it(kafka_broker: SharedBroker) -> None:
    """As Java's admin client: a topic made so would have the broker's settings, not Connect's."""
    settings = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    admin = Admin(settings)
    asked_for, produced_to = unique_name("asked-for"), unique_name("produced-to")
    assert admin.partition_count(asked_for, 10_000) == 0
    # The broker does create topics: what a producer asks for is there in the end.
    Producer(settings).list_topics(produced_to, timeout=400)
    eventually(lambda: produced_to in admin.topic_names(10_000))
    assert asked_for not in admin.topic_names(10_000)
