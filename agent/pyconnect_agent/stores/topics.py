"""The logs of the distributed stores, made from values of the worker's configuration.

Layer: stores. Kafka: the arguments of the three KafkaXBackingStores for KafkaBasedLog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.kafka.clients import ClientConfig
from pyconnect_agent.kafka.compacted_topic import CompactedTopic
from pyconnect_agent.kafka.log import CompactedLog, LogClients


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTopic:
    """One internal topic, from a worker's configuration.

    `partitions`, `replication_factor`: -1 is the broker's default. `settings`: extra topic
    settings, prefix stripped. `producer`, `consumer`, `admin`: librdkafka's properties of this
    topic's clients (`core.client_configs`: `internal_producer`, `internal_consumer`,
    `shared_admin`). `create`: whether a missing topic is made. `create_timeout_ms`,
    `retry_backoff_ms`: `default.api.timeout.ms`, `retry.backoff.ms`.
    """

    name: str
    partitions: int
    replication_factor: int
    producer: ClientConfig
    consumer: ClientConfig
    admin: ClientConfig
    settings: Mapping[str, str] = field(default_factory=dict)
    create: bool = True
    create_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100


def config_log(topic: StoreTopic) -> CompactedLog:
    """Return the log of the config topic, which always has one partition."""
    return _log(topic, "config", "connector configurations", single_partition=True)


def offset_log(topic: StoreTopic) -> CompactedLog:
    return _log(topic, "offset", "source connector offsets")


def status_log(topic: StoreTopic) -> CompactedLog:
    return _log(topic, "status", "connector and task statuses")


def _log(
    topic: StoreTopic, kind: str, purpose: str, *, single_partition: bool = False
) -> CompactedLog:
    """`kind`: the word in the worker's keys and in the thread's name."""
    return CompactedLog(
        CompactedTopic(
            name=topic.name,
            worker_key=f"{kind}.storage.topic",
            purpose=purpose,
            partitions=1 if single_partition else topic.partitions,
            replication_factor=topic.replication_factor,
            settings=topic.settings,
            single_partition=single_partition,
            create=topic.create,
            create_timeout_ms=topic.create_timeout_ms,
            retry_backoff_ms=topic.retry_backoff_ms,
        ),
        LogClients(producer=topic.producer, consumer=topic.consumer, admin=topic.admin),
        f"{kind}-log",
    )
