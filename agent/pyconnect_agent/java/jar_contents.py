"""The contents of the jars and class directories of one location, read without Java.

Layer: java. Service files as ``java.util.ServiceLoader`` reads them (``ServiceLoaderScanner`` of
Kafka Connect), classes by what they extend and implement (``ReflectionScanner``).
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Protocol, Self

from pyconnect_agent.core.java.class_file import ClassHead, read_class_head
from pyconnect_agent.core.plugins.catalog import PluginKind

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

Found = dict[tuple[str, PluginKind], None]
"""Classes in their roles, in the order in which they were found."""


class _Container(Protocol):
    """One entry of a class path, a jar or a directory."""

    path: Path

    def names(self) -> Sequence[str]: ...

    def read(self, name: str) -> bytes: ...


class _Jar:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path = path
        self._archive = archive

    def names(self) -> Sequence[str]:
        return self._archive.namelist()

    def read(self, name: str) -> bytes:
        return self._archive.read(name)


class _Directory:
    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> Sequence[str]:
        return [
            path.relative_to(self.path).as_posix()
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        ]

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()


class JarContents(AbstractContextManager["JarContents"]):
    """The open entries of a class path. ``problems`` name the archives that cannot be read."""

    def __init__(self, class_path: Sequence[str]) -> None:
        self._open = ExitStack()
        self._containers: list[_Container] = []
        self.problems: list[str] = []
        for entry in class_path:
            path = Path(entry)
            if path.is_dir():
                self._containers.append(_Directory(path))
                continue
            try:
                archive = self._open.enter_context(zipfile.ZipFile(path))
                self._containers.append(_Jar(path, archive))
            except (OSError, zipfile.BadZipFile) as error:
                self.problems.append(f"{path} cannot be read as an archive: {error}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def declared(self) -> Found:
        """Return the classes that service files name, in their roles."""
        found: Found = {}
        for container in self._containers:
            names = set(container.names())
            for type_name, kind in API_CLASSES.items():
                if SERVICES + type_name in names:
                    content = self._content(container, SERVICES + type_name) or b""
                    for class_name in _lines(content):
                        found[class_name, kind] = None
        return found

    def implementing(self, api: JarContents) -> Found:
        """Return the public classes that extend or implement a type of plugins.

        ``api`` holds Kafka's own jars: a plugin may extend one of their classes.
        """
        heads = {head.name: head for head in self._class_heads()}
        known: dict[str, frozenset[str]] = {name: frozenset({name}) for name in API_CLASSES}

        def types_of(name: str) -> frozenset[str]:
            if name not in known:
                known[name] = (
                    frozenset()
                )  # ends the recursion for a class that claims to extend itself
                head = heads.get(name) or api.class_head(name)
                parents = () if head is None else (head.super_name, *head.interfaces)
                known[name] = frozenset().union(*map(types_of, parents))
            return known[name]

        return {
            (head.name, API_CLASSES[type_name]): None
            for head in heads.values()
            if head.is_concrete
            for type_name in sorted(types_of(head.name))
        }

    def class_head(self, name: str) -> ClassHead | None:
        """Return the head of one class; None if this location does not have it."""
        path = name.replace(".", "/") + ".class"
        for container in self._containers:
            try:
                return read_class_head(container.read(path))
            except (KeyError, OSError, ValueError, zipfile.BadZipFile):
                continue
        return None

    def _class_heads(self) -> Iterator[ClassHead]:
        """Yield the heads of all classes except module descriptors and multi-release variants."""
        for container in self._containers:
            for name in container.names():
                if not name.endswith(".class") or name.startswith("META-INF/"):
                    continue
                content = self._content(container, name)
                if content is None:
                    continue
                try:
                    yield read_class_head(content)
                except ValueError as error:
                    self.problems.append(f"{name} in {container.path}: {error}")

    def _content(self, container: _Container, name: str) -> bytes | None:
        try:
            return container.read(name)
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            self.problems.append(f"{name} in {container.path} cannot be read: {error}")
            return None


def _lines(content: bytes) -> Iterator[str]:
    """Yield the class names of a service file; `#` begins a comment."""
    for line in content.decode(errors="replace").splitlines():
        name = line.partition("#")[0].strip()
        if name:
            yield name
