"""More requests at once than kafka-python takes by default: it would fail the sixth to a broker."""

import pytest
from kafka.protocol.metadata import MetadataRequest

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_cli.kafka.admin import KafkaAccess, connected
from pyconnect_clients.acls.model import (
    Access,
    GrantOperation,
    GrantVerdict,
    Resource,
    ResourceType,
)
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

MANY = 250


def test_the_ids_of_many_tasks_are_probed(kafka_broker: SharedBroker) -> None:
    """Each is answered; without an authorizer everything is allowed."""
    needs = [
        Access(
            GrantOperation.WRITE,
            Resource(ResourceType.TRANSACTIONAL_ID, unique_name("never-used")),
        )
        for _ in range(MANY)
    ]
    java = {"bootstrap.servers": kafka_broker.bootstrap_servers}
    with AclProbes(kafka_python_config(java, client_id="probe"), 30_000) as probes:
        answers = probes.ask(needs)
    assert {verdict for verdict, _ in answers.values()} == {GrantVerdict.PROVEN}, answers
    assert len(answers) == MANY


def test_the_command_line_asks_one_broker_much(kafka_broker: SharedBroker) -> None:
    """Answers come in the order of the requests."""
    names = [unique_name("absent") for _ in range(MANY)]
    requests = [
        MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name)],
            allow_auto_topic_creation=False,
            min_version=4,
        )
        for name in names
    ]
    cluster = KafkaAccess(bootstrap=kafka_broker.bootstrap_servers)
    with connected(cluster, lambda: 30.0) as protocol:
        answers = protocol.send_all("list topics", [(request, None) for request in requests])
    assert [topic.name for answer in answers for topic in answer.topics] == names
