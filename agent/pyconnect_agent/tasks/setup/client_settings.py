"""Settings of a task's Kafka clients for librdkafka.

Layer: tasks. `core.clients.configs` decides on them; settings without effect are logged here.
"""

from __future__ import annotations

import logging

from pyconnect_agent.core.clients.configs import ClientConfig
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig

LOG = logging.getLogger(__name__)

API_TIMEOUT_MS = 60_000
"""Java's default of `default.api.timeout.ms`."""


def built(config: ClientConfig) -> LibrdkafkaConfig:
    """Return librdkafka's configuration, and log its warnings.

    Raises ConfigException for a value that cannot be used.
    """
    built = config.build()
    for warning in built.warnings:
        LOG.warning("client setting is not used as given", extra={"reason": warning})
    return built
