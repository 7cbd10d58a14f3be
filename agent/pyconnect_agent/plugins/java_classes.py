"""The language of a connector, Java or Python, and the classes of its names in that language.

A connector and its converters are in one language. A name that both languages have, such as
Apache's converters, means the class in the connector's language. Transformations and predicates may
be in the other one.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pyconnect_agent.core.config import aliases
from pyconnect_agent.core.plugin_catalog import (
    Catalog,
    PluginDesc,
    PluginKind,
    PluginNotFoundError,
    PluginVersionNotFoundError,
)
from pyconnect_agent.java_processes.launch import UNKNOWN_VERSION, JavaClass
from pyconnect_agent.plugins.loading import import_class
from pyconnect_api.errors import ConnectException
from pyconnect_clients.plugin_jars.locations import class_path_of


def is_java_connector(catalog: Catalog, config: Mapping[str, str | None]) -> bool:
    """Return whether a config names a Java connector; False when the name is not known.

    An unknown version does not matter here: the look-up of the class reports the known ones.
    """
    name = config.get("connector.class")
    if not name:
        return False
    try:
        return java_connector(catalog, name, config.get("connector.plugin.version")) is not None
    except PluginVersionNotFoundError:
        return catalog.connector(name).is_java
    except PluginNotFoundError:
        return False


def java_connector(
    catalog: Catalog, name: str, version_range: str | None = None
) -> JavaClass | None:
    """Return the class of a Java connector, None for a Python one.

    Raises as `Catalog.connector`.
    """
    found = catalog.connector(name, version_range=version_range)
    return class_of(found) if found.is_java else None


def java_host_class(catalog: Catalog, config: Mapping[str, str | None]) -> JavaClass | None:
    """Return the class whose location a config's Java processes belong to; None without any.

    The class is the Java connector's; for a Python connector it is that of the first transformation
    or predicate in Java.
    """
    name, version = config.get("connector.class"), config.get("connector.plugin.version")
    try:
        if found := java_connector(catalog, name or "", version):
            return found
    except PluginNotFoundError:
        # The name is that of a Python class that is not listed, or not that of a class.
        pass
    for alias in aliases(config, "transforms"):
        for name, kind, version in _named(config, alias):
            if catalog.java.find(name) and not catalog.python.find(name):
                with suppress(PluginVersionNotFoundError):
                    return java_class(catalog, name, kind, version)
    return None


def java_host_jars(catalog: Catalog, config: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the jars of `java_host_class`; empty without any, and for classes of Kafka's jars."""
    found = java_host_class(catalog, config)
    return () if found is None else found.jars


def java_class(
    catalog: Catalog,
    name: str,
    kind: PluginKind,
    version_range: str | None = None,
    *,
    jars: tuple[str, ...] = (),
) -> JavaClass:
    """Return the class of a name in a Java connector's config.

    `jars` are the connector's: they come first unless the config names a version, and they may hold
    a class that no plugin lists. Raises PluginVersionNotFoundError, and ConnectException if only
    Python has the class.
    """
    try:
        found = java_plugin(catalog, name, kind, version_range=version_range, jars=jars)
        return class_of(found)
    except PluginVersionNotFoundError:
        raise
    except PluginNotFoundError:
        return JavaClass(name, jars)


def java_plugin(
    catalog: Catalog,
    name: str,
    *kinds: PluginKind,
    version_range: str | None = None,
    jars: tuple[str, ...] = (),
) -> PluginDesc:
    """Return the Java plugin of a name: the one in `jars`, else the latest in the range.

    Raises as `Catalog.plugin`, and ConnectException if only Python has the class.
    """
    known = [plugin for plugin in catalog.java.find(name) if not kinds or plugin.kind in kinds]
    if jars and version_range is None and len(known) > 1:
        for plugin in known:
            if class_of(plugin).jars == jars:
                return plugin
    try:
        return catalog.java.plugin(name, *kinds, version_range=version_range)
    except PluginVersionNotFoundError:
        raise
    except PluginNotFoundError:
        refuse_other_side(catalog.python, name, *kinds, wanted="Java", found="Python")
        raise


def is_other_side(catalog: Catalog, config: Mapping[str, str | None], alias: str) -> bool:
    """Return whether a transformation, with its predicate, is in the connector's other language.

    The result is True if only that language lists one of the classes, and has the other: a class in
    no list is Python's if it can be imported, else it is looked for in jars. Raises
    ConnectException if each language has one. Imports plugins: in child processes only.
    """
    own, other, is_java = catalog.python, catalog.java, is_java_connector(catalog, config)
    if is_java:
        own, other = other, own
    named = _named(config, alias)

    def has(side: Catalog, name: str, kind: PluginKind) -> bool:
        return any(plugin.kind is kind for plugin in side.find(name))

    only_other = [has(other, name, kind) and not has(own, name, kind) for name, kind, _ in named]
    if not any(only_other):
        return False
    if all(
        has(other, name, kind) or (not has(own, name, kind) and _can_be_imported(name) is is_java)
        for name, kind, _ in named
    ):
        return True
    raise ConnectException(
        f"The transformation '{alias}' and its predicate "
        f"'{config.get(f'transforms.{alias}.predicate')}' have no language in common: "
        f"{' and '.join(name for name, *_ in named)}. Name a predicate of the same language."
    )


def _can_be_imported(name: str) -> bool:
    try:
        import_class(name)
    except (ConnectException, ValueError):
        return False
    return True


def _named(
    config: Mapping[str, str | None], alias: str
) -> list[tuple[str, PluginKind, str | None]]:
    """Return name, kind and version of a transformation, and those of its predicate if any."""
    prefixes = [(f"transforms.{alias}.", PluginKind.TRANSFORMATION)]
    predicate = config.get(f"transforms.{alias}.predicate")
    if predicate is not None:
        prefixes.append((f"predicates.{predicate}.", PluginKind.PREDICATE))
    return [
        (config.get(f"{prefix}type") or "", kind, config.get(f"{prefix}plugin.version"))
        for prefix, kind in prefixes
    ]


def refuse_other_side(
    other: Catalog, name: str, *kinds: PluginKind, wanted: str, found: str
) -> None:
    """Raise ConnectException if the other language has a class of this name.

    Config providers are always in Python.
    """
    there = [plugin for plugin in other.find(name) if not kinds or plugin.kind in kinds]
    if there and PluginKind.CONFIG_PROVIDER in kinds:
        raise ConnectException(
            f"Class {name} is a Java class, and an agent resolves references in Python: name a "
            "Python config provider. Apache's FileConfigProvider, DirectoryConfigProvider and "
            "EnvVarConfigProvider are there under their Java names."
        )
    if there:
        raise ConnectException(
            f"Class {name} is a {found} class and the connector is a {wanted} class. A connector "
            f"and its converters must all be {wanted} classes: "
            f"name a {wanted} class, or install one under this name."
        )


def plugin_locations(catalog: Catalog) -> list[dict[str, object]]:
    """Return the jars of each location, and the classes that other locations may name.

    The classes are the plugins of which the location has the latest version.
    """
    classes: dict[str, list[str]] = {}
    for name in dict.fromkeys(plugin.class_name for plugin in catalog.java.plugins):
        path = catalog.java.plugin(name).search_path
        if path is not None:
            classes.setdefault(path, []).append(name)
    found = ((class_path_of(Path(path)), names) for path, names in classes.items())
    return [{"jars": jars, "classes": names} for jars, names in found if jars]


def class_of(plugin: PluginDesc) -> JavaClass:
    """Return the class of a Java plugin with the class path of its location."""
    path = plugin.search_path
    jars = () if path is None else class_path_of(Path(path))
    version = plugin.version or UNKNOWN_VERSION
    return JavaClass(plugin.class_name, jars, version, plugin.kafka)
