"""The settings of a distributed worker's herder, from its configuration.

Composition root. Kafka: the keys that DistributedHerder reads from DistributedConfig.
"""

from __future__ import annotations

from dataclasses import replace

from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.herder.state import HerderSettings, SessionKeySettings


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
