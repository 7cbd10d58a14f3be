"""The order of an at-least-once source's records in topics that were just created.

A broker may say that it leads a new partition before it accepts records for it. librdkafka, whose
next request is made before the last one is answered, then wrote record 1 behind record 10: in one
of a few hundred topics, more often on a busy machine.
"""

from collections.abc import Iterator

import pytest

from pyconnect_agent.core.clients.configs import connector_producer, producers_admin
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.kafka.admin import Admin
from pyconnect_agent.kafka.task_producer import TaskProducer
from pyconnect_sandbox.connect_worker import worker_properties
from tests.agent.tasks.source.source_loop import Source, record
from tests.support.names import unique_name
from tests.support.seeds import LONG, chosen
from tests.support.servers.kafka import Servers
from tests.support.servers.topics import create_topics, delete_topics, read_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(1000)]

TOPICS = 600 if LONG else 20
TOPICS_OF_A_TASK = 20
RECORDS = 10
WAIT_S = 150


@pytest.fixture(scope="module")
def bootstrap(module_servers: Servers) -> str:
    """Of a broker of its own, as others would wait for it."""
    return module_servers.broker().bootstrap_servers


@pytest.fixture
def producer(bootstrap: str) -> Iterator[TaskProducer]:
    """The one of a source task."""
    worker = DistributedConfig.parse(worker_properties(bootstrap, "order"))
    config = connector_producer(worker, {}, "order").build().properties
    made = TaskProducer(config, lambda: Admin(producers_admin(worker, {}, "a").build().properties))
    yield made
    made.close(0)


@pytest.mark.parametrize("takes_runs", [True, False])
@pytest.mark.parametrize("partitions", chosen([12], long=[1]))
@pytest.mark.parametrize("task", range(TOPICS // TOPICS_OF_A_TASK))
def test_records_are_in_order_in_a_topic_just_created(
    bootstrap: str,
    producer: TaskProducer,
    task: int,
    partitions: int,
    *,
    takes_runs: bool,
) -> None:
    """One request in flight, no idempotence: Kafka Connect's settings."""
    source = Source(producer=producer)
    source.sender.takes_runs = takes_runs
    topics = [unique_name(f"new-{task}") for _ in range(TOPICS_OF_A_TASK)]
    everywhere = [(number, part) for number in range(RECORDS) for part in range(partitions)]
    for topic in topics:
        create_topics(bootstrap, [topic], partitions=partitions)
        source.poll(*(record(n, topic=topic, kafka_partition=part) for n, part in everywhere))
    assert producer.drain(WAIT_S, until=lambda: producer.in_flight() == 0)
    for topic in topics:
        found: dict[int, list[bytes]] = {}
        for each in read_topic(bootstrap, topic):
            found.setdefault(each.partition() or 0, []).append(each.value() or b"")
        in_order = [f"v{number}".encode() for number in range(RECORDS)]
        assert found == dict.fromkeys(range(partitions), in_order), topic
    delete_topics(bootstrap, topics)
