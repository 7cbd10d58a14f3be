"""What the Java process of a task is told: its classes and their options.

Layer: tasks. Names are looked up here, so that the Java process gets full names and class paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.config.prefixes import below
from pyconnect_agent.core.plugins.catalog import (
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.java.launch import JavaClass
from pyconnect_agent.plugins.java_classes import java_class
from pyconnect_agent.tasks.setup.plugins import VERSION_OPTION, aliases, converter_choice
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_api import CONVERTER_TYPE_CONFIG, ConfigException

Find: TypeAlias = Callable[[str, PluginKind, str, str | None], JavaClass]
"""Returns the class of a name; takes its kind, the key to blame, and a version range."""


def conversions(
    worker: WorkerView, config: Mapping[str, str], jars: tuple[str, ...]
) -> dict[str, Any]:
    """Return the converters and transformations of a connector. Raises ConfigException.

    `jars`: the connector's, where classes are that no list has.
    """
    settings = ConnectorSettings.parse(config)
    find = partial(_found, worker, jars)
    stages = [_stage(find, config, alias) for alias in aliases(config, "transforms")]
    return {
        "converters": {
            "key": _converter(find, worker, "key", config, worker.config.key_converter),
            "value": _converter(find, worker, "value", config, worker.config.value_converter),
            "header": _converter(find, worker, "header", config, worker.config.header_converter),
        },
        "transforms": stages,
        "toleratesAll": settings.tolerate_all_errors,
        "retryTimeoutMs": settings.errors_retry_timeout_ms,
        "retryDelayMaxMs": settings.errors_retry_delay_max_ms,
    }


def _converter(
    find: Find, worker: WorkerView, role: str, config: Mapping[str, str], workers: str
) -> dict[str, Any]:
    key = f"{role}.converter"
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    name, options = converter_choice(worker, key, config, workers)
    found = find(name, kind, key, options.get(VERSION_OPTION))
    return {**found.to_json(), "config": {**options, CONVERTER_TYPE_CONFIG: role}}


def _stage(find: Find, config: Mapping[str, str], alias: str) -> dict[str, Any]:
    prefix = f"transforms.{alias}."
    options = below(config, prefix)
    predicate = options.get("predicate")
    negate = options.get("negate", "false").strip().lower() == "true"
    stage = _plugin(find, prefix, options, PluginKind.TRANSFORMATION)
    if predicate is not None:
        prefix = f"predicates.{predicate}."
        stage["predicate"] = _plugin(find, prefix, below(config, prefix), PluginKind.PREDICATE)
        stage["negate"] = negate
    return stage


def _plugin(
    find: Find, prefix: str, options: Mapping[str, str], kind: PluginKind
) -> dict[str, Any]:
    version = options.get(VERSION_OPTION)
    found = find(options.get("type", ""), kind, f"{prefix}type", version)
    return {**found.to_json(), "config": dict(options)}


def _found(
    worker: WorkerView,
    jars: tuple[str, ...],
    name: str,
    kind: PluginKind,
    key: str,
    version_range: str | None,
) -> JavaClass:
    if not name:
        raise ConfigException(f'Missing required configuration "{key}" which has no default value.')
    try:
        return java_class(worker.catalog, name, kind, version_range, jars=jars)
    except PluginVersionNotFoundError as exc:
        raise ConfigException(str(exc)) from exc
    except PluginNotFoundError as exc:
        raise ConfigException(
            f"Invalid value {name} for configuration {key}: Class {name} could not be found."
        ) from exc
