"""The Java-style settings of a task's Kafka clients, layer upon layer (spec task-runtime.md §9).

Layer: tasks. Base, then the worker's prefix, then the connector's override; only
`bootstrap.servers` comes from the worker without a prefix. `core.librdkafka_config` translates the
result.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from pyconnect_agent.core import client_configs
from pyconnect_agent.core.client_keys import ClientKind
from pyconnect_agent.core.config.client_overrides import (
    OverridePolicy,
    check_overrides,
    overrides_of,
)
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.librdkafka_config import LibrdkafkaConfig, translate

LOG = logging.getLogger(__name__)


def source_producer(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    """The at-least-once producer of a source task.

    Raises ConfigException for a denied override or a value that cannot be used.
    """
    java = {
        "bootstrap.servers": ",".join(worker.bootstrap_servers),
        "acks": "all",
        "enable.idempotence": "false",
        "max.in.flight.requests.per.connection": "1",
        "delivery.timeout.ms": "2147483647",
        "client.id": f"connector-producer-{task_id}",
        **worker.with_prefix("producer."),
        **_overrides(worker, connector_config, ClientKind.PRODUCER),
    }
    return _translated(java, ClientKind.PRODUCER)


def sink_consumer(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    """The consumer of a sink task; errors as for `source_producer`."""
    java = {
        "bootstrap.servers": ",".join(worker.bootstrap_servers),
        "group.id": f"connect-{task_id.connector}",
        "client.id": f"connector-consumer-{task_id}",
        "auto.offset.reset": "earliest",
        **worker.with_prefix("consumer."),
        **_overrides(worker, connector_config, ClientKind.CONSUMER),
    }
    return _translated(java, ClientKind.CONSUMER)


def dead_letter_producer(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    """The producer of a sink's dead letter queue; errors as for `source_producer`."""
    client_id = f"connector-dlq-producer-{task_id}"
    return _built(client_configs.connector_producer(worker, connector_config, client_id))


def dead_letter_admin(
    worker: WorkerConfig, connector_config: Mapping[str, str], task_id: ConnectorTaskId
) -> LibrdkafkaConfig:
    """The admin client that creates a dead letter topic; errors as for `source_producer`."""
    client_id = f"connector-dlq-adminclient-{task_id}"
    return _built(client_configs.connector_admin(worker, connector_config, client_id))


def _built(config: client_configs.ClientConfig) -> LibrdkafkaConfig:
    return _warned(config.build())


def _translated(java: Mapping[str, str], kind: ClientKind) -> LibrdkafkaConfig:
    return _warned(translate(java, kind))


def _warned(translated: LibrdkafkaConfig) -> LibrdkafkaConfig:
    for warning in translated.warnings:
        LOG.warning("client setting is not used as given", extra={"reason": warning})
    return translated


def _overrides(
    worker: WorkerConfig, connector_config: Mapping[str, str], kind: ClientKind
) -> dict[str, str]:
    policy = OverridePolicy.parse(
        worker.connector_client_config_override_policy,
        worker.connector_client_config_override_allowlist,
    )
    check_overrides(connector_config, kind, policy)
    overrides = overrides_of(connector_config, kind)
    return {name: value for name, value in overrides.items() if value is not None}
