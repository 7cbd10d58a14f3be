"""The keys the framework defines for source connectors.

Layer: core. Corresponds to ``SourceConnectorConfig`` of Kafka Connect 4.3.1; the settings of topic
creation groups are in `topic_creation`.
"""

from __future__ import annotations

from pyconnect_agent.core.config.connector_keys import (
    LOW,
    MEDIUM,
    PluginDefaults,
    connector_config_def,
)
from pyconnect_agent.core.config.topic_creation import DISPLAY_GROUP, TOPIC_CREATION_GROUPS
from pyconnect_api.config_validators import or_none, unique
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    NonEmptyString,
    Range,
    Width,
)

EXACTLY_ONCE, OFFSETS_TOPIC = "Exactly Once Support", "offsets.topic"


def source_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of source connectors."""
    definition = connector_config_def(defaults)
    definition.define(
        TOPIC_CREATION_GROUPS,
        ConfigType.LIST,
        default=[],
        validator=unique("topic creation groups"),
        importance=LOW,
        documentation="Names of groups of topics, each set up below topic.creation.<name>.",
        group=DISPLAY_GROUP,
        order_in_group=1,
        width=Width.LONG,
        display_name="Topic Creation Groups",
    )
    _define_exactly_once(definition)
    definition.define(
        "offsets.storage.topic",
        ConfigType.STRING,
        default=None,
        validator=NonEmptyString(),
        importance=LOW,
        documentation="Topic for this connector's offsets, instead of the worker's.",
        group=OFFSETS_TOPIC,
        order_in_group=1,
        width=Width.LONG,
        display_name="Offsets topic",
    )
    return definition


def _define_exactly_once(definition: ConfigDef) -> None:
    definition.define(
        "exactly.once.support",
        ConfigType.STRING,
        default="requested",
        validator=CaseInsensitiveValidString.one_of("required", "requested"),
        importance=MEDIUM,
        documentation=(
            "required: refuse the connector unless worker and connector support exactly-once "
            "delivery; requested: do not check."
        ),
        group=EXACTLY_ONCE,
        order_in_group=2,
        width=Width.SHORT,
        display_name="Exactly once support",
    )
    definition.define(
        "transaction.boundary",
        ConfigType.STRING,
        default="poll",
        validator=CaseInsensitiveValidString.one_of("interval", "poll", "connector"),
        importance=MEDIUM,
        documentation=(
            "Time of a task's commit: after each poll, after an interval, or when the connector "
            "requests it."
        ),
        group=EXACTLY_ONCE,
        order_in_group=3,
        width=Width.SHORT,
        display_name="Transaction Boundary",
    )
    definition.define(
        "transaction.boundary.interval.ms",
        ConfigType.LONG,
        default=None,
        validator=or_none(Range.at_least(0)),
        importance=LOW,
        documentation="For transaction.boundary=interval; offset.flush.interval.ms if unset.",
        group=EXACTLY_ONCE,
        order_in_group=4,
        width=Width.SHORT,
        display_name="Transaction boundary interval",
    )
