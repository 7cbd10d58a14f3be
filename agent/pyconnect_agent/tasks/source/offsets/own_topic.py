"""Finds and opens the offsets topic of a source connector's own, if it has one (KIP-618).

Kafka: `Worker.offsetStoreForRegularSourceTask`, `…ForExactlyOnceSourceTask` and their connectors'
versions. Reads as the connector's consumer connects, creates and looks as its admin client does,
writes (at-least-once) as its producer does: a transaction's offsets are written by the task's own
producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from pyconnect_agent.core.clients.configs import (
    ClientConfig,
    connector_admin,
    connector_producer,
    producers_admin,
    shared_admin,
    source_offsets_consumer,
)
from pyconnect_agent.core.config.worker_config import DistributedConfig, WorkerConfig
from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.core.offsets.source import own_topic
from pyconnect_agent.kafka.admin import Admin, CompactedTopic
from pyconnect_agent.kafka.log import BRIEF_FETCH, CompactedLog, LogClients
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.setup.resolved_configs import built
from pyconnect_agent.tasks.source.offsets.stores import (
    OffsetStores,
    OwnCommits,
    OwnOffsetsStore,
    WorkerOffsets,
)
from pyconnect_api import ConnectException

CLUSTER_ID_TIMEOUT_MS = 60_000
DEFAULT_API_TIMEOUT_MS = 60_000


class OffsetUse(Enum):
    """The use of the topic: a connector only reads, an exactly-once task's producer writes."""

    CONNECTOR = auto()
    AT_LEAST_ONCE = auto()
    EXACTLY_ONCE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUse:
    """The use that a process makes of the log of an own topic.

    `client`: the end of client ids, the task's id or the connector's name. `is_brief`: the
    process ends soon, so it need not spare the brokers.
    """

    client: str
    writes: bool = False
    is_brief: bool = False


def offset_stores(
    worker: WorkerConfig,
    connector: str,
    connector_config: Mapping[str, str],
    store: Control,
    *,
    client: str,
    use: OffsetUse,
    is_only_task: bool = False,
    is_brief: bool = False,
) -> OffsetStores:
    """Return where the offsets of a resolved `connector_config` are; nothing is read yet.

    `is_only_task`: of its connector. `client`, `is_brief`: see `LogUse`.

    Raises ConfigException for a forbidden override, ConnectException when a cluster cannot be
    distinguished from the worker's.
    """
    writes = use is OffsetUse.AT_LEAST_ONCE
    log_use = LogUse(client=client, writes=writes, is_brief=is_brief)
    found = own_offset_log(worker, connector, connector_config, log_use)
    own_commits = OwnCommits(active=is_only_task and use is OffsetUse.EXACTLY_ONCE)
    if found is None:
        topic = worker.offset_storage_topic if isinstance(worker, DistributedConfig) else ""
        return WorkerOffsets(topic, store, own_commits, reads_first=use is OffsetUse.EXACTLY_ONCE)
    topic, log = found
    return OwnOffsetsStore(topic, log, store, own_commits, worker.offset_flush_timeout_ms)


def own_offset_log(
    worker: WorkerConfig,
    connector: str,
    connector_config: Mapping[str, str],
    use: LogUse,
) -> tuple[str, CompactedLog] | None:
    """Return name and log of the connector's own topic, None without one; errors as above."""
    placed = own_topic(worker, connector_config)
    if placed is None:
        return None
    assert isinstance(worker, DistributedConfig)
    if placed.is_workers_name:
        admin_id = f"connector-adminclient-{use.client}"
        try:
            written = _cluster_id(producers_admin(worker, connector_config, admin_id))
            if written is not None and written == _cluster_id(shared_admin(worker)):
                return None
        except AgentError as exc:
            raise ConnectException(
                "Failed to find out whether the connector's producer and the worker use one Kafka"
                " cluster, which decides where offsets are"
            ) from exc
    return placed.name, _log(worker, connector, connector_config, placed.name, use)


def _cluster_id(config: ClientConfig) -> str | None:
    return Admin(config.build().properties).cluster_id(CLUSTER_ID_TIMEOUT_MS)


def _log(
    worker: DistributedConfig,
    connector: str,
    connector_config: Mapping[str, str],
    topic: str,
    use: LogUse,
) -> CompactedLog:
    admin = built(connector_admin(worker, connector_config, f"connector-adminclient-{use.client}"))
    consumer_id = f"connector-consumer-{use.client}"
    consumer = built(source_offsets_consumer(worker, connector, connector_config, consumer_id))
    fetch = BRIEF_FETCH if use.is_brief else {}
    producer = None
    if use.writes:
        producer_id = f"connector-offsets-producer-{use.client}"
        producer = built(connector_producer(worker, connector_config, producer_id)).properties
    return CompactedLog(
        CompactedTopic(
            name=topic,
            worker_key="offsets.storage.topic",
            purpose="source connector offsets",
            partitions=worker.offset_storage_partitions,
            replication_factor=worker.offset_storage_replication_factor,
            settings=worker.storage_topic_settings("offset"),
            create=worker.internal_topics_automatic_creation_enable,
            create_timeout_ms=admin.default_api_timeout_ms or DEFAULT_API_TIMEOUT_MS,
            retry_backoff_ms=worker.retry_backoff_ms,
        ),
        LogClients(
            producer=producer,
            consumer={**consumer.properties, **fetch},
            admin=admin.properties,
        ),
        "own-offset-log",
    )
