"""Questions about topics whose leaders have moved since the client last looked."""

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_agent.core.errors import RetriableKafkaError
from pyconnect_agent.kafka.admin import Admin
from pyconnect_sandbox.broker import KafkaBroker
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import KafkaCluster, Servers

pytestmark = pytest.mark.kafka

WAIT_S = 150


def leader_of(client: AdminClient, topic: str) -> int:
    """-1 while there is none, or while the broker that was asked is the one that stops."""
    try:
        partitions = client.list_topics(topic, timeout=400).topics[topic].partitions
    except KafkaException:
        return -1
    return int(partitions[0].leader) if 0 in partitions else -1


def node(cluster: KafkaCluster, node_id: int) -> KafkaBroker:
    return next(broker for broker in cluster.brokers if broker.config.node_id == node_id)


@pytest.mark.long(only=True)
def test_offsets_are_found_after_the_leader_has_moved(servers: Servers) -> None:
    """Soon, not when librdkafka's knowledge of the leaders expires; all brokers are up again.

    The cluster of three goes on without one of them meanwhile.
    """
    cluster = servers.cluster(3)
    topic = unique_name("moving")
    client = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    client.create_topics([NewTopic(topic, 1, 3)])[topic].result(30)
    admin = Admin({"bootstrap.servers": cluster.bootstrap_servers})

    def answers() -> bool:
        try:
            return admin.end_offsets(topic, [0], 5_000) == {0: 0}
        except RetriableKafkaError:
            return False

    eventually(answers, WAIT_S)
    before = eventually(lambda: max(leader_of(client, topic), 0), WAIT_S, "a leader")
    node(cluster, before).stop()
    eventually(lambda: leader_of(client, topic) not in (before, -1), WAIT_S)
    node(cluster, before).start()
    eventually(answers)
