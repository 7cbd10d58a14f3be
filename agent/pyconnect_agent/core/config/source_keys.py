"""The keys the framework defines for source connectors.

Layer: core. Corresponds to ``SourceConnectorConfig`` of Kafka Connect 4.3.1; the settings of topic
creation groups are in `topic_creation`.
"""

from __future__ import annotations

from pyconnect_agent.core.config.connector_keys import PluginDefaults, connector_config_def
from pyconnect_agent.core.config.topic_creation import TOPIC_CREATION_GROUPS
from pyconnect_api.config_validators import or_none, unique
from pyconnect_api.configdef import CaseInsensitiveValidString, ConfigDef, NonEmptyString, Range
from pyconnect_api.key_table import define_table

_TABLE = """
topic.creation.groups  LIST  LOW  ""
    [Topic Creation, 1, LONG] Topic Creation Groups
    Names of groups of topics, each set up below topic.creation.<name>.
exactly.once.support  STRING  MEDIUM  requested
    [Exactly Once Support, 2, SHORT] Exactly once support
    required: refuse the connector unless worker and connector support exactly-once delivery;
    requested: do not check.
transaction.boundary  STRING  MEDIUM  poll
    [Exactly Once Support, 3, SHORT] Transaction Boundary
    Time of a task's commit: after each poll, after an interval, or when the connector requests it.
transaction.boundary.interval.ms  LONG  LOW  ~
    [Exactly Once Support, 4, SHORT] Transaction boundary interval
    For transaction.boundary=interval; offset.flush.interval.ms if unset.
offsets.storage.topic  STRING  LOW  ~
    [offsets.topic, 1, LONG] Offsets topic
    Topic for this connector's offsets, instead of the worker's.
"""


def source_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of source connectors."""
    return define_table(
        connector_config_def(defaults),
        _TABLE,
        {
            TOPIC_CREATION_GROUPS: unique("topic creation groups"),
            "exactly.once.support": CaseInsensitiveValidString.one_of("required", "requested"),
            "transaction.boundary": CaseInsensitiveValidString.one_of(
                "interval", "poll", "connector"
            ),
            "transaction.boundary.interval.ms": or_none(Range.at_least(0)),
            "offsets.storage.topic": NonEmptyString(),
        },
    )
