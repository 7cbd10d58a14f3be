"""Find plugins by metadata, and import them for the facts that metadata lacks: kind and version.

Kafka: `ReflectionScanner` and `ServiceLoaderScanner`. The module imports plugins, so it runs in
separate processes: `scan` in a child of the worker process, and one more for each directory of
``plugin.path``, because the dependencies of two plugins may conflict. A plugin that fails is
reported and left out.

Entry points correspond to Java's service files: a distribution lists its classes in the groups
below as ``<alias> = package.module:Class``. A directory of ``plugin.path`` holds plugins as
directories, each filled by ``pip install --target``.
"""

from __future__ import annotations

import inspect
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from pyconnect_agent.core.plugin_catalog import (
    CONNECT_VERSION,
    ApachesPlugin,
    Catalog,
    PluginDesc,
    PluginKind,
)
from pyconnect_agent.core.reporting import exit_reason
from pyconnect_agent.plugins.loading import (
    BASE_CLASSES,
    activate,
    builtin_plugins,
    import_plugin_module,
    load,
)
from pyconnect_api.connector import Connector, SinkConnector, SourceConnector
from pyconnect_api.errors import ConnectException
from pyconnect_api.task import UNDEFINED_VERSION
from pyconnect_clients.plugin_jars.locations import is_java_location

ENTRY_POINT_GROUPS = {
    "pyconnect.connectors": PluginKind.CONNECTOR,
    "pyconnect.converters": PluginKind.CONVERTER,
    "pyconnect.header_converters": PluginKind.HEADER_CONVERTER,
    "pyconnect.transforms": PluginKind.TRANSFORMATION,
    "pyconnect.predicates": PluginKind.PREDICATE,
    "pyconnect.config_providers": PluginKind.CONFIG_PROVIDER,
}


def installed_catalog(release: str = CONNECT_VERSION) -> Catalog:
    """Return the built-in plugins and those of distributions installed beside the worker."""
    return Catalog(builtin_plugins(release) + entry_point_plugins(metadata.distributions()))


def plugin_directories(plugin_path: Sequence[str]) -> tuple[Path, ...]:
    """Return the directories that each hold one plugin, sorted within each entry of the path.

    Entries that cannot be read, hidden directories and those of Java plugins are left out.
    """
    found: list[Path] = []
    for entry in plugin_path:
        with suppress(OSError):  # a jar, or an entry about which `java_locations` warns
            found += sorted(
                item
                for item in Path(entry).iterdir()
                if item.is_dir() and not item.name.startswith(".") and not is_java_location(item)
            )
    return tuple(found)


def directory_entry_points(directory: Path) -> tuple[PluginDesc, ...]:
    """Return the plugins that the distributions in a plugin directory list."""
    return entry_point_plugins(metadata.distributions(path=[str(directory)]), directory=directory)


def entry_point_plugins(
    distributions: Iterable[metadata.Distribution], *, directory: Path | None = None
) -> tuple[PluginDesc, ...]:
    """Return the plugins that the distributions list; of equal names the first one found counts."""
    plugins: dict[tuple[str, PluginKind], PluginDesc] = {}
    for distribution in distributions:
        for entry_point in distribution.entry_points:
            kind = ENTRY_POINT_GROUPS.get(entry_point.group)
            if kind is None or not entry_point.attr:
                continue
            desc = PluginDesc(
                class_name=f"{entry_point.module}.{entry_point.attr}",
                python_path=f"{entry_point.module}:{entry_point.attr}",
                kind=kind,
                version=distribution.version,
                location="classpath" if directory is None else str(directory),
                search_path=None if directory is None else str(directory),
                extra_aliases=(entry_point.name,),
            )
            plugins.setdefault((desc.class_name, kind), desc)
    return tuple(plugins.values())


def known_class(catalog: Catalog, name: str) -> str:
    """Return the full name of a class without importing it. Raises LookupError when there is none.

    Used to check a worker's properties. For an unlisted full Python path only the top-level package
    is looked up, because a further look-up would run its code.
    """
    found = catalog.find(name)
    if found:
        return found[0].class_name
    package, dot, _ = name.replace(":", ".").partition(".")
    if dot and package.isidentifier() and find_spec(package) is not None:
        return name
    raise LookupError(name)


MODULE = "pyconnect_agent.plugins.scan"
"""This module's name; `__name__` differs in the process that runs it."""
SCAN_TIMEOUT_S = 60.0
ALL_PLUGINS = "--all"
"""The argument for a scan of everything; after the discovery come the release of Connect and the
entries of plugin.path.
"""


@dataclass(frozen=True, slots=True)
class ScanResult:
    """The plugins; ``warnings`` name those that were left out, with the reason."""

    catalog: Catalog
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return a form that survives JSON and pipes."""
        return {
            "plugins": [plugin.to_json() for plugin in self.catalog.plugins],
            "warnings": list(self.warnings),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, list[object]]) -> ScanResult:
        """Return the result from its :meth:`to_json` form."""
        plugins = [PluginDesc.from_json(item) for item in data["plugins"] if isinstance(item, dict)]
        return cls(Catalog(tuple(plugins)), tuple(map(str, data["warnings"])))


def scan(
    plugin_path: Sequence[str] = (), discovery: str = "hybrid_warn", release: str = CONNECT_VERSION
) -> ScanResult:
    """Return every plugin this worker can run.

    ``discovery`` is the value of ``plugin.discovery``: with ``service_load`` only entry points
    count; with ``only_scan`` and the hybrid modes the modules of plugin directories without entry
    points are searched too. With ``hybrid_fail`` a plugin found in this way raises
    ConnectException.
    """
    plugins: list[PluginDesc] = []
    warnings: list[str] = []
    for plugin in installed_catalog(release).plugins:
        _add_examined(plugin, plugins, warnings)
    for directory in plugin_directories(plugin_path):
        result = _scan_in_subprocess(directory, discovery)
        plugins += result.catalog.plugins
        warnings += result.warnings
    return ScanResult(Catalog(tuple(plugins)), tuple(warnings))


def scan_directory(directory: Path, discovery: str) -> ScanResult:
    """Return the plugins of one directory; imports them into this process."""
    activate(str(directory))
    plugins: list[PluginDesc] = []
    warnings: list[str] = []
    listed = directory_entry_points(directory)
    for plugin in listed:
        _add_examined(plugin, plugins, warnings)
    if discovery == "service_load" or listed:
        return ScanResult(Catalog(tuple(plugins)), tuple(warnings))
    found = list(_search_modules(directory, warnings))
    if found and discovery == "hybrid_fail":
        names = ", ".join(sorted({plugin.class_name for plugin in found}))
        raise ConnectException(
            f"Plugins without an entry point in {directory}: {names}. Add entry points in the "
            "groups pyconnect.*, or set plugin.discovery=hybrid_warn."
        )
    if found and discovery == "hybrid_warn":
        warnings.append(
            f"Plugins in {directory} were found by searching its modules; add entry points"
        )
    return ScanResult(Catalog((*plugins, *found)), tuple(warnings))


def _scan_in_subprocess(directory: Path, discovery: str) -> ScanResult:
    try:
        done = subprocess.run(
            [sys.executable, "-m", MODULE, str(directory), discovery],
            capture_output=True,
            text=True,
            timeout=SCAN_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return _nothing(f"Plugins in {directory} took longer than {SCAN_TIMEOUT_S:.0f} s to load")
    # The result is the last line: plugins may print while they are imported.
    last = done.stdout.strip().rpartition("\n")[2]
    if done.returncode == 2:
        raise ConnectException(last)
    if done.returncode != 0:
        reason = exit_reason(done.returncode, done.stderr)
        return _nothing(f"Plugins in {directory} could not be scanned: {reason}")
    return ScanResult.from_json(json.loads(last))


def _nothing(warning: str) -> ScanResult:
    return ScanResult(Catalog(()), (warning,))


def _add_examined(plugin: PluginDesc, plugins: list[PluginDesc], warnings: list[str]) -> None:
    """Add the plugin with its true kind and version, or a warning."""
    if not plugin.python_path.startswith("pyconnect_agent.builtin."):
        try:
            loaded = load(plugin)
        except ConnectException as error:
            warnings.append(str(error))
            return
        if plugin.kind.is_connector:
            kind = PluginKind.SINK if issubclass(loaded, SinkConnector) else PluginKind.SOURCE
            version = _connector_version(loaded) or plugin.version
            plugin = replace(plugin, kind=kind, version=version)
    plugins.append(plugin)


def _connector_version(loaded: type) -> str | None:
    try:
        instance = loaded()
        assert isinstance(instance, Connector)
        version = instance.version()
        unknown = version == UNDEFINED_VERSION or isinstance(instance, ApachesPlugin)
        return None if unknown else version
    # Both calls run the plugin's code; a plugin without a version is still usable.
    except Exception:  # noqa: BLE001  plugin code
        return None


def _search_modules(directory: Path, warnings: list[str]) -> Iterator[PluginDesc]:
    """Yield the classes that modules directly in the directory or its packages define."""
    for module in pkgutil.iter_modules([str(directory)]):
        names = [module.name]
        if module.ispkg:
            within = pkgutil.iter_modules([str(directory / module.name)])
            names += [f"{module.name}.{child.name}" for child in within]
        for name in names:
            try:
                yield from _plugins_of_module(directory, name)
            except ConnectException as error:
                warnings.append(str(error))


def _plugins_of_module(directory: Path, name: str) -> Iterator[PluginDesc]:
    module = import_plugin_module(name)
    no_task = (SourceConnector.task_class, SinkConnector.task_class)
    for class_name, candidate in inspect.getmembers(module, inspect.isclass):
        if candidate.__module__ != name or inspect.isabstract(candidate):
            continue
        if (
            issubclass(candidate, Connector)
            and candidate.task_type is None
            and candidate.task_class in no_task
        ):
            continue  # a base class of other connectors
        for kind, base in BASE_CLASSES.items():
            if kind is not PluginKind.CONNECTOR and issubclass(candidate, base):
                version = _connector_version(candidate) if kind.is_connector else None
                yield PluginDesc(
                    class_name=f"{name}.{class_name}",
                    python_path=f"{name}:{class_name}",
                    kind=kind,
                    version=version,
                    location=str(directory),
                    search_path=str(directory),
                )


def main(arguments: Sequence[str]) -> int:
    """Scan the directory ``arguments[0]`` and print the result as JSON; return 2 when refused."""
    what, discovery, *plugin_path = arguments
    try:
        if what == ALL_PLUGINS:
            release, *entries = plugin_path
            result = scan(entries, discovery, release)
        else:
            result = scan_directory(Path(what), discovery)
    except ConnectException as error:
        sys.stdout.write(f"\n{error}\n")
        return 2
    sys.stdout.write("\n" + json.dumps(result.to_json()) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
