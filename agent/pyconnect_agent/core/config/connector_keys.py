"""The keys the framework defines for every connector.

Layer: core. Corresponds to ``ConnectorConfig`` of Kafka Connect 4.3.1: same order, groups and
display names, since user interfaces build forms of them. Documentation is in our own words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_agent.core.config.plugin_recommenders import (
    ClassRecommender,
    FixedRecommender,
    VersionRecommender,
)
from pyconnect_agent.core.config.plugin_source import (
    PluginClass,
    PluginClassValidator,
    PluginSource,
)
from pyconnect_agent.core.plugins.catalog import PluginKind
from pyconnect_api.config_validators import unique
from pyconnect_api.configdef import (
    ConfigDef,
    ConfigType,
    Importance,
    NonEmptyStringWithoutControlChars,
    Range,
    ValidString,
    Width,
)
from pyconnect_api.converter import Converter, HeaderConverter

HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
COMMON, TRANSFORMS, PREDICATES, ERRORS = "Common", "Transforms", "Predicates", "Error Handling"

CONVERTERS: Mapping[str, tuple[type, PluginKind]] = {
    "key.converter": (Converter, PluginKind.CONVERTER),
    "value.converter": (Converter, PluginKind.CONVERTER),
    "header.converter": (HeaderConverter, PluginKind.HEADER_CONVERTER),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginDefaults:
    """The values that unset plugin keys of one connector configuration stand for.

    ``connector_versions`` are recommended; without ``plugins`` nothing else is. ``converters`` and
    ``versions`` are keyed by configuration key (``key.converter`` and
    ``connector.plugin.version``, ``key.converter.plugin.version`` and so on).
    """

    connector_versions: tuple[str, ...] = ()
    plugins: PluginSource | None = None
    converters: Mapping[str, PluginClass | None]
    versions: Mapping[str, str | None]

    @classmethod
    def none(cls) -> PluginDefaults:
        """Return the defaults where no worker and no plugins are at hand."""
        return cls(converters={}, versions={})


def connector_config_def(defaults: PluginDefaults) -> ConfigDef:
    """Return a new definition of the keys of any connector."""
    definition = ConfigDef()
    _define_identity(definition, defaults)
    _define_task_limits(definition)
    for order, kind in ((6, "key"), (8, "value"), (10, "header")):
        _define_converter(definition, defaults, kind, order)
    for order, name, group, kind in (
        (12, "transforms", TRANSFORMS, "transformation"),
        (13, "predicates", PREDICATES, "predicate"),
    ):
        definition.define(
            name,
            ConfigType.LIST,
            default=[],
            validator=unique(f"{kind} aliases"),
            importance=LOW,
            documentation=f"Aliases of the {kind}s, each set up below {name}.<alias>.",
            group=group,
            order_in_group=order,
            width=Width.LONG,
            display_name=group,
        )
    definition.define(
        "config.action.reload",
        ConfigType.STRING,
        default="restart",
        validator=ValidString.one_of("none", "restart"),
        importance=LOW,
        documentation=(
            "Action when a value from a config provider expires: restart the connector, or none."
        ),
        group=COMMON,
        order_in_group=14,
        width=Width.MEDIUM,
        display_name="Reload Action",
    )
    _define_error_handling(definition)
    return definition


def _define_identity(definition: ConfigDef, defaults: PluginDefaults) -> None:
    definition.define(
        "name",
        ConfigType.STRING,
        validator=NonEmptyStringWithoutControlChars(),
        importance=HIGH,
        documentation="Name of the connector, unique in the cluster.",
        group=COMMON,
        order_in_group=1,
        width=Width.MEDIUM,
        display_name="Connector name",
    )
    definition.define(
        "connector.class",
        ConfigType.STRING,
        importance=HIGH,
        documentation=(
            "Class of the connector: a full name, or a short one such as FileStreamSource."
        ),
        group=COMMON,
        order_in_group=2,
        width=Width.LONG,
        display_name="Connector class",
    )
    definition.define(
        "connector.plugin.version",
        ConfigType.STRING,
        default=defaults.versions.get("connector.plugin.version"),
        importance=MEDIUM,
        documentation="Version or version range of the connector; the latest if unset.",
        group=COMMON,
        order_in_group=3,
        width=Width.MEDIUM,
        display_name="Connector version",
        recommender=FixedRecommender(defaults.connector_versions),
    )


def _define_task_limits(definition: ConfigDef) -> None:
    definition.define(
        "tasks.max",
        ConfigType.INT,
        default=1,
        validator=Range.at_least(1),
        importance=HIGH,
        documentation="Most tasks the connector may split its work into.",
        group=COMMON,
        order_in_group=4,
        width=Width.SHORT,
        display_name="Tasks max",
    )
    definition.define(
        "tasks.max.enforce",
        ConfigType.BOOLEAN,
        default=True,
        importance=LOW,
        documentation=(
            "(Deprecated) Whether a connector that makes more tasks than tasks.max fails; if "
            "false they all run."
        ),
        group=COMMON,
        order_in_group=5,
        width=Width.SHORT,
        display_name="Enforce tasks max",
    )


def _define_converter(
    definition: ConfigDef, defaults: PluginDefaults, kind: str, order: int
) -> None:
    name = f"{kind}.converter"
    base, plugin_kind = CONVERTERS[name]
    definition.define(
        name,
        ConfigType.CLASS,
        default=defaults.converters.get(name),
        validator=PluginClassValidator(base),
        importance=LOW,
        documentation=(
            f"Converter of record {kind}s, with settings below {name}.; default: the worker's "
            "converter with its settings."
        ),
        group=COMMON,
        order_in_group=order,
        width=Width.SHORT,
        display_name=f"{kind.capitalize()} converter class",
        recommender=ClassRecommender(defaults.plugins, plugin_kind),
    )
    definition.define(
        f"{name}.plugin.version",
        ConfigType.STRING,
        default=defaults.versions.get(f"{name}.plugin.version"),
        importance=LOW,
        documentation=f"Version or version range of the {kind} converter.",
        group=COMMON,
        order_in_group=order + 1,
        width=Width.SHORT,
        display_name=f"{kind.capitalize()} converter version",
        recommender=VersionRecommender(defaults.plugins, name, plugin_kind),
    )


_ERROR_KEYS = (
    (
        "errors.retry.timeout",
        ConfigType.LONG,
        0,
        None,
        "Time in milliseconds for which a failing operation is repeated; -1: without end.",
        Width.MEDIUM,
        "Retry Timeout for Errors",
    ),
    (
        "errors.retry.delay.max.ms",
        ConfigType.LONG,
        60_000,
        None,
        "Longest wait between two attempts.",
        Width.MEDIUM,
        "Maximum Delay Between Retries for Errors",
    ),
    (
        "errors.tolerance",
        ConfigType.STRING,
        "none",
        ValidString.one_of("none", "all"),
        "none: a record that cannot be processed fails the task; all: it is skipped.",
        Width.SHORT,
        "Error Tolerance",
    ),
    (
        "errors.log.enable",
        ConfigType.BOOLEAN,
        False,
        None,
        "Whether every failed record is logged.",
        Width.SHORT,
        "Log Errors",
    ),
    (
        "errors.log.include.messages",
        ConfigType.BOOLEAN,
        False,
        None,
        "Whether the log line includes the record; for source records this shows the data.",
        Width.SHORT,
        "Log Error Details",
    ),
)
"""Name, type, default, validator, documentation, width, display name."""


def _define_error_handling(definition: ConfigDef) -> None:
    for order, (name, config_type, default, validator, text, width, display) in enumerate(
        _ERROR_KEYS, 1
    ):
        definition.define(
            name,
            config_type,
            default=default,
            validator=validator,
            importance=MEDIUM,
            documentation=text,
            group=ERRORS,
            order_in_group=order,
            width=width,
            display_name=display,
        )
