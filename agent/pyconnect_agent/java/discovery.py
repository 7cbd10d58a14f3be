"""Java plugins by their jars: from service files and class files, with versions as Java reports.

Layer: java. Corresponds to ``Plugins.initLoaders`` of Kafka Connect and its modes of
``plugin.discovery``. Archives are read here; a Java process constructs the classes of one location
to learn their versions, and what it answers is kept by the digests of the jars. A location that
cannot be used costs itself and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pyconnect_agent.core.plugins.catalog import PluginDesc, PluginKind
from pyconnect_agent.java.jar_contents import Found, JarContents
from pyconnect_agent.java.launch import JavaClass, JavaInstallation
from pyconnect_agent.java.locations import class_path_of, java_locations, location_url
from pyconnect_api.errors import ConnectException

CACHE_FORMAT = "1"
"""Part of every key of the cache: another form, another key."""

Describe: TypeAlias = Callable[[Sequence[JavaClass]], Sequence[Mapping[str, object]]]
"""Answers of each class: `version` and `own`, or `error`. Raises ConnectException."""


@dataclass(frozen=True, slots=True)
class JavaPlugins:
    """What was found; ``warnings`` name what was left out or lacks a service file, and why."""

    plugins: tuple[PluginDesc, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Location:
    """One class path; ``path`` None: Kafka's own jars."""

    path: Path | None
    class_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Role:
    """A class in one role; ``listed``: a service file names it."""

    name: str
    kind: PluginKind
    version: object
    listed: bool


class JavaDiscovery:
    """Finds the plugins of a worker's locations. One mode of discovery, one cache."""

    def __init__(
        self, installation: JavaInstallation, describe: Describe, cache: Path, mode: str
    ) -> None:
        """Ask `describe` what only Java knows; `cache` is a directory that may not exist yet."""
        self._installation = installation
        self._describe = describe
        self._cache = cache
        self._mode = mode

    def find(self, plugin_path: Sequence[str]) -> JavaPlugins:
        """Return the plugins of Kafka's own jars and of `plugin.path`.

        Raises ConnectException when `hybrid_fail` refuses one.
        """
        plugins: list[PluginDesc] = []
        warnings: list[str] = []
        unlisted: list[str] = []
        own = _Location(None, self._installation.kafka_jars)
        others = [_Location(path, class_path_of(path)) for path in java_locations(plugin_path)]
        for location in (own, *others):
            key = self._key(location)
            roles = self._kept(key)
            if roles is None:
                problems: list[str] = []
                roles = self._examined(location, problems)
                warnings += problems
                # What went wrong may be gone next time, with another service or more memory.
                if not problems:
                    self._keep(key, roles)
            found = [_plugin(location, role) for role in roles]
            plugins += found
            unlisted += [
                f"{plugin.class_name} in {plugin.location}"
                for plugin, role in zip(found, roles, strict=True)
                if not role.listed
            ]
        if unlisted and self._mode.startswith("hybrid"):
            warnings.append(self._about_unlisted(unlisted))
        return JavaPlugins(tuple(plugins), tuple(warnings))

    def _about_unlisted(self, unlisted: Iterable[str]) -> str:
        names = ", ".join(dict.fromkeys(unlisted))
        text = (
            "Java plugins without a service file, which plugin.discovery=service_load would not "
            f"find: {names}"
        )
        if self._mode == "hybrid_fail":
            raise ConnectException(f"{text}. Set plugin.discovery=hybrid_warn or only_scan.")
        return text

    def _examined(self, location: _Location, problems: list[str]) -> list[_Role]:
        """Return the plugins of one location; `problems` gets what was left out, and why."""
        found, listed = self._found(location, problems)
        names = tuple(dict.fromkeys(name for name, _ in found))
        jars = () if location.path is None else location.class_path
        try:
            asked = self._describe([JavaClass(name, jars) for name in names]) if names else ()
        except ConnectException as error:
            place = "Kafka's own jars" if location.path is None else str(location.path)
            problems.append(f"Java plugins in {place} could not be described: {error}")
            return []
        answers = dict(zip(names, asked, strict=True))
        for name, answer in answers.items():
            # A class without a public constructor is no plugin, only the base of some.
            if "error" in answer and answer.get("constructible", True):
                problems.append(f"Java plugin {name} cannot be used: {answer['error']}")
        return [
            _Role(name, kind, answers[name]["version"], (name, kind) in listed)
            for name, kind in found
            if answers[name].get("own")
        ]

    def _found(self, location: _Location, problems: list[str]) -> tuple[Found, Found]:
        """Return the classes that count in this mode, and those of service files."""
        with JarContents(location.class_path) as contents:
            listed = contents.declared()
            found = {} if self._mode == "only_scan" and location.path is not None else dict(listed)
            # Kafka's own jars list all of their plugins.
            if location.path is not None and self._mode != "service_load":
                with JarContents(self._installation.kafka_jars) as kafka:
                    found |= contents.implementing(kafka)
            problems += contents.problems
        return found, listed

    def _key(self, location: _Location) -> str:
        digest = hashlib.sha256()
        for text in (CACHE_FORMAT, self._mode, *self._stamps()):
            digest.update(f"{text}\0".encode())
        for entry in location.class_path if location.path is not None else ():
            _add_content(digest, Path(entry))
        return digest.hexdigest()

    def _stamps(self) -> Iterable[str]:
        """Tell one Java, host and set of Kafka's jars from another; they are not read for it."""
        for path in map(Path, (self._installation.java, self._installation.host_jar)):
            yield f"{path}:{path.stat().st_mtime_ns}"
        for jar in map(Path, self._installation.kafka_jars):
            yield f"{jar.name}:{jar.stat().st_size}"

    def _kept(self, key: str) -> list[_Role] | None:
        try:
            kept = json.loads((self._cache / f"{key}.json").read_text(encoding="utf-8"))
            return [_Role(name, PluginKind(kind), *rest) for name, kind, *rest in kept]
        except (OSError, ValueError, TypeError):
            return None

    def _keep(self, key: str, roles: Sequence[_Role]) -> None:
        """Write the cache; a home that cannot be written to only costs the next start time."""
        kept = [(role.name, role.kind.value, role.version, role.listed) for role in roles]
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._cache)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump(kept, stream)
            Path(name).replace(self._cache / f"{key}.json")
        except OSError:
            return


def _plugin(location: _Location, role: _Role) -> PluginDesc:
    path = location.path
    return PluginDesc(
        class_name=role.name,
        python_path="",
        kind=role.kind,
        version=None if role.version is None else str(role.version),
        location="classpath" if path is None else location_url(path),
        search_path=None if path is None else str(path),
        is_java=True,
    )


def _add_content(digest: hashlib._Hash, path: Path) -> None:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            digest.update(f"{file}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
