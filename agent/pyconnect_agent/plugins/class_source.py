"""Plugin classes by name, imported on demand. Runs in child processes only.

Corresponds to the look-up half of ``Plugins`` of Kafka Connect. Implements
`core.config.plugin_source.PluginSource`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

from pyconnect_agent.core.config.plugin_source import PluginClass, PluginSource
from pyconnect_agent.core.plugin_catalog import Catalog, PluginDesc, PluginKind, PluginNotFoundError
from pyconnect_agent.plugins.java_classes import refuse_other_side
from pyconnect_agent.plugins.loading import import_class, load
from pyconnect_api.connector import Connector
from pyconnect_api.errors import ConnectException

CROSSING = frozenset({PluginKind.TRANSFORMATION, PluginKind.PREDICATE})
"""Kinds of plugins that may be in the other language than the connector."""


class CatalogPluginSource:
    """Loads the Python plugins that the catalog lists; full Python paths work without being listed.

    `java` returns the Java plugins, for transformations and predicates that only Java has; with
    `in_jars` also for classes that no plugin lists. ConnectException for another name that only a
    Java class has, and for these without `java`.
    """

    def __init__(
        self,
        catalog: Catalog,
        java: Callable[[], PluginSource] | None = None,
        *,
        in_jars: bool = False,
    ) -> None:
        self.catalog = catalog
        self._in_jars = in_jars
        self._python = catalog.python
        self._java = java

    def connector(self, name: str, version_range: str | None = None) -> PluginClass:
        """Return a connector class; PluginNotFoundError carries Connect's text."""
        try:
            desc = self.catalog.connector(name, version_range=version_range)
        except PluginNotFoundError:
            unlisted = _unlisted(name)
            if unlisted is None or not issubclass(unlisted.python_class, Connector):
                raise
            return unlisted
        if desc.is_java:
            raise ConnectException(f"{desc.class_name} is a Java connector")
        return _loaded(desc)

    def plugin(self, name: str, kind: PluginKind, version_range: str | None = None) -> PluginClass:
        if self._java is not None and is_only(self.catalog, name, kind, java=True):
            return self._java().plugin(name, kind, version_range)
        try:
            return _loaded(self._python.plugin(name, kind, version_range=version_range))
        except PluginNotFoundError:
            unlisted = None if self._python.find(name) else self._elsewhere(name, kind)
            if unlisted is None:
                raise
            return unlisted

    def find(self, name: str) -> PluginClass:
        if self._java is not None and is_only(self.catalog, name, *CROSSING, java=True):
            return self._java().find(name)
        try:
            return _loaded(self._python.plugin(name))
        except PluginNotFoundError:
            unlisted = self._elsewhere(name)
            if unlisted is None and self._java is not None and self._in_jars:
                return self._java().find(name)
            if unlisted is None:
                raise
            return unlisted

    def _elsewhere(self, name: str, *kinds: PluginKind) -> PluginClass | None:
        """Return an unlisted Python class; refuse a name that only Java has."""
        found = _unlisted(name)
        if found is None:
            refuse_other_side(self.catalog.java, name, *kinds, wanted="Python", found="Java")
        return found

    def class_names(self, kind: PluginKind) -> tuple[str, ...]:
        """Return the names of all plugins of one kind, sorted."""
        return tuple(dict.fromkeys(desc.class_name for desc in self._python.of_kind(kind)))

    def versions(self, name: str, kind: PluginKind) -> tuple[str, ...]:
        """Return the listed versions of a plugin, latest last."""
        if kind is PluginKind.CONNECTOR:
            return self._python.versions(
                name, PluginKind.CONNECTOR, PluginKind.SOURCE, PluginKind.SINK
            )
        return self._python.versions(name, kind)


def is_only(catalog: Catalog, name: str, *kinds: PluginKind, java: bool) -> bool:
    """Return whether all plugins of a name are of one language, and of kinds that may cross."""
    found = catalog.find(name)
    return bool(found) and all(
        plugin.is_java is java and plugin.kind in CROSSING.intersection(kinds) for plugin in found
    )


def _loaded(desc: PluginDesc) -> PluginClass:
    return PluginClass(desc.class_name, load(desc), desc.version)


def _unlisted(name: str) -> PluginClass | None:
    """Return the class of a full Python path; None when there is no such module or class.

    Raises ConnectException when the module exists and fails to be imported.
    """
    module = name.partition(":")[0] if ":" in name else name.rpartition(".")[0]
    if not module:
        return None
    try:
        loaded = import_class(name)
    except ConnectException as error:
        missing = error.__cause__
        is_absent = isinstance(missing, ModuleNotFoundError) and f"{module}.".startswith(
            f"{missing.name or ''}."
        )
        if missing is None or is_absent:
            return None
        raise
    return PluginClass(f"{loaded.__module__}.{loaded.__qualname__}", loaded, _version(loaded))


def _version(loaded: type) -> str | None:
    if inspect.isabstract(loaded) or not issubclass(loaded, Connector):
        return None
    try:
        return loaded().version()
    # Both calls run the plugin's code; without a version it can still be used.
    except Exception:  # noqa: BLE001  plugin code
        return None
