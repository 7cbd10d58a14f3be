"""Which plugins the worker has, found out without importing plugin code into the supervisor.

Composition root. Kafka: Plugins.initLoaders. Only when there is more than the built-in plugins does
a process of its own import the others, to learn what is a source or a sink and in which version.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import subprocess
import sys
from collections.abc import Mapping

from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.plugin_catalog import Catalog, PluginKind
from pyconnect_agent.plugins.discovery import installed_catalog, plugin_directories
from pyconnect_agent.plugins.scan import ALL_PLUGINS, SCAN_TIMEOUT_S, ScanResult
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
    result = _scan(discovery, path or [])
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


def check_converters(catalog: Catalog, config: WorkerConfig) -> None:
    """Raise ConfigException for a default converter that is no plugin's name and no Python path."""
    for key, name in (
        ("key.converter", config.key_converter),
        ("value.converter", config.value_converter),
        ("header.converter", config.header_converter),
    ):
        if not catalog.find(name) and not _importable(name):
            raise invalid_value(key, name, f"Class {name} could not be found.")


def _importable(name: str) -> bool:
    module = name.replace(":", ".").rpartition(".")[0]
    try:
        return bool(module) and importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _scan(discovery: str, plugin_path: list[str]) -> ScanResult:
    command = [sys.executable, "-m", "pyconnect_agent.plugins.scan", ALL_PLUGINS, discovery]
    try:
        done = subprocess.run(
            [*command, *plugin_path],
            capture_output=True,
            text=True,
            timeout=SCAN_TIMEOUT_S * 2,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired as error:
        raise WorkerConfigError(
            "Plugins took too long to load; check plugin.path for one that hangs when imported."
        ) from error
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode != 0:
        reason = last if done.returncode == 2 else done.stderr.strip().rpartition("\n")[2]
        raise WorkerConfigError(f"Plugins could not be loaded: {reason}")
    return ScanResult.from_json(json.loads(last))
