"""The stores of a worker, from its configuration.

Composition root. Kafka: parts of ConnectDistributed and ConnectStandalone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyconnect_agent.core.clients.configs import (
    InternalTopic,
    config_record_limit,
    internal_consumer,
    internal_producer,
    leader_producer,
    shared_admin,
)
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.config.worker_config import (
    DistributedConfig,
    StandaloneConfig,
    WorkerConfig,
)
from pyconnect_agent.herder.service import Stores
from pyconnect_agent.kafka.journal_topic import JournalPlace, JournalTopic
from pyconnect_agent.kafka.log import CompactedLog, LogClients
from pyconnect_agent.kafka.log_consumer import TRANSACTIONAL_FETCH
from pyconnect_agent.kafka.producer import LeaderWriter, TransactionalLeaderWriter
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.journal import ChangeRecords, ChangesFile
from pyconnect_agent.stores.memory import MemoryLog
from pyconnect_agent.stores.offset import KafkaOffsetStore
from pyconnect_agent.stores.offset_file import FileOffsetStore
from pyconnect_agent.stores.status import StatusStore
from pyconnect_agent.stores.topics import StoreTopic, config_log, offset_log, status_log

LOG = logging.getLogger(__name__)

DEFAULT_API_TIMEOUT_MS = 60_000


def standalone_stores(config: StandaloneConfig) -> Stores:
    """Return stores in memory, except that offsets are in a file."""
    return Stores(
        config=ConfigStore(MemoryLog()),
        status=StatusStore(MemoryLog()),
        offset=FileOffsetStore(Path(config.offset_storage_file_filename)),
    )


def distributed_stores(config: DistributedConfig) -> Stores:
    """Return stores of three internal topics; clients connect when the stores are started."""
    configs = config_log(_store_topic(config, InternalTopic.CONFIGS))
    return Stores(
        config=ConfigStore(configs, _leader_writer(config), config_record_limit(config)),
        status=StatusStore(_status_log(config)),
        offset=KafkaOffsetStore(offset_log(_store_topic(config, InternalTopic.OFFSETS))),
    )


def journal_of(config: WorkerConfig) -> ChangeRecords | None:
    """Return the journal of changes, None without one; its clients connect when it is started."""
    if isinstance(config, DistributedConfig) and config.agent_journal_topic:
        topic = InternalTopic.CONFIGS
        client_id = {"client.id": f"{config.client_id_base}journal"}
        producer = internal_producer(config, topic).build().properties
        return JournalTopic(
            JournalPlace(
                topic=config.agent_journal_topic,
                replication_factor=config.config_storage_replication_factor,
                retention_ms=config.agent_journal_retention_ms,
                create_timeout_ms=default_api_timeout_ms(config),
                retry_backoff_ms=config.retry_backoff_ms,
            ),
            LogClients(
                # A record that is sent again is one record.
                producer={**producer, **client_id, "enable.idempotence": True},
                consumer={**internal_consumer(config, topic).build().properties, **client_id},
                admin=shared_admin(config).build().properties,
            ),
        )
    if config.agent_journal_file:
        return ChangesFile(Path(config.agent_journal_file), config.agent_journal_file_bytes)
    return None


def default_api_timeout_ms(config: DistributedConfig) -> int:
    """`default.api.timeout.ms` of the worker's admin client."""
    return shared_admin(config).build().default_api_timeout_ms or DEFAULT_API_TIMEOUT_MS


def _status_log(config: DistributedConfig) -> CompactedLog:
    return status_log(_store_topic(config, InternalTopic.STATUSES))


def _leader_writer(config: DistributedConfig) -> LeaderWriter | None:
    if not config.exactly_once_source_support.uses_transactional_leader:
        return None
    producer = leader_producer(config).build()
    _warn(producer.warnings)
    return TransactionalLeaderWriter(config.config_storage_topic, producer.properties)


def _store_topic(config: DistributedConfig, topic: InternalTopic) -> StoreTopic:
    producer = internal_producer(config, topic).build()
    consumer = internal_consumer(config, topic).build()
    admin = shared_admin(config).build()
    name, partitions, replication_factor, kind = _placement(config, topic)
    if topic is InternalTopic.CONFIGS:
        # The three topics' clients differ in forced settings; the warnings are the same.
        _warn(_all_warnings((producer, consumer, admin)))
    return StoreTopic(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        producer=producer.properties,
        consumer={**_fetch(config, topic), **consumer.properties},
        admin=admin.properties,
        settings=config.storage_topic_settings(kind),
        create=config.internal_topics_automatic_creation_enable,
        create_timeout_ms=default_api_timeout_ms(config),
        retry_backoff_ms=config.retry_backoff_ms,
    )


def _fetch(config: DistributedConfig, topic: InternalTopic) -> Mapping[str, int]:
    """Return fetch settings for a topic with transactional writers; none for others."""
    match topic:
        case InternalTopic.CONFIGS:
            transactional = config.exactly_once_source_support.uses_transactional_leader
        case InternalTopic.OFFSETS:
            transactional = config.exactly_once_source_enabled
        case InternalTopic.STATUSES:
            transactional = False
    return TRANSACTIONAL_FETCH if transactional else {}


def _placement(config: DistributedConfig, topic: InternalTopic) -> tuple[str, int, int, str]:
    """Return name, partitions, replication factor and the word in the worker's keys."""
    match topic:
        case InternalTopic.CONFIGS:
            replication = config.config_storage_replication_factor
            return config.config_storage_topic, 1, replication, "config"
        case InternalTopic.OFFSETS:
            return (
                config.offset_storage_topic,
                config.offset_storage_partitions,
                config.offset_storage_replication_factor,
                "offset",
            )
        case InternalTopic.STATUSES:
            return (
                config.status_storage_topic,
                config.status_storage_partitions,
                config.status_storage_replication_factor,
                "status",
            )


def _all_warnings(clients: Iterable[LibrdkafkaConfig]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for client in clients for text in client.warnings))


def _warn(warnings: Iterable[str]) -> None:
    for text in warnings:
        LOG.warning("client setting", extra={"reason": text})
