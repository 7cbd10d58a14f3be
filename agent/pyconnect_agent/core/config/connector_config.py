"""The framework's keys of a connector config, as typed, immutable values.

Corresponds to the accessors of ``ConnectorConfig``, ``SinkConnectorConfig`` and
``SourceConnectorConfig`` of Kafka Connect. Parsed after variables are resolved; the connector's own
settings stay in the map it is started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyconnect_agent.core.config.connector_keys import (
    PluginDefaults,
    connector_config_def,
    sink_config_def,
    source_config_def,
)
from pyconnect_agent.core.config.topic_creation import TopicCreationGroup, topic_creation_groups
from pyconnect_api.configdef import ConfigDef

_CONNECTOR_DEF = connector_config_def(PluginDefaults.none())
_SINK_DEF = sink_config_def(PluginDefaults.none())
_SOURCE_DEF = source_config_def(PluginDefaults.none())


class TransactionBoundary(Enum):
    """When an exactly-once source task commits."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSettings:
    """Settings of any connector; times in milliseconds.

    ``errors_retry_timeout_ms`` -1 is without end, 0 without retries. A converter is None when the
    worker's counts.
    """

    name: str
    connector_version: str | None
    tasks_max: int
    tasks_max_enforce: bool
    key_converter: str | None
    value_converter: str | None
    header_converter: str | None
    restart_on_reload: bool
    errors_retry_timeout_ms: int
    errors_retry_delay_max_ms: int
    tolerate_all_errors: bool
    errors_log_enable: bool
    errors_log_include_messages: bool

    @classmethod
    def parse(cls, config: Mapping[str, str | None]) -> ConnectorSettings:
        """Return the settings; raises ConfigException for the first that is wrong or missing."""
        return cls(**_common(_CONNECTOR_DEF, config))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTaskSettings(ConnectorSettings):
    """Settings of a sink connector: ``topics`` is empty when a pattern names them.

    ``dlq_topic`` None: there is no dead letter queue.
    """

    topics: tuple[str, ...]
    dlq_topic: str | None
    dlq_replication_factor: int
    dlq_context_headers: bool

    @property
    def has_errant_record_reporter(self) -> bool:
        """Whether reports of a task go anywhere: to a dead letter queue or the log."""
        return self.dlq_topic is not None or self.errors_log_enable

    @classmethod
    def parse(cls, config: Mapping[str, str | None]) -> SinkTaskSettings:
        """Return the settings; errors as for any connector."""
        values = _SINK_DEF.parse(config)
        topics, prefix = values["topics"], "errors.deadletterqueue."
        assert isinstance(topics, list)
        typed: dict[str, Any] = {
            "topics": tuple(filter(None, topics)),
            "dlq_topic": values[f"{prefix}topic.name"] or None,
            "dlq_replication_factor": values[f"{prefix}topic.replication.factor"],
            "dlq_context_headers": values[f"{prefix}context.headers.enable"],
        }
        return cls(**_common(_SINK_DEF, config), **typed)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTaskSettings(ConnectorSettings):
    """Settings of a source connector.

    ``transaction_interval_ms`` None means the worker's ``offset.flush.interval.ms``;
    ``offsets_topic`` None the worker's topic; ``topic_creation`` is empty when not asked for.
    """

    transaction_boundary: TransactionBoundary
    transaction_interval_ms: int | None
    offsets_topic: str | None
    topic_creation: tuple[TopicCreationGroup, ...]

    @classmethod
    def parse(cls, config: Mapping[str, str | None]) -> SourceTaskSettings:
        """Return the settings; errors as for any connector."""
        values = _SOURCE_DEF.parse(config)
        given = {name: value for name, value in config.items() if value is not None}
        typed: dict[str, Any] = {
            "transaction_boundary": TransactionBoundary(
                str(values["transaction.boundary"]).lower()
            ),
            "transaction_interval_ms": values["transaction.boundary.interval.ms"],
            "offsets_topic": values["offsets.storage.topic"],
            "topic_creation": topic_creation_groups(given),
        }
        return cls(**_common(_SOURCE_DEF, config), **typed)


def _common(definition: ConfigDef, config: Mapping[str, str | None]) -> dict[str, Any]:
    values = definition.parse(config)
    return {
        "name": values["name"],
        "connector_version": values["connector.plugin.version"],
        "tasks_max": values["tasks.max"],
        "tasks_max_enforce": values["tasks.max.enforce"],
        "key_converter": values["key.converter"],
        "value_converter": values["value.converter"],
        "header_converter": values["header.converter"],
        "restart_on_reload": values["config.action.reload"] == "restart",
        "errors_retry_timeout_ms": values["errors.retry.timeout"],
        "errors_retry_delay_max_ms": values["errors.retry.delay.max.ms"],
        "tolerate_all_errors": values["errors.tolerance"] == "all",
        "errors_log_enable": values["errors.log.enable"],
        "errors_log_include_messages": values["errors.log.include.messages"],
    }
