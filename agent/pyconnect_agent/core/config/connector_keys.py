"""The keys the framework defines for every connector, for sources and for sinks.

Corresponds to ``ConnectorConfig``, ``SourceConnectorConfig`` and ``SinkConnectorConfig`` of Kafka
Connect 4.3.1: same order, groups and display names, since user interfaces build forms of them.
Documentation is in our own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.plugin_source import (
    PluginClass,
    PluginClassValidator,
    PluginSource,
    Recommended,
)
from pyconnect_agent.core.config.topic_creation import TOPIC_CREATION_GROUPS
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
    """The values that unset plugin keys of one connector configuration stand for.

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
        """Return the defaults where no worker and no plugins are at hand."""
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

    Apache's worker accepts `.` and `..`, but clients and proxies resolve such a segment of a path:
    the connector could be neither seen nor deleted.
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
