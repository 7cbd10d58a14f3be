"""A config topic full of stopped connectors, as a group's workers leave it."""

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.internal_topics import config_records
from pyconnect_sandbox.connect_worker import AgentProcess
from tests.support.agents.rest_client import call_url

TIMEOUT_S = 60


def write_stopped_connectors(bootstrap_servers: str, topic: str, count: int) -> None:
    """Create the config topic `topic` with `count` connectors that have no tasks."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, 1, config={"cleanup.policy": "compact"})])
    created[topic].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(count):
        name = f"connector-{number}"
        config = {
            "name": name,
            "connector.class": "FileStreamSource",
            "file": f"/tmp/{name}",
            "topic": name,
        }
        for record in (
            config_records.target_state(name, TargetState.STOPPED),
            config_records.connector_config(name, config),
            config_records.tasks_commit(name, 0),
        ):
            producer.produce(topic, key=record.key, value=record.value)
    producer.flush(TIMEOUT_S)


def stopped(agent: AgentProcess) -> int:
    """Return the number of connectors that are STOPPED by their statuses."""
    listed = call_url(agent.url, "GET", "/connectors?expand=status").json()
    return sum(
        found["status"]["connector"]["state"] == "STOPPED"
        for found in listed.values()
        if "status" in found
    )
