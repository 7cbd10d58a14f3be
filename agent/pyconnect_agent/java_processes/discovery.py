"""Java plugins by their jars: from service files and class files, with versions as Java reports.

Kafka: `Plugins.initLoaders` and its modes of `plugin.discovery`. Another process reads the
archives; a Java process constructs the classes that were found to learn their versions. Its answers
are cached by the digests of the jars. A location that cannot be used is left out and does not
affect others.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from pyconnect_agent.core.config.agent_keys import kafka_of_location
from pyconnect_agent.core.plugin_catalog import LISTED_KINDS, UNDEFINED, PluginDesc, PluginKind
from pyconnect_agent.java_processes.installation import RELEASE_FILE, kafka_release
from pyconnect_agent.java_processes.jar_scan import API_CLASSES, ClassPath, Found, JarScan, Scan
from pyconnect_agent.java_processes.launch import JavaClass, JavaInstallation
from pyconnect_api.errors import ConnectException
from pyconnect_clients.plugin_jars.kafka_links import kafka_versions, minor_release
from pyconnect_clients.plugin_jars.locations import class_path_of, location_url

CACHE_FORMAT = "5"
"""Part of every key of the cache; change it with the form of the entries."""

Answer: TypeAlias = Mapping[str, object]
"""Java's answer about a class, see `describe` of io.pyconnect.host.Questions."""
Describe: TypeAlias = Callable[[str, Sequence[JavaClass]], Sequence[Answer]]
"""Asks Java with one Kafka, and returns an answer for each class. Raises ConnectException."""


@dataclass(frozen=True, slots=True)
class JavaPlugins:
    """The plugins; ``problems``: those left out, ``warnings``: those without a service file."""

    plugins: tuple[PluginDesc, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class _Location(NamedTuple):
    """One class path; ``path`` None: Kafka's own jars."""

    path: Path | None
    class_path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Role:
    """A class in one role; ``listed``: a service file names it."""

    name: str
    kind: PluginKind
    version: str | None
    listed: bool


@dataclass(frozen=True, slots=True)
class _Known:
    """The plugins of a location. ``kafka``: see `PluginDesc`."""

    kafka: str
    roles: Sequence[_Role]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidates:
    """The classes that count in a mode of discovery, and those that service files name.

    ``kafka``: see `PluginDesc`.
    """

    counted: Found
    listed: Found
    kafka: str


class JavaDiscovery:
    """Finds the plugins of a worker's locations, with one mode of discovery and one cache."""

    def __init__(
        self,
        installation_with: Callable[[str], JavaInstallation],
        scan: Scan,
        describe: Describe,
        cache: Path,
        mode: str,
        *,
        releases: str = "",
    ) -> None:
        """Keep the parts: `describe` asks Java for versions; the directory `cache` may be missing.

        `installation_with` takes a Kafka as `PluginDesc` names it. `releases`: the worker's
        `agent.java.kafka.releases`.
        """
        self._installation_with = installation_with
        self._installation = installation_with("")
        self._scan = scan
        self._describe = describe
        self._cache = cache
        self._mode = mode
        self._releases = releases

    def find(self, locations: Sequence[Path]) -> JavaPlugins:
        """Return the plugins of Kafka's own jars and of the locations on `plugin.path`.

        Raises ConnectException when `hybrid_fail` refuses a plugin.
        """
        own = _Location(None, self._installation.kafka_jars)
        others = [_Location(path, class_path_of(path)) for path in locations]
        problems: list[str] = []
        warnings: list[str] = []
        plugins = []
        unlisted: dict[str, None] = {}
        for (path, _), known in self._known([own, *others], problems).items():
            place = "classpath" if path is None else location_url(path)
            for role in known.roles:
                plugins.append(
                    PluginDesc(
                        class_name=role.name,
                        python_path="",
                        kind=role.kind,
                        version=role.version,
                        location=place,
                        search_path=None if path is None else str(path),
                        is_java=True,
                        kafka=known.kafka,
                    )
                )
                if not role.listed:
                    unlisted[f"{role.name} in {place}"] = None
        if unlisted and self._mode.startswith("hybrid"):
            text = (
                "Java plugins without a service file, which plugin.discovery=service_load would not"
                f" find: {', '.join(unlisted)}"
            )
            if self._mode == "hybrid_fail":
                raise ConnectException(f"{text}. Set plugin.discovery=hybrid_warn or only_scan.")
            warnings.append(text)
        return JavaPlugins(tuple(plugins), tuple(problems), tuple(warnings))

    def _known(
        self, locations: Sequence[_Location], left_out: list[str]
    ) -> dict[_Location, _Known]:
        """Return the plugins of all locations; add to `left_out` the others, with the reason."""
        keys = {location: self._key(location) for location in locations}
        kept = {location: self._kept(key) for location, key in keys.items()}
        problems: dict[_Location, list[str]] = {location: [] for location in locations}
        unknown = [location for location, known in kept.items() if known is None]
        new = self._candidates(unknown, problems) if unknown else {}
        answers = self._answers(new, problems)
        for location, found in new.items():
            roles = _usable(found, answers.get(location, {}), problems[location])
            kept[location] = _Known(found.kafka, roles)
            # The failure may be temporary: another service or more memory may be there the next
            # time.
            if not problems[location]:
                self._keep(keys[location], _Known(found.kafka, roles))
        left_out += [problem for location in locations for problem in problems[location]]
        return {location: known for location, known in kept.items() if known is not None}

    def _kafka_of(self, location: _Location, scan: JarScan, problems: list[str]) -> str:
        """Return the Kafka of a location.

        The Kafka is the one that a file names, else the usual one, else the newest that has all
        that the location's classes need.
        """
        if location.path is None:
            return ""
        if named := self._named_kafka(location.path):
            return named
        usual = minor_release(kafka_release(self._installation.kafka_jars) or "")
        known = map(minor_release, kafka_versions())
        if not scan.releases or usual in scan.releases or usual not in known:
            return ""
        newest = scan.releases[-1]
        try:
            self._installation_with(newest)
        except ConnectException as error:
            problems.append(
                f"{location.path} needs Kafka {newest}, and runs with Kafka {usual}: {error}"
            )
            return ""
        return newest

    def _named_kafka(self, path: Path) -> str:
        """Return the Kafka that the worker's file, or one beside the jars, names, or ""."""
        with suppress(FileNotFoundError, NotADirectoryError):
            named = kafka_of_location(self._releases, path.name)
            return named or (path / RELEASE_FILE).read_text(encoding="utf-8").strip()
        return ""

    def _answers(
        self, new: Mapping[_Location, _Candidates], problems: Mapping[_Location, list[str]]
    ) -> dict[_Location, Mapping[str, Answer]]:
        """Return Java's answers about the classes of each location, by name.

        One process serves all locations. If it ends or hangs, one location is the cause, so each
        location then gets its own process.
        """
        try:
            return self._asked(new)
        except ConnectException:
            pass  # the loop below finds the location of the failure
        answers: dict[_Location, Mapping[str, Answer]] = {}
        for location, found in new.items():
            try:
                answers |= self._asked({location: found})
            except ConnectException as error:
                place = location.path or "Kafka's own jars"
                problems[location].append(
                    f"Java plugins in {place} could not be described: {error}"
                )
        return answers

    def _asked(self, new: Mapping[_Location, _Candidates]) -> dict[_Location, Mapping[str, Answer]]:
        answers: dict[_Location, dict[str, Answer]] = {location: {} for location in new}
        for kafka in dict.fromkeys(found.kafka for found in new.values()):
            classes = [
                (location, JavaClass(name, () if location.path is None else location.class_path))
                for location, found in new.items()
                if found.kafka == kafka
                for name in dict.fromkeys(name for name, _ in found.counted)
            ]
            asked = self._describe(kafka, [each for _, each in classes]) if classes else ()
            for (location, java_class), answer in zip(classes, asked, strict=True):
                answers[location][java_class.name] = answer
        return dict(answers)

    def _candidates(
        self, locations: Sequence[_Location], problems: Mapping[_Location, list[str]]
    ) -> dict[_Location, _Candidates]:
        # Kafka's own jars list all of their plugins.
        wanted = [
            ClassPath(
                location.class_path,
                by_classes=location.path is not None and self._mode != "service_load",
                of_kafka=location.path is None,
            )
            for location in locations
        ]
        found = {}
        scans = self._scan(wanted, self._installation.kafka_jars)
        for location, scan in zip(locations, scans, strict=True):
            problems[location] += scan.problems
            listed = scan.listed
            if self._mode == "only_scan" and location.path is not None:
                listed = {role: None for role in scan.listed if role[1] not in LISTED_KINDS}
            found[location] = _Candidates(
                counted=listed | scan.implementing,
                listed=scan.listed,
                kafka=self._kafka_of(location, scan, problems[location]),
            )
        return found

    def _key(self, location: _Location) -> str:
        """Return the digest of a location's files. Java, host and Kafka's jars are not read."""
        named = "" if location.path is None else self._named_kafka(location.path)
        programs = map(Path, (self._installation.java, self._installation.host_jar))
        kafka_jars = map(Path, self._installation.kafka_jars)
        texts = (
            *(CACHE_FORMAT, self._mode, named),
            *(f"{path}:{path.stat().st_mtime_ns}" for path in programs),
            *(f"{jar.name}:{jar.stat().st_size}" for jar in kafka_jars),
        )
        digest = hashlib.sha256("".join(f"{text}\0" for text in texts).encode())
        for entry in map(Path, location.class_path if location.path is not None else ()):
            files = sorted(entry.rglob("*")) if entry.is_dir() else [entry]
            for file in filter(Path.is_file, files):
                digest.update(f"{file}\0".encode())
                try:
                    with file.open("rb") as stream:
                        digest.update(hashlib.file_digest(stream, "sha256").digest())
                except OSError as error:  # `JarContents` reports it
                    digest.update(str(error).encode())
        return digest.hexdigest()

    def _kept(self, key: str) -> _Known | None:
        try:
            kafka, kept = json.loads((self._cache / f"{key}.json").read_text(encoding="utf-8"))
            return _Known(
                kafka, [_Role(name, PluginKind(kind), *rest) for name, kind, *rest in kept]
            )
        except (OSError, ValueError, TypeError):
            return None

    def _keep(self, key: str, known: _Known) -> None:
        """Write the cache; without a writable home the next start is only slower."""
        roles = [(role.name, role.kind.value, role.version, role.listed) for role in known.roles]
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self._cache)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                json.dump((known.kafka, roles), stream)
            Path(name).replace(self._cache / f"{key}.json")
        except OSError:
            return


def _usable(found: _Candidates, answers: Mapping[str, Answer], problems: list[str]) -> list[_Role]:
    """Return the plugins among the classes; add to `problems` why other classes are not plugins."""
    for name, answer in answers.items():
        # A class that cannot be constructed as a plugin is a base class.
        if "error" in answer and answer.get("constructible", True):
            problems.append(f"Java plugin {name} cannot be used: {answer['error']}")
    roles = []
    for name, kind in found.counted:
        answer = answers.get(name, {})
        if "error" in answer or not answer.get("own"):
            continue
        bases = answer["bases"]
        assert isinstance(bases, list)
        if kind in map(API_CLASSES.get, bases):
            version = answer["version"]
            # The API's default is a text for a missing version.
            told = None if version in (None, UNDEFINED) else str(version)
            roles.append(_Role(name, kind, told, (name, kind) in found.listed))
        else:
            problems.append(
                f"Java plugin {name} cannot be used as {kind.value}: the class does not implement "
                "that type"
            )
    return roles
