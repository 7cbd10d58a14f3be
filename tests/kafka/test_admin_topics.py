"""Questions about topics that are not there, on a broker that creates topics when it is asked."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from pyconnect_agent.kafka.admin import Admin
from tests.support.eventually import eventually
from tests.support.kafka import Servers

pytestmark = pytest.mark.kafka


def test_asking_for_a_topic_does_not_create_it(servers: Servers) -> None:
    """As Java's admin client: a topic made so would have the broker's settings, not Connect's."""
    broker = servers.broker(properties={"auto.create.topics.enable": "true"})
    settings = {"bootstrap.servers": broker.bootstrap_servers}
    admin = Admin(settings)
    assert admin.partition_count("asked-for", 10_000) == 0
    # The broker does create topics: what a producer asks for is there in the end.
    Producer(settings).list_topics("produced-to", timeout=60)
    eventually(lambda: "produced-to" in admin.topic_names(10_000))
    assert "asked-for" not in admin.topic_names(10_000)
