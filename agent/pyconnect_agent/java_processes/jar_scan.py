"""Reads the jars of locations in a process of its own.

Kafka's jars alone have 14,000 entries, which would take 12 MB of the worker's memory.

Service files are read as ``java.util.ServiceLoader`` does (``ServiceLoaderScanner`` of Kafka
Connect), classes are found by the types that they extend and implement (``ReflectionScanner``).
Classes that exist only in a multi-release jar's directory for one Java, or in a jar that a manifest
names, are not found in the second way.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TextIO, TypeAlias

from pyconnect_agent.core.plugin_catalog import LISTED_KINDS, PluginKind
from pyconnect_clients.plugin_jars.class_file import ClassHead, read_class_head
from pyconnect_clients.plugin_jars.kafka_links import kafka_api, read_links
from pyconnect_clients.plugin_jars.locations import OpenClassPath

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
                    for line in content.decode(errors="replace").splitlines():
                        if class_name := line.partition("#")[0].strip():
                            found[class_name, kind] = None
        return found

    def implementing(self, api: JarContents) -> Found:
        """Return the public classes that extend or implement a type of plugins.

        As in Kafka Connect, all classes between the two have to be public. ``api`` holds Kafka's
        own jars: a plugin may extend one of their classes.
        """
        heads: dict[str, ClassHead] = {}
        for head in self._class_heads():
            heads.setdefault(head.name, head)  # Java loads the first one
        known: dict[str, frozenset[str]] = {name: frozenset({name}) for name in _FOUND_BY_CLASS}

        def types_of(name: str) -> frozenset[str]:
            if name not in known:
                # Ends the recursion for a class that names itself as its base class.
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


MODULE = "pyconnect_agent.java_processes.jar_scan"
"""This module's name; `__name__` differs in the process that runs it."""


class ClassPath(NamedTuple):
    """A location's entries; `by_classes`: plugins without a service file are searched too.

    `of_kafka`: the entries are Kafka's own.
    """

    entries: tuple[str, ...]
    by_classes: bool
    of_kafka: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JarScan:
    """Classes by service files and by their base types; `problems` name unreadable files.

    `releases`: the releases of Kafka that have all that the classes need.
    """

    listed: Found
    implementing: Found
    problems: Sequence[str]
    releases: Sequence[str] = ()


Scan: TypeAlias = Callable[[Sequence[ClassPath], Sequence[str]], Sequence[JarScan]]
"""Scans class paths beside Kafka's own jars."""


def scan(class_paths: Iterable[ClassPath], kafka_jars: Sequence[str]) -> list[JarScan]:
    """Read each location; a plugin may extend a class of `kafka_jars`."""
    scans = []
    with JarContents(kafka_jars) as kafka:
        for class_path in class_paths:
            with JarContents(class_path.entries) as contents:
                listed = contents.declared()
                implementing = contents.implementing(kafka) if class_path.by_classes else {}
            releases: Sequence[str] = ()
            if not class_path.of_kafka:
                plugins = {name for name, _ in (listed | implementing)}
                links = read_links(class_path.entries, entry_points=plugins)
                releases = links.releases(kafka_api())
            scans.append(
                JarScan(
                    listed=listed,
                    implementing=implementing,
                    problems=contents.problems,
                    releases=releases,
                )
            )
    return scans


def to_input(class_paths: Sequence[ClassPath], kafka_jars: Sequence[str]) -> str:
    """Return the text that the process reads from standard input."""
    return json.dumps([class_paths, kafka_jars])


def from_output(line: str) -> list[JarScan]:
    """Return the result in the output of the process."""
    return [
        JarScan(
            listed=_found(listed),
            implementing=_found(implementing),
            problems=problems,
            releases=releases,
        )
        for listed, implementing, problems, releases in json.loads(line)
    ]


def _found(classes: Iterable[tuple[str, str]]) -> Found:
    return {(name, PluginKind(kind)): None for name, kind in classes}


def _texts(classes: Found) -> list[tuple[str, str]]:
    return [(name, kind.value) for name, kind in classes]


def main(given: TextIO, result: TextIO) -> None:
    """Scan the class paths in `given`, and write a line of JSON."""
    class_paths, kafka_jars = json.load(given)
    paths = (ClassPath(tuple(entries), *wanted) for entries, *wanted in class_paths)
    found = [
        (
            _texts(location.listed),
            _texts(location.implementing),
            location.problems,
            location.releases,
        )
        for location in scan(paths, kafka_jars)
    ]
    result.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(sys.stdin, sys.stdout)
