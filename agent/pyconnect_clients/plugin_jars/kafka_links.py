"""The links of a plugin location's classes to Kafka, and the releases of Kafka that satisfy them.

Reads the class files of a location's jars; starts no Java. Only classes count that a connector,
converter, transformation, predicate or config provider can reach along the names in their
constants. Kafka's own classes in a location count where Connect's class loader finds them first, or
where Kafka's jars lack them (``PluginUtils.shouldLoadInIsolation``).
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyconnect_clients.plugin_jars.class_file import ClassFile, Member
from pyconnect_clients.plugin_jars.kafka_api import KafkaApi, kafka_api

KAFKA = "org.apache.kafka."
_CONNECT = "org.apache.kafka.connect."
_PLUGINS = frozenset(
    {
        f"{_CONNECT}sink.SinkConnector",
        f"{_CONNECT}source.SourceConnector",
        f"{_CONNECT}storage.Converter",
        f"{_CONNECT}storage.HeaderConverter",
        f"{_CONNECT}transforms.Transformation",
        f"{_CONNECT}transforms.predicates.Predicate",
        "org.apache.kafka.common.config.provider.ConfigProvider",
    }
)
_RUNTIME = (b"org/apache/kafka/connect/runtime/", b"org.apache.kafka.connect.runtime.")
_OWN_FIRST = re.compile(
    r"org\.apache\.kafka\.(connect\.(transforms\.(?!Transformation$|predicates\.Predicate$)|json\.|file\."
    r"|mirror\.|mirror-client\.|converters\.|storage\.(StringConverter|SimpleHeaderConverter)$)"
    r"|common\.config\.provider\.(?!ConfigProvider$))"
)
"""Of these classes Connect's loader takes a location's own first."""


@dataclass(frozen=True, slots=True, order=True)
class Missing:
    """Something that a release lacks, `needed`, and the first class of the location that needs it.

    `needed`: a class, or a class with the name and descriptor of a member. `last` and `first`: the
    newest older release that has it and the oldest newer one, None without one.
    """

    needed: str
    user: str
    last: str | None = None
    first: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLinks:
    """`classes` and `members` of Kafka by what uses them first; `bundled`: Kafka's own classes.

    `internals`: classes of the worker's runtime that are named, by what names them. `java`: the
    Java that the newest class file needs.
    """

    classes: Mapping[str, str]
    members: Mapping[Member, str]
    bundled: frozenset[str]
    internals: Mapping[str, str]
    java: int
    problems: tuple[str, ...] = ()

    def missing(self, api: KafkaApi, release: str) -> list[Missing]:
        """Return what a release lacks and another one has. Raises KeyError for other releases."""
        bit = api.bit(release)
        lacking = {}
        for name, user in self.classes.items():
            having = api.releases_with(name)
            if having and not having & bit:
                lacking[name] = (user, having)
        for member, user in self.members.items():
            if member.owner not in lacking and api.releases_with(member.owner) & bit:
                having = api.releases_with_member(member)
                if having and not having & bit:
                    lacking[f"{member.owner}.{member.name}"] = (user, having)
        return sorted(
            Missing(needed, user, *_around(api, having, bit))
            for needed, (user, having) in lacking.items()
        )

    def releases(self, api: KafkaApi) -> tuple[str, ...]:
        """Return the releases that have all that the location needs, oldest first."""
        return tuple(release for release in api.releases if not self.missing(api, release))


def _around(api: KafkaApi, having: int, bit: int) -> tuple[str | None, str | None]:
    older = (having & (bit - 1)).bit_length()
    newer = having & ~(bit | (bit - 1))
    return (
        api.releases[older - 1] if older else None,
        api.releases[(newer & -newer).bit_length() - 1] if newer else None,
    )


def read_links(
    class_path: Iterable[str | Path], *, entry_points: Collection[str] = ()
) -> KafkaLinks:
    """Return the links of one location: of its jars and directories of classes.

    `entry_points`: classes that count beside the plugins.
    """
    return _Location(class_path, entry_points).links()


@dataclass
class _Location:
    class_path: Iterable[str | Path]
    entry_points: Collection[str]
    classes: dict[str, ClassFile] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    bundled: frozenset[str] = frozenset()

    def links(self) -> KafkaLinks:
        for path in map(Path, self.class_path):
            self._read(path)
        self.bundled = frozenset(name for name in self.classes if name.startswith(KAFKA))
        classes: dict[str, str] = {}
        members: dict[Member, str] = {}
        internals: dict[str, str] = {}
        java = 0
        for user in self._reached():
            java = max(java, user.java)
            try:
                self._add_links(user, classes, members, internals)
            except ValueError as error:
                self.problems.append(f"class {user.head.name}: {error}")
        return KafkaLinks(
            classes=classes,
            members=members,
            bundled=self.bundled,
            internals=internals,
            java=java,
            problems=tuple(self.problems),
        )

    def _add_links(
        self,
        user: ClassFile,
        classes: dict[str, str],
        members: dict[Member, str],
        internals: dict[str, str],
    ) -> None:
        for name in user.linked_classes():
            if name.startswith(KAFKA) and name not in self.bundled:
                classes.setdefault(name, user.head.name)
        for member in user.linked_members():
            for owner in self._kafka_owners(member):
                if owner not in self.bundled or not _OWN_FIRST.match(owner):
                    members.setdefault(Member(owner, member.name), user.head.name)
        for text in user.raw_texts():
            if text.startswith(_RUNTIME):
                name = text.decode(errors="replace").replace("/", ".")
                if name not in self.bundled:
                    internals.setdefault(name, user.head.name)

    def _read(self, path: Path) -> None:
        try:
            for name, content in _entries(path):
                class_name = name.removesuffix(".class").replace("/", ".")
                if class_name in self.classes or class_name.endswith("module-info"):
                    continue
                try:
                    self.classes[class_name] = ClassFile(content)
                except ValueError as error:
                    self.problems.append(f"{name} in {path}: {error}")
        # A damaged archive makes `zipfile` raise many more exceptions than its own.
        except Exception as error:  # noqa: BLE001
            self.problems.append(f"{path} cannot be read: {error}")

    def _reached(self) -> Iterator[ClassFile]:
        """Yield the classes that a plugin can reach, but for Kafka's own."""
        own = {name for name in self.classes if not name.startswith(KAFKA)}
        # Constants name a class in either form; code may load one by a text.
        spelt = {form.encode(): name for name in own for form in (name, name.replace(".", "/"))}
        waiting = [name for name in own if name in self.entry_points or self._is_plugin(name)]
        seen = set(waiting)
        while waiting:
            found = self.classes[waiting.pop()]
            yield found
            for name in filter(None, map(spelt.get, found.raw_texts())):
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)

    def _is_plugin(self, name: str) -> bool:
        api = kafka_api()
        return any(api.is_a(found, _PLUGINS) for found in self._kafka_ancestors(name, set()))

    def _kafka_ancestors(self, name: str, seen: set[str]) -> Iterator[str]:
        """Yield the first classes of Kafka's jars above a class of the location."""
        for parent in self.classes[name].head.parents:
            if parent.startswith(KAFKA):
                yield parent
            elif parent in self.classes and parent not in seen:
                seen.add(parent)
                yield from self._kafka_ancestors(parent, seen)

    def _kafka_owners(self, member: Member) -> Sequence[str]:
        """Return the classes of Kafka in which a member may be; none for one of the location."""
        if member.owner.startswith(KAFKA):
            return (member.owner,)
        if member.owner not in self.classes or self._declares(member.owner, member.name, set()):
            return ()
        return tuple(self._kafka_ancestors(member.owner, set()))

    def _declares(self, owner: str, name: str, seen: set[str]) -> bool:
        found = self.classes.get(owner)
        if found is None or owner in seen:
            return False
        seen.add(owner)
        return name in found.members() or any(
            self._declares(parent, name, seen) for parent in found.head.parents
        )


def _entries(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the classes of a jar or directory, by their names in it.

    Of a multi-release jar those for all Javas: the ones for a newer Java do the same.
    """
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_file() and _counts(name := file.relative_to(path).as_posix()):
                yield name, file.read_bytes()
        return
    with zipfile.ZipFile(path) as jar:
        for name in filter(_counts, jar.namelist()):
            yield name, jar.read(name)


def _counts(name: str) -> bool:
    return name.endswith(".class") and not name.startswith("META-INF/")
