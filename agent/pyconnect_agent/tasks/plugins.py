"""The plugins that convert and change a task's records, and checks of the values that they return.

Kafka: the plugins that `Worker.startTask` makes for tasks of either kind. A converter is the
connector's own, else the worker's. Java's type system makes connectors return texts; Python's does
not. An error of a check names the place and the type but never a value: it may be a secret. Offsets
of sinks are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, SupportsIndex

from pyconnect_agent.core.config import aliases, below
from pyconnect_agent.core.metric_values import (
    PREDICATE,
    TASK,
    TRANSFORMATION,
    Metric,
    MetricValue,
    tagged,
)
from pyconnect_agent.core.plugin_catalog import PluginKind
from pyconnect_agent.tasks.records import ChainPart, TransformationStage
from pyconnect_agent.tasks.worker_view import WorkerView
from pyconnect_api import (
    CONVERTER_TYPE_CONFIG,
    ConnectException,
    Connector,
    Converter,
    HeaderConverter,
    Predicate,
    SinkTask,
    SourceConnector,
    SourceRecord,
    SourceTask,
    TopicPartition,
    Transformation,
)

VERSION_OPTION = "plugin.version"
"""KIP-891: the option with a version or version range, beside that of the plugin's class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converters:
    key: Converter
    value: Converter
    header: HeaderConverter


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlugins:
    converters: Converters
    stages: Sequence[ChainPart]

    @classmethod
    def of(
        cls,
        worker: WorkerView,
        connector_config: Mapping[str, str],
        stages: Sequence[ChainPart] | None = None,
    ) -> TaskPlugins:
        """Make and configure the plugins; `stages` are already made.

        Raises ConfigException and the exceptions of the plugins.
        """
        return cls(
            converters=Converters(
                key=converter_of(worker, "key", connector_config),
                value=converter_of(worker, "value", connector_config),
                header=converter_of(worker, "header", connector_config),
            ),
            stages=stages_of(worker, connector_config) if stages is None else stages,
        )

    def close_with(self, closing: ExitStack) -> None:
        """Have `closing` close them at its end, transformations first, whatever fails."""
        for converter in (self.converters.key, self.converters.value, self.converters.header):
            closing.callback(converter.close)
        for stage in self.stages:
            closing.callback(stage.close)


def converter_of(worker: WorkerView, role: str, config: Mapping[str, str]) -> Any:
    """Make the `key`, `value` or `header` converter: the connector's, else the worker's.

    Options come from the config that names the class; the two are not merged.
    """
    is_header = role == "header"
    class_name, options = converter_choice(worker, role, config)
    converter = worker.new(
        HeaderConverter if is_header else Converter,
        class_name,
        PluginKind.HEADER_CONVERTER if is_header else PluginKind.CONVERTER,
        f"{role}.converter",
        options.get(VERSION_OPTION),
    )
    options = {**options, CONVERTER_TYPE_CONFIG: role}
    converter.configure(options, *(() if is_header else (role == "key",)))
    return converter


def converter_choice(
    worker: WorkerView, role: str, config: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    """Return a converter's class and options, both from the connector or both from the worker."""
    key = f"{role}.converter"
    if key in config:
        return config[key], below(config, f"{key}.")
    return getattr(worker.config, f"{role}_converter"), worker.config.with_prefix(f"{key}.")


def stages_of(
    worker: WorkerView, config: Mapping[str, str], wanted: Sequence[str] | None = None
) -> list[TransformationStage]:
    """Make and configure a connector's chain, or the transformations of the `wanted` aliases."""

    def made(base: Any, kind: PluginKind, prefix: str, options: dict[str, str]) -> Any:
        name, version = options.pop("type", ""), options.pop(VERSION_OPTION, None)
        plugin = worker.new(base, name, kind, f"{prefix}type", version)
        plugin.configure(options)
        return plugin

    stages: list[TransformationStage] = []
    for alias in aliases(config, "transforms") if wanted is None else wanted:
        options, predicate, negate = stage_options(config, alias)
        prefix = f"predicates.{predicate}."
        stages.append(
            TransformationStage(
                alias=alias,
                transformation=made(
                    Transformation, PluginKind.TRANSFORMATION, f"transforms.{alias}.", options
                ),
                predicate=None
                if predicate is None
                else made(Predicate, PluginKind.PREDICATE, prefix, below(config, prefix)),
                predicate_alias=predicate,
                negate=negate,
            )
        )
    return stages


def stage_options(config: Mapping[str, str], alias: str) -> tuple[dict[str, str], str | None, bool]:
    """Return a transformation's own options, its predicate's alias, and whether that is negated."""
    options = below(config, f"transforms.{alias}.")
    predicate = options.pop("predicate", None)
    return options, predicate, options.pop("negate", "false").strip().lower() == "true"


def many_values(converter: Converter, way: str) -> Any:
    """Return the converter's form of a conversion for many values; None without it.

    `way`: `to_connect` or `from_connect`. The form for many values is used only where a class
    defines it together with the form for one: a subclass that overrides only the latter is called
    for each value.
    """
    for names in (
        getattr(converter, "__dict__", {}),
        *(vars(kind) for kind in type(converter).__mro__),
    ):
        if f"{way}_many" in names:
            return getattr(converter, f"{way}_many")
        if f"{way}_data" in names:
            return None
    return None


def connector_and_task(connector: Connector, task: SourceTask | SinkTask) -> tuple[Metric, ...]:
    """Return the metrics of both; the task's tags are added where metrics are collected."""
    kind = "source" if isinstance(connector, SourceConnector) else "sink"
    texts = {"connector-type": kind, **_plugin("connector", connector), **_plugin("task", task)}
    return tagged({TASK: texts}, {})


def converters_and_stages(plugins: TaskPlugins) -> tuple[Metric, ...]:
    """Return the metrics of each plugin, with aliases as tags of stages (since Kafka 4.2).

    A built-in plugin is named as the Java class it stands for, others by their Python class.
    """
    converters = {
        **_plugin("key-converter", plugins.converters.key),
        **_plugin("value-converter", plugins.converters.value),
        **_plugin("header-converter", plugins.converters.header),
    }
    stages = [each for each in plugins.stages if isinstance(each, TransformationStage)]
    return (*tagged({TASK: converters}, {}), *stage_metrics(stages))


def stage_metrics(stages: Iterable[TransformationStage]) -> tuple[Metric, ...]:
    """Return the metrics of the class and version of each transformation and predicate."""
    metrics: list[Metric] = []
    for stage in stages:
        texts = _plugin("transform", stage.transformation)
        metrics += tagged({TRANSFORMATION: texts}, {"transform": stage.alias})
        if stage.predicate is not None and stage.predicate_alias is not None:
            texts = _plugin("predicate", stage.predicate)
            metrics += tagged({PREDICATE: texts}, {"predicate": stage.predicate_alias})
    return tuple(metrics)


def _plugin(role: str, plugin: object) -> dict[str, MetricValue]:
    kind = type(plugin)
    name = getattr(kind, "java_name", f"{kind.__module__}.{kind.__qualname__}")
    version = getattr(plugin, "version", lambda: None)()
    return {f"{role}-class": str(name), f"{role}-version": str(version or "undefined")}


def plain_task_configs(found: object, owner: str) -> tuple[dict[str, str | None], ...]:
    """Check the configs that `task_configs` of the class `owner` returned.

    Values may be None, as in Java.
    """
    place = f"{owner}.task_configs()"
    if not isinstance(found, Collection) or isinstance(found, str | bytes | Mapping):
        raise ConnectException(f"{place} returned {type_name(found)}, expected a list of mappings")
    configs: list[dict[str, str | None]] = []
    for number, given in enumerate(found):
        at = f"{place}[{number}]"
        if not isinstance(given, Mapping):
            raise ConnectException(f"{at} is of type {type_name(given)}, expected a mapping")
        config: dict[str, str | None] = {}
        for key, value in given.items():
            name = _text(key, f"{at}: the key {key!r}")
            config[name] = None if value is None else _text(value, f"{at}: the value of {name!r}")
        configs.append(config)
    return tuple(configs)


def plain_records(found: Any, owner: str) -> Sequence[SourceRecord]:
    """Check the records that `poll` of the class `owner` returned, of a list only the first."""
    wrong = None
    if not isinstance(found, Sequence) or isinstance(found, str):
        wrong = type_name(found)
    elif isinstance(found, list | tuple) and found and not isinstance(found[0], SourceRecord):
        wrong = f"a list of {type_name(found[0])}"
    if wrong is not None:
        raise ConnectException(
            f"{owner}.poll returned {wrong}; it returns a list of SourceRecord, or None"
        )
    return found  # type: ignore[no-any-return]


def plain_offsets(found: object, owner: str) -> Mapping[TopicPartition, int]:
    """Check the offsets that `pre_commit` of the class `owner` returned, as Java's types do."""
    place = f"{owner}.pre_commit() (in Java: preCommit)"
    if not isinstance(found, Mapping):
        raise ConnectException(
            f"{place} returned {type_name(found)}; it must return the offsets to commit, or an"
            " empty mapping"
        )
    for partition, offset in found.items():
        if not isinstance(offset, SupportsIndex) or offset.__index__() < 0:
            raise ConnectException(f"{place} returned the offset {offset!r} for {partition}")
    return found


def plain_version(found: object, owner: str) -> str | None:
    """Check the version that the connector or task `owner` returned."""
    return None if found is None else _text(found, f"version() of the {owner}")


def type_name(value: object) -> str:
    """Return the name of a value's type, with its module unless the type is built in."""
    kind = type(value)
    name = kind.__qualname__
    return name if kind.__module__ == "builtins" else f"{kind.__module__}.{name}"


def _text(value: object, place: str) -> str:
    """Return a plain str: subclasses such as StrEnum may override conversions."""
    if not isinstance(value, str):
        raise ConnectException(f"{place} is of type {type_name(value)}, expected str")
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise ConnectException(f"{place} is not valid Unicode: {exc.reason}") from None
    return text
