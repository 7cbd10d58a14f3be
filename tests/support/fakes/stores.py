"""Internal topics as a worker's configuration gives them to its stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyconnect_agent.core.clients.configs import (
    InternalTopic,
    internal_consumer,
    internal_producer,
    leader_producer,
    shared_admin,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.kafka.producer import TransactionalLeaderWriter
from pyconnect_agent.stores.topics import StoreTopic

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


def store_topic(
    kind: InternalTopic,
    bootstrap_servers: str,
    name: str,
    properties: Mapping[str, str] | None = None,
    **changes: Any,
) -> StoreTopic:
    """Return a topic of one replica and two partitions; `properties` are the worker's."""
    worker = worker_config(bootstrap_servers, properties)
    topic = StoreTopic(
        name=name,
        partitions=2,
        replication_factor=1,
        producer=internal_producer(worker, kind).build().properties,
        consumer=internal_consumer(worker, kind).build().properties,
        admin=shared_admin(worker).build().properties,
    )
    return replace(topic, **changes)


def leader_writer(
    bootstrap_servers: str, topic: str, properties: Mapping[str, str]
) -> TransactionalLeaderWriter:
    """Return the transactional writer of a group's leader."""
    producer = leader_producer(worker_config(bootstrap_servers, properties)).build()
    return TransactionalLeaderWriter(topic, producer.properties)
