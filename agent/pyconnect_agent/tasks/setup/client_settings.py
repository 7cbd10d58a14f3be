"""Settings of a task's Kafka clients for librdkafka.

Layer: tasks. `core.clients.configs` decides on them; settings without effect are logged here. All
functions raise ConfigException for an override that the worker denies and for a value that cannot
be used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyconnect_agent.core.clients import configs as client_configs
from pyconnect_agent.core.clients.librdkafka import LibrdkafkaConfig
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.ids import ConnectorTaskId

LOG = logging.getLogger(__name__)

API_TIMEOUT_MS = 60_000
"""Java's default of `default.api.timeout.ms`."""


def producer(
    worker: WorkerConfig,
    connector_config: Mapping[str, str],
    task_id: ConnectorTaskId,
    use: str = "producer",
) -> LibrdkafkaConfig:
    """The at-least-once producer of a source task, or that of a sink's dead letter queue."""
    client_id = f"connector-{use}-{task_id}"
    return built(client_configs.connector_producer(worker, connector_config, client_id))


def sink_consumer(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    client_id = f"connector-consumer-{task_id}"
    return built(
        client_configs.sink_consumer(worker, task_id.connector, connector_config, client_id)
    )


def admin(
    worker: WorkerConfig,
    connector_config: Mapping[str, str],
    task_id: ConnectorTaskId,
    use: str = "adminclient",
) -> LibrdkafkaConfig:
    """The admin client that creates a source task's topics, or a dead letter topic."""
    client_id = f"connector-{use}-{task_id}"
    return built(client_configs.connector_admin(worker, connector_config, client_id))


def producers_admin(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    """The admin client that asks the brokers of an at-least-once producer for leaders."""
    client_id = f"connector-leaders-{task_id}"
    return built(client_configs.producers_admin(worker, connector_config, client_id))


def built(config: client_configs.ClientConfig) -> LibrdkafkaConfig:
    """Return librdkafka's configuration, and log its warnings."""
    built = config.build()
    for warning in built.warnings:
        LOG.warning("client setting is not used as given", extra={"reason": warning})
    return built
