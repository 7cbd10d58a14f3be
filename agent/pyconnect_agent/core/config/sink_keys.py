"""The keys the framework defines for sink connectors.

Layer: core. Corresponds to ``SinkConnectorConfig`` of Kafka Connect 4.3.1.
"""

from __future__ import annotations

from pyconnect_agent.core.config.connector_keys import (
    COMMON,
    ERRORS,
    HIGH,
    MEDIUM,
    PluginDefaults,
    connector_config_def,
)
from pyconnect_agent.core.config.worker_keys import any_list
from pyconnect_agent.core.java.regex import VALID_REGEX
from pyconnect_api.configdef import ConfigDef, ConfigType, Width


def sink_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of sink connectors."""
    definition = connector_config_def(defaults)
    definition.define(
        "topics",
        ConfigType.LIST,
        default="",
        validator=any_list(),
        importance=HIGH,
        documentation="Topics to consume.",
        group=COMMON,
        order_in_group=4,
        width=Width.LONG,
        display_name="Topics",
    )
    definition.define(
        "topics.regex",
        ConfigType.STRING,
        default="",
        validator=VALID_REGEX,
        importance=HIGH,
        documentation="Pattern of the topics to consume, instead of topics; matches whole names.",
        group=COMMON,
        order_in_group=4,
        width=Width.LONG,
        display_name="Topics regex",
    )
    _define_dead_letter_queue(definition)
    return definition


def _define_dead_letter_queue(definition: ConfigDef) -> None:
    prefix = "errors.deadletterqueue."
    definition.define(
        f"{prefix}topic.name",
        ConfigType.STRING,
        default="",
        importance=MEDIUM,
        documentation="Topic that gets the records that could not be processed; blank for none.",
        group=ERRORS,
        order_in_group=6,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Name",
    )
    definition.define(
        f"{prefix}topic.replication.factor",
        ConfigType.SHORT,
        default=3,
        importance=MEDIUM,
        documentation="Replicas of the dead letter topic when it is created.",
        group=ERRORS,
        order_in_group=7,
        width=Width.MEDIUM,
        display_name="Dead Letter Queue Topic Replication Factor",
    )
    definition.define(
        f"{prefix}context.headers.enable",
        ConfigType.BOOLEAN,
        default=False,
        importance=MEDIUM,
        documentation="Whether headers __connect.errors.* hold the error.",
        group=ERRORS,
        order_in_group=8,
        width=Width.MEDIUM,
        display_name="Enable Error Context Headers",
    )
