"""Which plugins the worker has, found out without importing plugin code into the worker process.

Composition root. Kafka: Plugins.initLoaders. Only when there is more than the built-in plugins does
a process of its own import the others, to learn what is a source or a sink and in which version;
and only when there are config providers does another one ask them for the worker's properties.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping, Sequence

from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.plugins.catalog import Catalog, PluginKind
from pyconnect_agent.core.process_exit import exit_reason
from pyconnect_agent.plugins import resolve_worker, scan
from pyconnect_agent.plugins.discovery import installed_catalog, known_class, plugin_directories
from pyconnect_api.configdef import ConfigType, invalid_value, parse_type

LOG = logging.getLogger(__name__)


def find_plugins(properties: Mapping[str, str]) -> Catalog:
    """Return the worker's plugins; `properties` are the worker's, variables unresolved.

    Raises WorkerConfigError when `plugin.discovery=hybrid_fail` refuses one.
    """
    installed = installed_catalog()
    path = parse_type("plugin.path", properties.get("plugin.path"), ConfigType.LIST)
    assert path is None or isinstance(path, list)
    undetermined = any(plugin.kind is PluginKind.CONNECTOR for plugin in installed.plugins)
    if not undetermined and not plugin_directories(path or ()):
        return installed
    discovery = properties.get("plugin.discovery", "hybrid_warn").strip().lower()
    found = _last_line_of(
        [scan.MODULE, scan.ALL_PLUGINS, discovery, *(path or [])], "", "Plugins could not be loaded"
    )
    result = scan.ScanResult.from_json(json.loads(found))
    for warning in result.warnings:
        LOG.warning("plugin problem", extra={"reason": warning})
    return result.catalog


def connector_type(catalog: Catalog, config: Mapping[str, str | None] | None) -> str:
    """Return `source`, `sink`, or `unknown` when the class is not known here."""
    name = (config or {}).get("connector.class")
    kinds = {plugin.kind for plugin in catalog.find(name)} if name else set()
    if PluginKind.SOURCE in kinds:
        return "source"
    return "sink" if PluginKind.SINK in kinds else "unknown"


def resolve_properties(properties: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Return the worker's properties with `${provider:path:key}` replaced.

    Raises WorkerConfigError when a config provider cannot be made or fails.
    """
    if not properties.get("config.providers", "").strip():
        return dict(properties)
    resolved = _last_line_of(
        [resolve_worker.MODULE],
        resolve_worker.to_input(properties, catalog),
        "Config providers could not be used",
    )
    return {str(name): str(value) for name, value in json.loads(resolved).items()}


def check_converters(catalog: Catalog, config: WorkerConfig) -> None:
    """Raise ConfigException for a default converter that is no plugin's name and no Python path."""
    for key, name in (
        ("key.converter", config.key_converter),
        ("value.converter", config.value_converter),
        ("header.converter", config.header_converter),
    ):
        try:
            known_class(catalog, name)
        except LookupError as error:
            raise invalid_value(key, name, f"Class {name} could not be found.") from error


def check_rest_extensions(config: WorkerConfig) -> None:
    """Raise ConfigException when there are any.

    One that was ignored might be what keeps strangers out, such as Connect's basic authentication.
    """
    for name in config.rest_extension_classes:
        raise invalid_value(
            "rest.extension.classes",
            name,
            f"Class {name} could not be found. This worker runs no REST extensions: ask for client"
            " certificates (ssl.client.auth) or put a proxy before REST that authenticates, and"
            " remove the key.",
        )


def _last_line_of(module: Sequence[str], given: str, failure: str) -> str:
    """Run a module that imports plugins; return its last line, for they may print before it.

    An exit code of 2 says that the last line is the reason. Raises WorkerConfigError.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", *module],
            input=given,
            capture_output=True,
            text=True,
            timeout=scan.SCAN_TIMEOUT_S * 2,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise WorkerConfigError(
            f"{failure}: they took too long; check plugin.path and config.providers for one that"
            " hangs when it is imported or asked."
        ) from error
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0:
        reason = last if done.returncode == 2 else exit_reason(done.returncode, done.stderr)
        raise WorkerConfigError(f"{failure}: {reason}")
    return last
