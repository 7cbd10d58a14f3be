"""The settings of this worker's group membership, from its configuration.

Composition root. Kafka: the group part of DistributedConfig and WorkerGroupMember.
"""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

from pyconnect_agent.core.clients.kafka_python import kafka_python_config
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.protocol.messages import ProtocolVersion
from pyconnect_agent.herder.connect_group import GroupOptions
from pyconnect_agent.kafka.group import MembershipSettings
from pyconnect_agent.kafka.kafka_python_client import client_arguments

LOG = logging.getLogger(__name__)

OPEN_TIMEOUT_MS = 60_000


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
