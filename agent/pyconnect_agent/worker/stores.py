"""The stores of a worker, from its configuration.

Composition root. Kafka: parts of ConnectDistributed and ConnectStandalone.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from pyconnect_agent.core.clients.configs import (
    InternalTopic,
    config_record_limit,
    internal_consumer,
    internal_producer,
    leader_producer,
    shared_admin,
)
from pyconnect_agent.core.config.worker_config import (
    DistributedConfig,
    StandaloneConfig,
    WorkerConfig,
)
from pyconnect_agent.herder.service import Stores
from pyconnect_agent.kafka.admin import CompactedTopic
from pyconnect_agent.kafka.journal_topic import JournalPlace, JournalTopic
from pyconnect_agent.kafka.log import TRANSACTIONAL_FETCH, CompactedLog, LogClients
from pyconnect_agent.kafka.producer import LeaderWriter, TransactionalLeaderWriter
from pyconnect_agent.stores import MemoryLog
from pyconnect_agent.stores.config import ConfigStore
from pyconnect_agent.stores.journal import ChangeRecords, ChangesFile
from pyconnect_agent.stores.offset import FileOffsetStore, KafkaOffsetStore
from pyconnect_agent.stores.status import StatusStore

LOG = logging.getLogger(__name__)

DEFAULT_API_TIMEOUT_MS = 60_000


def standalone_stores(config: StandaloneConfig) -> Stores:
    """Return stores in memory, with the offsets in a file."""
    return Stores(
        config=ConfigStore(MemoryLog()),
        status=StatusStore(MemoryLog()),
        offset=FileOffsetStore(Path(config.offset_storage_file_filename)),
    )


def distributed_stores(config: DistributedConfig) -> Stores:
    """Return stores of three internal topics; clients connect when the stores are started."""
    configs = internal_log(config, InternalTopic.CONFIGS)
    writer: LeaderWriter | None = None
    if config.exactly_once_source_support.uses_transactional_leader:
        producer = leader_producer(config).build()
        _warn(producer.warnings)
        writer = TransactionalLeaderWriter(config.config_storage_topic, producer.properties)
    return Stores(
        config=ConfigStore(configs, writer, config_record_limit(config)),
        status=StatusStore(internal_log(config, InternalTopic.STATUSES)),
        offset=KafkaOffsetStore(internal_log(config, InternalTopic.OFFSETS)),
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
                # Idempotent, so that a repeated send makes no second record.
                producer={**producer, **client_id, "enable.idempotence": True},
                consumer={**internal_consumer(config, topic).build().properties, **client_id},
                admin=shared_admin(config).build().properties,
            ),
        )
    if config.agent_journal_file:
        return ChangesFile(Path(config.agent_journal_file), config.agent_journal_file_bytes)
    return None


def default_api_timeout_ms(config: DistributedConfig) -> int:
    """Return `default.api.timeout.ms` of the worker's admin client."""
    return shared_admin(config).build().default_api_timeout_ms or DEFAULT_API_TIMEOUT_MS


def internal_log(config: DistributedConfig, topic: InternalTopic) -> CompactedLog:
    """Return the log of an internal topic: the KafkaBasedLog of one of the backing stores."""
    producer = internal_producer(config, topic).build()
    consumer = internal_consumer(config, topic).build()
    admin = shared_admin(config).build()
    match topic:
        case InternalTopic.CONFIGS:
            # The clients of all three topics have the same warnings, despite different forced
            # settings.
            _warn(dict.fromkeys((*producer.warnings, *consumer.warnings, *admin.warnings)))
            kind, purpose = "config", "connector configurations"
            name, partitions = config.config_storage_topic, 1
            replication_factor = config.config_storage_replication_factor
            transactional = config.exactly_once_source_support.uses_transactional_leader
        case InternalTopic.OFFSETS:
            kind, purpose = "offset", "source connector offsets"
            name, partitions = config.offset_storage_topic, config.offset_storage_partitions
            replication_factor = config.offset_storage_replication_factor
            transactional = config.exactly_once_source_enabled
        case InternalTopic.STATUSES:
            kind, purpose = "status", "connector and task statuses"
            name, partitions = config.status_storage_topic, config.status_storage_partitions
            replication_factor = config.status_storage_replication_factor
            transactional = False
    return CompactedLog(
        CompactedTopic(
            name=name,
            worker_key=f"{kind}.storage.topic",
            purpose=purpose,
            partitions=partitions,
            replication_factor=replication_factor,
            settings=config.storage_topic_settings(kind),
            single_partition=topic is InternalTopic.CONFIGS,
            create=config.internal_topics_automatic_creation_enable,
            create_timeout_ms=default_api_timeout_ms(config),
            retry_backoff_ms=config.retry_backoff_ms,
        ),
        LogClients(
            producer=producer.properties,
            consumer={**(TRANSACTIONAL_FETCH if transactional else {}), **consumer.properties},
            admin=admin.properties,
        ),
        f"{kind}-log",
    )


def _warn(warnings: Iterable[str]) -> None:
    for text in warnings:
        LOG.warning("client setting", extra={"reason": text})
