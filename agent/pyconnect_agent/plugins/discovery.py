"""Find plugins by the metadata of installed distributions, without importing them.

Layer: plugins. Entry points correspond to Java's service files: a distribution lists its classes in
the groups below as ``<alias> = package.module:Class``. A directory of ``plugin.path`` holds plugins
as directories, each filled by ``pip install --target``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_agent.core.plugins.catalog import Catalog, PluginDesc, PluginKind
from pyconnect_agent.plugins.builtin_table import builtin_plugins
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
        with suppress(OSError):  # a jar, or an entry of which `java_locations` warns
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
    """Return what the distributions list; a name found twice counts where it is found first."""
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
    """Return the full name of a class without importing it; LookupError when there is none.

    Used to check a worker's properties. For an unlisted full Python path only the top-level
    package is looked up, because a further look-up would run its code.
    """
    found = catalog.find(name)
    if found:
        return found[0].class_name
    package, dot, _ = name.replace(":", ".").partition(".")
    if dot and package.isidentifier() and find_spec(package) is not None:
        return name
    raise LookupError(name)
