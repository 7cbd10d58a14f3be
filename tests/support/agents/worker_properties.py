"""A worker's configuration for tests, and the logs of internal topics that it describes."""

from collections.abc import Mapping

from pyconnect_agent.core.clients.configs import InternalTopic, leader_producer
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.kafka.log import CompactedLog
from pyconnect_agent.kafka.producer import TransactionalLeaderWriter
from pyconnect_agent.worker.stores import internal_log

JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
PROPERTIES = {
    "group.id": "jb",
    "key.converter": JSON_CONVERTER,
    "value.converter": JSON_CONVERTER,
    "config.storage.topic": "configs",
    "offset.storage.topic": "offsets",
    "status.storage.topic": "statuses",
}


def distributed(**changes: str) -> DistributedConfig:
    """Return a distributed worker's configuration; underscores in names become dots."""
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    return DistributedConfig.parse(PROPERTIES | changed)


_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"


def worker_config(
    bootstrap_servers: str, properties: Mapping[str, str] | None = None
) -> DistributedConfig:
    """Return the configuration of a distributed worker."""
    return DistributedConfig.parse(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": "test",
            "key.converter": _CONVERTER,
            "value.converter": _CONVERTER,
            "config.storage.topic": "configs",
            "offset.storage.topic": "offsets",
            "status.storage.topic": "statuses",
            **(properties or {}),
        }
    )


def store_log(
    kind: InternalTopic,
    bootstrap_servers: str,
    name: str,
    properties: Mapping[str, str] | None = None,
) -> CompactedLog:
    """Return the log of a topic with one replica and two partitions; the config topic has one.

    `properties` of the worker replace these defaults.
    """
    word = {"configs": "config", "offsets": "offset", "statuses": "status"}[kind.value]
    topic = {
        f"{word}.storage.topic": name,
        f"{word}.storage.replication.factor": "1",
        "offset.storage.partitions": "2",
        "status.storage.partitions": "2",
    }
    return internal_log(worker_config(bootstrap_servers, {**topic, **(properties or {})}), kind)


def leader_writer(
    bootstrap_servers: str, topic: str, properties: Mapping[str, str]
) -> TransactionalLeaderWriter:
    """Return the transactional writer of a group's leader."""
    producer = leader_producer(worker_config(bootstrap_servers, properties)).build()
    return TransactionalLeaderWriter(topic, producer.properties)
