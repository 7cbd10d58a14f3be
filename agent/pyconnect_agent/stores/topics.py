"""The logs behind the distributed stores, from the few values of a worker that they need.

Layer: stores. Kafka: what the three KafkaXBackingStores pass to KafkaBasedLog; spec
internal-topics.md §1.1, §1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyconnect_agent.kafka import internal_clients
from pyconnect_agent.kafka.clients import ClientConfig
from pyconnect_agent.kafka.compacted_topic import CompactedTopic
from pyconnect_agent.kafka.log import CompactedLog, LogClients
from pyconnect_agent.kafka.producer import TransactionalLeaderWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTopic:
    """One internal topic as a worker's configuration gives it.

    `partitions`, `replication_factor`: -1 is the broker's default. `settings`: extra topic
    settings, prefix stripped. `client_id_base`: `<group.id>-` or `<group.id>-<client.id>-`.
    `producer`, `consumer`, `admin`: the worker's top-level properties, translated to librdkafka's
    for each kind of client. `read_committed`: whether
    `exactly.once.source.support` is `enabled`. `create_timeout_ms`, `retry_backoff_ms`:
    `default.api.timeout.ms`, `retry.backoff.ms`.
    """

    name: str
    partitions: int
    replication_factor: int
    client_id_base: str
    producer: ClientConfig
    consumer: ClientConfig
    admin: ClientConfig
    settings: Mapping[str, str] = field(default_factory=dict)
    read_committed: bool = False
    create_timeout_ms: int = 60_000
    retry_backoff_ms: int = 100


def config_log(topic: StoreTopic) -> CompactedLog:
    """The config topic always has one partition, whatever `topic` says."""
    return CompactedLog(
        CompactedTopic(
            name=topic.name,
            worker_key="config.storage.topic",
            purpose="connector configurations",
            partitions=1,
            replication_factor=topic.replication_factor,
            settings=topic.settings,
            single_partition=True,
            create_timeout_ms=topic.create_timeout_ms,
            retry_backoff_ms=topic.retry_backoff_ms,
        ),
        _clients(topic, "configs", read_committed=topic.read_committed),
        "config-log",
    )


def transactional_leader_writer(
    topic: StoreTopic, transactional_id: str
) -> TransactionalLeaderWriter:
    """Privileged writes for `exactly.once.source.support` `preparing` or `enabled`.

    `transactional_id` is `connect-cluster-<group.id>`.
    """
    client_id = f"{topic.client_id_base}configs-leader"
    return TransactionalLeaderWriter(
        topic.name,
        internal_clients.leader_producer_config(topic.producer, client_id, transactional_id),
    )


def offset_log(topic: StoreTopic) -> CompactedLog:
    return CompactedLog(
        CompactedTopic(
            name=topic.name,
            worker_key="offset.storage.topic",
            purpose="source connector offsets",
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            settings=topic.settings,
            create_timeout_ms=topic.create_timeout_ms,
            retry_backoff_ms=topic.retry_backoff_ms,
        ),
        _clients(topic, "offsets", read_committed=topic.read_committed),
        "offset-log",
    )


def status_log(topic: StoreTopic) -> CompactedLog:
    """Its isolation level is the worker's own, also with exactly-once sources."""
    return CompactedLog(
        CompactedTopic(
            name=topic.name,
            worker_key="status.storage.topic",
            purpose="connector and task statuses",
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            settings=topic.settings,
            create_timeout_ms=topic.create_timeout_ms,
            retry_backoff_ms=topic.retry_backoff_ms,
        ),
        _clients(topic, "statuses", store_retries=True),
        "status-log",
    )


def _clients(
    topic: StoreTopic, suffix: str, *, read_committed: bool = False, store_retries: bool = False
) -> LogClients:
    client_id = topic.client_id_base + suffix
    return LogClients(
        producer=internal_clients.producer_config(
            topic.producer, client_id, store_retries=store_retries
        ),
        consumer=internal_clients.consumer_config(
            topic.consumer, client_id, read_committed=read_committed
        ),
        admin={**topic.admin, "client.id": client_id},
    )
