"""The settings of a distributed worker's herder and group membership, from its configuration.

Composition root. Kafka: the keys that DistributedHerder and WorkerGroupMember read.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from urllib.parse import urlsplit

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.group_protocol import ProtocolVersion
from pyconnect_agent.core.herder.state import HerderSettings, SessionKeySettings
from pyconnect_agent.herder.connect_group import GroupOptions
from pyconnect_agent.kafka.clients import client_arguments
from pyconnect_agent.kafka.group import MembershipSettings

LOG = logging.getLogger(__name__)

OPEN_TIMEOUT_MS = 60_000


def distributed_settings(settings: HerderSettings, config: DistributedConfig) -> HerderSettings:
    """Return `settings`, which every worker has, with the settings of a group."""
    return replace(
        settings,
        group_id=config.group_id,
        leader_transactional_id=config.leader_transactional_id,
        exactly_once_source=config.exactly_once_source_enabled,
        worker_sync_timeout_ms=config.worker_sync_timeout_ms,
        worker_unsync_backoff_ms=config.worker_unsync_backoff_ms,
        config_topic=config.config_storage_topic,
        scheduled_rebalance_max_delay_ms=config.scheduled_rebalance_max_delay_ms,
        session_key=SessionKeySettings(
            algorithm=config.inter_worker_key_generation_algorithm,
            size_bits=config.inter_worker_key_size,
            ttl_ms=config.inter_worker_key_ttl_ms,
        ),
    )


def group_options(config: DistributedConfig, worker_url: str) -> GroupOptions:
    """Return the options; WorkerConfigError for security settings that the client cannot use."""
    client_id = config.client_id or f"connect-{urlsplit(worker_url).netloc}"
    client = kafka_python_config(config.originals, client_id=client_id)
    for text in client.warnings:
        LOG.warning("group client setting", extra={"reason": text})
    return GroupOptions(
        membership=MembershipSettings(
            group_id=config.group_id,
            client=client_arguments(client),
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            rebalance_timeout_ms=config.rebalance_timeout_ms,
            request_timeout_ms=config.request_timeout_ms,
            retry_backoff_ms=config.retry_backoff_ms,
        ),
        worker_url=worker_url,
        protocol=ProtocolVersion[config.connect_protocol.name],
        scheduled_rebalance_max_delay_ms=config.scheduled_rebalance_max_delay_ms,
        open_timeout_ms=OPEN_TIMEOUT_MS,
        leader_ids=config.leader_ids,
    )
