"""The job of a task's Java process: its classes and their options.

Layer: tasks. Names are looked up here, so that the Java process gets full names and class paths.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyconnect_agent.core.config.connector_config import ConnectorSettings
from pyconnect_agent.core.config.prefixes import below
from pyconnect_agent.core.plugins.catalog import (
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.plugins.java_classes import java_class
from pyconnect_agent.tasks.setup.plugins import VERSION_OPTION, aliases, converter_choice
from pyconnect_agent.tasks.setup.worker_view import WorkerView
from pyconnect_api import CONVERTER_TYPE_CONFIG, ConfigException


@dataclass(frozen=True, slots=True)
class _Names:
    """`jars`: the connector's, where classes are that no list has."""

    worker: WorkerView
    jars: tuple[str, ...]

    def find(
        self, name: str, kind: PluginKind, key: str, version_range: str | None
    ) -> dict[str, object]:
        """Return the class of a name that a config has at `key`. Raises ConfigException."""
        if not name:
            raise ConfigException(
                f'Missing required configuration "{key}" which has no default value.'
            )
        try:
            found = java_class(self.worker.catalog, name, kind, version_range, jars=self.jars)
        except PluginVersionNotFoundError as exc:
            raise ConfigException(str(exc)) from exc
        except PluginNotFoundError as exc:
            raise ConfigException(
                f"Invalid value {name} for configuration {key}: Class {name} could not be found."
            ) from exc
        return {**found.to_json(), "version": found.version}


def conversions(
    worker: WorkerView, config: Mapping[str, str], jars: tuple[str, ...]
) -> dict[str, Any]:
    """Return the converters and transformations of a connector. Raises ConfigException.

    `jars`: the connector's, where classes are that no list has.
    """
    settings = ConnectorSettings.parse(config)
    names = _Names(worker, jars)
    stages = [_stage(names, config, alias) for alias in aliases(config, "transforms")]
    return {
        "converters": {
            "key": _converter(names, "key", config, worker.config.key_converter),
            "value": _converter(names, "value", config, worker.config.value_converter),
            "header": _converter(names, "header", config, worker.config.header_converter),
        },
        "transforms": stages,
        "toleratesAll": settings.tolerate_all_errors,
        "showsRecords": settings.errors_log_enable and settings.errors_log_include_messages,
        "retryTimeoutMs": settings.errors_retry_timeout_ms,
        "retryDelayMaxMs": settings.errors_retry_delay_max_ms,
    }


def _converter(names: _Names, role: str, config: Mapping[str, str], workers: str) -> dict[str, Any]:
    key = f"{role}.converter"
    kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
    name, options = converter_choice(names.worker, key, config, workers)
    found = names.find(name, kind, key, options.get(VERSION_OPTION))
    return {**found, "config": {**options, CONVERTER_TYPE_CONFIG: role}}


def _stage(names: _Names, config: Mapping[str, str], alias: str) -> dict[str, Any]:
    prefix = f"transforms.{alias}."
    options = below(config, prefix)
    # These two are no settings of the transformation's own.
    predicate = options.pop("predicate", None)
    negate = options.pop("negate", "false").strip().lower() == "true"
    stage = {"alias": alias, **_plugin(names, prefix, options, PluginKind.TRANSFORMATION)}
    if predicate is not None:
        prefix = f"predicates.{predicate}."
        found = _plugin(names, prefix, below(config, prefix), PluginKind.PREDICATE)
        stage |= {"predicate": {"alias": predicate, **found}, "negate": negate}
    return stage


def _plugin(
    names: _Names, prefix: str, options: Mapping[str, str], kind: PluginKind
) -> dict[str, Any]:
    version = options.get(VERSION_OPTION)
    found = names.find(options.get("type", ""), kind, f"{prefix}type", version)
    return {**found, "config": dict(options)}
