"""The keys the framework defines for sink connectors.

Layer: core. Corresponds to ``SinkConnectorConfig`` of Kafka Connect 4.3.1.
"""

from __future__ import annotations

from pyconnect_agent.core.config.connector_keys import PluginDefaults, connector_config_def
from pyconnect_agent.core.config.worker_keys import any_list
from pyconnect_agent.core.java_text.regex import VALID_REGEX
from pyconnect_api.configdef import ConfigDef
from pyconnect_api.key_table import define_table

_TABLE = """
topics  LIST  HIGH  ""
    [Common, 4, LONG] Topics
    Topics to consume.
topics.regex  STRING  HIGH  ""
    [Common, 4, LONG] Topics regex
    Pattern of the topics to consume, instead of topics; matches whole names.
errors.deadletterqueue.topic.name  STRING  MEDIUM  ""
    [Error Handling, 6, MEDIUM] Dead Letter Queue Topic Name
    Topic that gets the records that could not be processed; blank for none.
errors.deadletterqueue.topic.replication.factor  SHORT  MEDIUM  3
    [Error Handling, 7, MEDIUM] Dead Letter Queue Topic Replication Factor
    Replicas of the dead letter topic when it is created.
errors.deadletterqueue.context.headers.enable  BOOLEAN  MEDIUM  false
    [Error Handling, 8, MEDIUM] Enable Error Context Headers
    Whether headers __connect.errors.* hold the error.
"""


def sink_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of sink connectors."""
    return define_table(
        connector_config_def(defaults), _TABLE, {"topics": any_list(), "topics.regex": VALID_REGEX}
    )
