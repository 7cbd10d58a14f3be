"""The framework's keys of a connector config: their definitions, and their values.

Corresponds to ``ConnectorConfig``, ``SourceConnectorConfig`` and ``SinkConnectorConfig`` of Kafka
Connect 4.3.1: same order, groups and display names, since user interfaces build forms from them.
Documentation is in our own words. Values are typed and immutable, and parsed after variables are
resolved. A connector reads its own settings from the map that it is started with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pyconnect_agent.core.config.plugin_source import (
    PluginClass,
    PluginClassValidator,
    PluginSource,
    Recommended,
)
from pyconnect_agent.core.config.topic_creation import (
    TOPIC_CREATION_GROUPS,
    TopicCreationGroup,
    topic_creation_groups,
)
from pyconnect_agent.core.config.worker_keys import any_list
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.java_text.regex import VALID_REGEX
from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_api.config_types import or_none, unique
from pyconnect_api.configdef import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyString,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidString,
    Width,
    define_table,
)
from pyconnect_api.converter import Converter, HeaderConverter

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


COMMON = "Common"

CONVERTERS: Mapping[str, tuple[type, PluginKind]] = {
    "key.converter": (Converter, PluginKind.CONVERTER),
    "value.converter": (Converter, PluginKind.CONVERTER),
    "header.converter": (HeaderConverter, PluginKind.HEADER_CONVERTER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDefaults:
    """The defaults of the plugin keys of one connector configuration.

    ``connector_versions``, latest last, are recommended; without ``plugins`` nothing else is.
    ``converters`` and ``versions`` are keyed by configuration key (``key.converter``,
    ``key.converter.plugin.version`` and so on).
    """

    connector_versions: tuple[str, ...] = ()
    plugins: PluginSource | None = None
    converters: Mapping[str, PluginClass | None]
    versions: Mapping[str, str | None]

    @classmethod
    def none(cls) -> PluginDefaults:
        """Return the defaults for a definition without a worker and its plugins."""
        return cls(converters={}, versions={})


_IDENTITY = """
name  STRING  HIGH  !
    [Common, 1, MEDIUM] Connector name
    Name of the connector, unique in the cluster.
connector.class  STRING  HIGH  !
    [Common, 2, LONG] Connector class
    Class of the connector: a full name, or a short one such as FileStreamSource.
"""
_TASK_LIMITS = """
tasks.max  INT  HIGH  1
    [Common, 4, SHORT] Tasks max
    Most tasks the connector may split its work into.
tasks.max.enforce  BOOLEAN  LOW  true
    [Common, 5, SHORT] Enforce tasks max
    (Deprecated) Whether a connector that makes more tasks than tasks.max fails; if false they all
    run.
"""
_PLUGINS_AND_ERRORS = """
transforms  LIST  LOW  ""
    [Transforms, 12, LONG] Transforms
    Aliases of the transformations, each set up below transforms.<alias>.
predicates  LIST  LOW  ""
    [Predicates, 13, LONG] Predicates
    Aliases of the predicates, each set up below predicates.<alias>.
config.action.reload  STRING  LOW  restart
    [Common, 14, MEDIUM] Reload Action
    Action when a value from a config provider expires: restart the connector, or none.
errors.retry.timeout  LONG  MEDIUM  0
    [Error Handling, 1, MEDIUM] Retry Timeout for Errors
    Time in milliseconds for which a failing operation is repeated; -1: without end.
errors.retry.delay.max.ms  LONG  MEDIUM  60000
    [Error Handling, 2, MEDIUM] Maximum Delay Between Retries for Errors
    Longest wait between two attempts.
errors.tolerance  STRING  MEDIUM  none
    [Error Handling, 3, SHORT] Error Tolerance
    none: a record that cannot be processed fails the task; all: it is skipped.
errors.log.enable  BOOLEAN  MEDIUM  false
    [Error Handling, 4, SHORT] Log Errors
    Whether every failed record is logged.
errors.log.include.messages  BOOLEAN  MEDIUM  false
    [Error Handling, 5, SHORT] Log Error Details
    Whether the log line includes the record; for source records this shows the data.
"""


def require_addressable(name: str | None) -> None:
    """Raise BadRequestError for a name of a new connector that no URL can address.

    Apache's worker accepts `.` and `..`, but clients and proxies resolve such a segment of a path.
    A user could not see or delete the connector.
    """
    if name in {".", ".."}:
        raise BadRequestError(
            f"Connector name '{name}' is not possible: clients and proxies resolve it as a part of"
            " a path, so that no request could reach the connector"
        )


def connector_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of any connector."""
    definition = define_table(
        ConfigDef(), _IDENTITY, {"name": NonEmptyStringWithoutControlChars()}
    ).define(
        "connector.plugin.version",
        ConfigType.STRING,
        default=defaults.connector_versions[-1] if defaults.connector_versions else None,
        importance=Importance.MEDIUM,
        documentation="Version or version range of the connector; the latest if unset.",
        group=COMMON,
        order_in_group=3,
        width=Width.MEDIUM,
        display_name="Connector version",
        recommender=Recommended(lambda _: defaults.connector_versions),
    )
    define_table(definition, _TASK_LIMITS, {"tasks.max": Range.at_least(1)})
    for order, kind in ((6, "key"), (8, "value"), (10, "header")):
        _define_converter(definition, defaults, kind, order)
    return define_table(
        definition,
        _PLUGINS_AND_ERRORS,
        {
            "transforms": unique("transformation aliases"),
            "predicates": unique("predicate aliases"),
            "config.action.reload": ValidString.one_of("none", "restart"),
            "errors.tolerance": ValidString.one_of("none", "all"),
        },
    )


def _define_converter(
    definition: ConfigDef, defaults: PluginDefaults, kind: str, order: int
) -> None:
    name = f"{kind}.converter"
    (base, plugin_kind), plugins = CONVERTERS[name], defaults.plugins

    def versions(parsed: Mapping[str, object]) -> tuple[str, ...] | None:
        chosen = parsed.get(name)
        if chosen is None:
            return None
        return plugins.versions(str(chosen), plugin_kind) if plugins else ()

    definition.define(
        name,
        ConfigType.CLASS,
        default=defaults.converters.get(name),
        validator=PluginClassValidator(base),
        importance=Importance.LOW,
        documentation=(
            f"Converter of record {kind}s, with settings below {name}.; default: the worker's "
            "converter with its settings."
        ),
        group=COMMON,
        order_in_group=order,
        width=Width.SHORT,
        display_name=f"{kind.capitalize()} converter class",
        recommender=Recommended(lambda _: plugins.class_names(plugin_kind) if plugins else ()),
    )
    definition.define(
        f"{name}.plugin.version",
        ConfigType.STRING,
        default=defaults.versions.get(f"{name}.plugin.version"),
        importance=Importance.LOW,
        documentation=f"Version or version range of the {kind} converter.",
        group=COMMON,
        order_in_group=order + 1,
        width=Width.SHORT,
        display_name=f"{kind.capitalize()} converter version",
        recommender=Recommended(versions),
    )


_SINK_TABLE = """
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
        connector_config_def(defaults),
        _SINK_TABLE,
        {"topics": any_list(), "topics.regex": VALID_REGEX},
    )


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

    ``errors_retry_timeout_ms``: -1 means retries without end, 0 no retry. A converter is None if
    the connector uses the worker's.
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
    """Settings of a sink connector: ``topics`` is empty when the config has a pattern instead.

    ``dlq_topic`` None: there is no dead letter queue.
    """

    topics: tuple[str, ...]
    dlq_topic: str | None
    dlq_replication_factor: int
    dlq_context_headers: bool

    @property
    def has_errant_record_reporter(self) -> bool:
        """Whether a task's reports of errant records go to a dead letter queue or the log."""
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
    ``offsets_topic`` None means the worker's topic; ``topic_creation`` is empty when not used.
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
