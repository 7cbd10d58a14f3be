"""The plugins of the worker, found without importing plugin code into the worker process.

Composition root. Kafka: Plugins.initLoaders. If there are more plugins than the built-in ones, a
separate process imports the others to find out their kinds and versions; another one reads jars. If
there are config providers, another process resolves the worker's properties with them.
"""

import json
import logging
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from pyconnect_agent.core.config.agent_keys import KAFKA_RELEASES
from pyconnect_agent.core.config.worker_config import WorkerConfig
from pyconnect_agent.core.errors import WorkerConfigError
from pyconnect_agent.core.plugin_catalog import Catalog, PluginKind, spoken_release
from pyconnect_agent.core.reporting import exit_reason
from pyconnect_agent.core.rest_access import EXTENSION, EXTENSION_NAMES
from pyconnect_agent.java_processes import jar_scan
from pyconnect_agent.java_processes.discovery import JavaDiscovery
from pyconnect_agent.java_processes.installation import (
    KAFKA_HOME_KEY,
    find_installation,
    java_cache,
    kafka_release,
)
from pyconnect_agent.java_processes.jar_scan import ClassPath, JarScan
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation, JavaOptions
from pyconnect_agent.java_processes.questions import JavaQuestions, make_archive
from pyconnect_agent.plugins import resolve_worker, scan
from pyconnect_agent.plugins.scan import installed_catalog, known_class, plugin_directories
from pyconnect_api.configdef import ConfigType, invalid_value, parse_type
from pyconnect_api.errors import ConnectException
from pyconnect_clients.plugin_jars.locations import java_locations

LOG = logging.getLogger(__name__)

UNUSABLE = "Java plugins cannot be used"


def find_plugins(properties: Mapping[str, str]) -> Catalog:
    """Return the worker's plugins; `properties` are the worker's, unresolved.

    Raises WorkerConfigError when `plugin.discovery=hybrid_fail` refuses a plugin.
    """
    path = parse_type("plugin.path", properties.get("plugin.path"), ConfigType.LIST)
    assert path is None or isinstance(path, list)
    discovery = properties.get("plugin.discovery", "hybrid_warn").strip().lower()
    release = spoken_release(properties)
    python = installed_catalog(release)
    undetermined = any(plugin.kind is PluginKind.CONNECTOR for plugin in python.plugins)
    if undetermined or plugin_directories(path or ()):
        scanned = _last_line_of(
            [scan.MODULE, scan.ALL_PLUGINS, discovery, release, *(path or ())],
            "",
            "Plugins could not be loaded",
        )
        result = scan.ScanResult.from_json(json.loads(scanned))
        _warn(result.warnings)
        python = result.catalog
    locations = java_locations(path or ())
    if not locations and not properties.get(KAFKA_HOME_KEY):
        return python
    java = _java_plugins(properties, locations, discovery, release)
    return Catalog(python.plugins + java.plugins, java.problems)


def _java_plugins(
    properties: Mapping[str, str], locations: Sequence[Path], discovery: str, spoken: str
) -> Catalog:
    """Return the Java plugins; none without Java or Kafka's jars, as Python plugins still run."""

    @cache
    def installation_with(kafka: str) -> JavaInstallation:
        found = find_installation(properties, kafka=kafka, fetch=True)
        make_archive(found)
        return found

    try:
        release = kafka_release(installation_with("").kafka_jars)
    except ConnectException as error:
        LOG.error(UNUSABLE, extra={"reason": str(error)})
        return Catalog((), (f"{UNUSABLE}: {error}",))
    if release != spoken:
        LOG.warning(
            "Java plugins run with the jars of another release of Kafka",
            extra={"jars": release, "worker": spoken},
        )

    def scan_jars(class_paths: Sequence[ClassPath], kafka_jars: Sequence[str]) -> Sequence[JarScan]:
        given = jar_scan.to_input(class_paths, kafka_jars)
        last = _last_line_of([jar_scan.MODULE], given, "Jars could not be read")
        return jar_scan.from_output(last)

    def describe(kafka: str, classes: Sequence[JavaClass]) -> Sequence[Mapping[str, object]]:
        # Without the worker's options, as their references are not resolved yet.
        with JavaQuestions(lambda: installation_with(kafka), JavaOptions()) as questions:
            return questions.describe(classes)

    try:
        found = JavaDiscovery(
            installation_with,
            scan_jars,
            describe,
            java_cache() / "plugins",
            discovery,
            releases=properties.get(KAFKA_RELEASES, ""),
        ).find(locations)
    except ConnectException as error:
        raise WorkerConfigError(f"Plugins could not be loaded: {error}") from error
    _warn((*found.problems, *found.warnings))
    for location, kafka in {(each.location, each.kafka) for each in found.plugins if each.kafka}:
        LOG.info("plugins run with another Kafka", extra={"location": location, "kafka": kafka})
    return Catalog(found.plugins, found.problems)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        LOG.warning("plugin problem", extra={"reason": warning})


def connector_type(catalog: Catalog, config: Mapping[str, str | None] | None) -> str:
    """Return `source`, `sink`, or `unknown` if this worker does not know the class."""
    name = (config or {}).get("connector.class")
    kinds = {plugin.kind for plugin in catalog.find(name)} if name else set()
    if PluginKind.SOURCE in kinds:
        return "source"
    return "sink" if PluginKind.SINK in kinds else "unknown"


def resolve_properties(properties: Mapping[str, str], catalog: Catalog) -> dict[str, str]:
    """Return the worker's properties with every `${provider:path:key}` replaced.

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
    """Raise ConfigException for a default converter that is neither a plugin nor a Python path."""
    for key, name in config.converters.items():
        try:
            known_class(catalog, name)
        except LookupError as error:
            raise invalid_value(key, name, f"Class {name} could not be found.") from error


def check_rest_extensions(config: WorkerConfig) -> None:
    """Raise ConfigException for a REST extension that this worker does not have.

    An ignored extension could be the only access control.
    """
    for name in config.rest_extension_classes:
        if name not in EXTENSION_NAMES:
            raise invalid_value(
                "rest.extension.classes",
                name,
                f"Class {name} could not be found. This worker runs no Java extensions; of them it"
                f" has {EXTENSION} only. Remove the key, and name users by it, ask for client"
                " certificates (ssl.client.auth), or put a proxy before REST that authenticates.",
            )


def _last_line_of(module: Sequence[str], given: str, failure: str) -> str:
    """Run a module that may import plugins; return its last line, as plugins may print lines too.

    With exit code 2 the last line is the reason. Raises WorkerConfigError.
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
