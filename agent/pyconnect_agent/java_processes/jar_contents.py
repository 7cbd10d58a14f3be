"""The plugins in the jars and class directories of one location, read without Java.

Layer: java_processes. Reads service files as ``java.util.ServiceLoader`` does
(``ServiceLoaderScanner`` of Kafka Connect), and classes by what they extend and implement
(``ReflectionScanner``). Classes that exist only in a multi-release jar's directory for one Java, or
in a jar that a manifest names, are not found by what they extend.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping

from pyconnect_agent.core.plugins.catalog import LISTED_KINDS, PluginKind
from pyconnect_clients.plugin_jars.class_file import ClassHead, read_class_head
from pyconnect_clients.plugin_jars.open_class_path import OpenClassPath

SERVICES = "META-INF/services/"
API_CLASSES: Mapping[str, PluginKind] = {
    "org.apache.kafka.connect.sink.SinkConnector": PluginKind.SINK,
    "org.apache.kafka.connect.source.SourceConnector": PluginKind.SOURCE,
    "org.apache.kafka.connect.storage.Converter": PluginKind.CONVERTER,
    "org.apache.kafka.connect.storage.HeaderConverter": PluginKind.HEADER_CONVERTER,
    "org.apache.kafka.connect.transforms.Transformation": PluginKind.TRANSFORMATION,
    "org.apache.kafka.connect.transforms.predicates.Predicate": PluginKind.PREDICATE,
    "org.apache.kafka.common.config.provider.ConfigProvider": PluginKind.CONFIG_PROVIDER,
    "org.apache.kafka.connect.rest.ConnectRestExtension": PluginKind.REST_EXTENSION,
    "org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy": (
        PluginKind.CLIENT_CONFIG_OVERRIDE_POLICY
    ),
}
"""The types of plugins; a service file has the name of the type."""
_FOUND_BY_CLASS = {name: kind for name, kind in API_CLASSES.items() if kind in LISTED_KINDS}
"""Plugins of the other kinds need a service file, as in Kafka Connect."""

Found = dict[tuple[str, PluginKind], None]
"""Classes in their roles, in the order in which they were found."""


class JarContents(OpenClassPath):
    """The plugins in the open entries of a class path."""

    def declared(self) -> Found:
        """Return the classes that service files name, in their roles."""
        found: Found = {}
        for container in self.containers:
            names = set(container.names())
            for type_name, kind in API_CLASSES.items():
                if SERVICES + type_name in names:
                    content = self.content(container, SERVICES + type_name) or b""
                    for class_name in _lines(content):
                        found[class_name, kind] = None
        return found

    def implementing(self, api: JarContents) -> Found:
        """Return the public classes that extend or implement a type of plugins.

        As in Kafka Connect, all classes between the two have to be public. ``api`` holds Kafka's
        own jars: a plugin may extend one of their classes.
        """
        heads: dict[str, ClassHead] = {}
        for head in self._class_heads():
            heads.setdefault(head.name, head)  # the first one is the one that Java loads
        known: dict[str, frozenset[str]] = {name: frozenset({name}) for name in _FOUND_BY_CLASS}

        def types_of(name: str) -> frozenset[str]:
            if name not in known:
                # Ends the recursion for a class that claims to extend itself.
                known[name] = frozenset()
                head = heads.get(name) or api.class_head(name)
                parents = head.parents if head and head.is_public else ()
                known[name] = frozenset().union(*map(types_of, parents))
            return known[name]

        return {
            (head.name, _FOUND_BY_CLASS[type_name]): None
            for head in heads.values()
            if head.is_concrete
            for type_name in sorted(types_of(head.name))
        }

    def class_head(self, name: str) -> ClassHead | None:
        """Return the head of one class; None if this location does not have it."""
        path = name.replace(".", "/") + ".class"
        for container in self.containers:
            try:
                return read_class_head(container.read(path))
            except (KeyError, OSError, ValueError, zipfile.BadZipFile):
                continue
        return None

    def _class_heads(self) -> Iterator[ClassHead]:
        """Yield the heads of the classes that Java finds by their names.

        Classes below WEB-INF, BOOT-INF or META-INF are for other loaders.
        """
        for container in self.containers:
            for name in container.names():
                if not name.endswith(".class") or name.startswith("META-INF/"):
                    continue
                content = self.content(container, name)
                if content is None:
                    continue
                try:
                    head = read_class_head(content)
                except ValueError as error:
                    self.problems.append(f"{name} in {container.path}: {error}")
                    continue
                if name == f"{head.name.replace('.', '/')}.class":
                    yield head


def _lines(content: bytes) -> Iterator[str]:
    """Yield the class names of a service file; `#` begins a comment."""
    for line in content.decode(errors="replace").splitlines():
        name = line.partition("#")[0].strip()
        if name:
            yield name
