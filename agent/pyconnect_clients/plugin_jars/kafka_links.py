"""The links of a plugin location's classes to Kafka, and the releases of Kafka that satisfy them.

The module reads the class files of a location's jars, and starts no Java. Only those classes count
that a plugin (such as a connector or converter) can reach through the names in constants. Kafka's
own classes in a location count where Connect's class loader finds them first, or where Kafka's jars
lack them (``PluginUtils.shouldLoadInIsolation``).

The table of the public classes and members of Kafka's clients and Connect (`kafka-api.txt.xz`, made
by `scripts/kafka_releases.py`) has a line for each class, and below it one for each member:
releases as a bit mask in hexadecimal and a space, then `:` with the class's parents, or the
member's name with its descriptor.
"""

import lzma
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path

from pyconnect_clients.plugin_jars.class_file import ClassFile, ClassMember
from pyconnect_clients.plugin_jars.locations import Container, OpenClassPath

TABLE = "kafka-api.txt.xz"
_OBJECT = "java.lang.Object"
_OF_OBJECT = frozenset(
    {
        "equals(Ljava/lang/Object;)Z",
        "hashCode()I",
        "toString()Ljava/lang/String;",
        "getClass()Ljava/lang/Class;",
        "clone()Ljava/lang/Object;",
        "finalize()V",
        "notify()V",
        "notifyAll()V",
        "wait()V",
        "wait(J)V",
        "wait(JI)V",
    }
)
_CLOSE = frozenset({"close()V"})
_OF_JAVA: Mapping[str, frozenset[str]] = {
    _OBJECT: frozenset(),
    "java.io.Closeable": _CLOSE,
    "java.io.Serializable": frozenset(),
    "java.lang.AutoCloseable": _CLOSE,
    "java.lang.Comparable": frozenset({"compareTo(Ljava/lang/Object;)I"}),
    "java.lang.Record": frozenset(),
    "java.lang.Runnable": frozenset({"run()V"}),
}
"""Members of Java types from which many of Kafka's classes inherit, without `_OF_OBJECT`."""


@dataclass(frozen=True, slots=True)
class KafkaApi:
    """The table of Kafka's classes. `versions`: one per minor release, `("3.9.2", "4.0.2", …)`.

    `classes`: by name, the releases of each member as a bit mask; parents are `:` with their names.
    """

    versions: tuple[str, ...]
    classes: Mapping[str, Mapping[str, int]] = field(repr=False)

    @property
    def releases(self) -> tuple[str, ...]:
        """The minor releases, oldest first: `("3.9", "4.0", …)`."""
        return tuple(map(minor_release, self.versions))

    def releases_with(self, name: str) -> int:
        """Return the releases with a class as a bit mask, 0 if no release has it."""
        return sum(mask for _, mask in self._parents(name))

    def releases_with_member(self, member: ClassMember) -> int:
        """Return the releases in which a class has or inherits a member, as a bit mask.

        A class that inherits from an unknown one counts with all members, except for constructors.
        """
        if member.name in _OF_OBJECT:
            return self.releases_with(member.owner)
        declared = self.classes.get(member.owner, {}).get(member.name, 0)
        if member.name.startswith("<init>"):
            return declared
        found = 0
        for parent, mask in self._parents(member.owner):
            for name in parent.split():
                if name in self.classes:
                    found |= mask & self.releases_with_member(ClassMember(name, member.name))
                elif member.name in _OF_JAVA.get(name, {member.name}):
                    found |= mask
        return declared | found

    def is_a(self, name: str, types: frozenset[str]) -> bool:
        """Return whether a class, in any release, is, extends or implements one of some types."""
        return name in types or any(
            self.is_a(parent, types)
            for parents, _ in self._parents(name)
            for parent in parents.split()
        )

    def _parents(self, name: str) -> Iterator[tuple[str, int]]:
        members = self.classes.get(name, {})
        return ((key[1:], mask) for key, mask in members.items() if key.startswith(":"))

    def bit(self, release: str) -> int:
        """Return the bit of a release such as `4.4` or `4.4.0`. Raises KeyError."""
        return 1 << self.versions.index(self.version(release))

    def version(self, release: str) -> str:
        """Return the version of the table for a release, `4.0.2` for `4.0`. Raises KeyError."""
        return version_of(release, self.versions)


def minor_release(version: str) -> str:
    """Return the minor release, `4.3` for `4.3.1`."""
    return ".".join(version.split(".")[:2])


def version_of(release: str, versions: Iterable[str]) -> str:
    """Return the version of a minor release, `4.0.2` for `4.0` or `4.0.0`. Raises KeyError."""
    return {minor_release(version): version for version in versions}[minor_release(release)]


@cache
def kafka_versions() -> tuple[str, ...]:
    """Return the versions of the shipped table, oldest first, without reading the rest."""
    table = resources.files(__package__).joinpath(TABLE)
    with table.open("rb") as packed, lzma.LZMAFile(packed) as lines:
        return tuple(lines.readline().decode().split())


@cache
def kafka_api() -> KafkaApi:
    """Return the table that ships with this package."""
    packed = resources.files(__package__).joinpath(TABLE).read_bytes()
    return parse_table(lzma.decompress(packed).decode())


def parse_table(text: str) -> KafkaApi:
    """Return the table of a text whose first line has the releases."""
    first, *lines = text.splitlines()
    classes: dict[str, dict[str, int]] = {}
    members: dict[str, int] = {}
    for line in lines:
        mask, found, name = line.partition(" ")
        if found:
            members[name] = int(mask, 16)
        else:
            members = classes[line] = {}
    return KafkaApi(tuple(first.split()), classes)


KAFKA = "org.apache.kafka."
_KAFKA_PATH = b"org/apache/kafka/"
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
"""Classes that Connect's loader takes from a location first."""
_KAFKAS_CONNECTORS = (f"{_CONNECT}file.", f"{_CONNECT}mirror.")
"""Kafka's own connectors are plugins like others: no jar of the worker has them."""


def _is_kafkas(name: str) -> bool:
    return name.startswith(KAFKA) and not name.startswith(_KAFKAS_CONNECTORS)


@dataclass(frozen=True, slots=True, order=True)
class Missing:
    """A class or member that a release lacks, and the location's first class that needs it.

    `needed`: a class, or a class with the name and descriptor of a member. `last` and `first`: the
    newest older release and the oldest newer release that have it, None if none does.
    """

    needed: str
    user: str
    last: str | None = None
    first: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaLinks:
    """`classes` and `members` of Kafka by their first user; `bundled`: Kafka's classes within.

    `internals`: named classes of the worker's runtime, by their users. `java`: the Java that the
    newest class file needs.
    """

    classes: Mapping[str, str]
    members: Mapping[ClassMember, str]
    bundled: frozenset[str]
    internals: Mapping[str, str]
    java: int
    problems: tuple[str, ...] = ()

    def missing(self, api: KafkaApi, release: str) -> list[Missing]:
        """Return links that a release lacks and another one has. KeyError for other releases."""
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
        found = []
        for needed, (user, having) in lacking.items():
            older = (having & (bit - 1)).bit_length()
            newer = having & ~(bit | (bit - 1))
            last = api.releases[older - 1] if older else None
            first = api.releases[(newer & -newer).bit_length() - 1] if newer else None
            found.append(Missing(needed, user, last, first))
        return sorted(found)

    def absent(self, api: KafkaApi) -> list[Missing]:
        """Return links that no release has, of packages and classes of the table.

        An older Kafka had them, or had them public. Code that uses them fails with each release.
        """
        packages = {name.rpartition(".")[0] for name in api.classes}
        lacking = {
            name: user
            for name, user in self.classes.items()
            if name.rpartition(".")[0] in packages and not api.releases_with(name)
        }
        lacking |= {
            f"{member.owner}.{member.name}": user
            for member, user in self.members.items()
            if api.releases_with(member.owner) and not api.releases_with_member(member)
        }
        return sorted(Missing(needed, user) for needed, user in lacking.items())

    def releases(self, api: KafkaApi) -> tuple[str, ...]:
        """Return the releases that have all links of the location, oldest first."""
        return tuple(release for release in api.releases if not self.missing(api, release))


def read_links(
    class_path: Iterable[str | Path], *, entry_points: Collection[str] | None = None
) -> KafkaLinks:
    """Return the links of one location: of its jars and directories of classes.

    `entry_points`: the classes from which others are reached, by default the plugins.
    """
    with _Location(class_path) as location:
        return location.links(location.plugins() if entry_points is None else entry_points)


class _Location(OpenClassPath):
    """The classes of a location, read when they are reached: there may be a hundred thousand."""

    def __init__(self, class_path: Iterable[str | Path]) -> None:
        super().__init__(class_path)
        self._places: dict[str, tuple[Container, str]] = {}
        for container in self.containers:
            for name in container.names():
                if name.endswith(".class") and not name.startswith("META-INF/"):
                    # Java loads the first one.
                    place = (container, name)
                    self._places.setdefault(name[: -len(".class")].replace("/", "."), place)
        self._classes: dict[str, ClassFile | None] = {}
        self._ancestors: dict[str, frozenset[str]] = {}
        self._bundled = frozenset(filter(_is_kafkas, self._places))

    def plugins(self) -> list[str]:
        """Return the classes that extend or implement a type of plugins."""
        api = kafka_api()
        # A class that extends a class of Kafka names it.
        naming = [
            name
            for name, (container, path) in self._places.items()
            if not _is_kafkas(name) and _KAFKA_PATH in (self.content(container, path) or b"")
        ]
        return [
            name
            for name in naming
            if any(api.is_a(found, _PLUGINS) for found in self._kafka_ancestors(name))
        ]

    def links(self, entry_points: Collection[str]) -> KafkaLinks:
        classes: dict[str, str] = {}
        members: dict[ClassMember, str] = {}
        internals: dict[str, str] = {}
        java = 0
        for user in self._reached(entry_points):
            java = max(java, user.java)
            try:
                for name in user.linked_classes():
                    if _is_kafkas(name) and name not in self._bundled:
                        classes.setdefault(name, user.head.name)
                for member in user.linked_members():
                    for owner in self._kafka_owners(member):
                        found = ClassMember(owner, member.name)
                        if owner in self._bundled and _OWN_FIRST.match(owner):
                            continue
                        # The location's class may also inherit the member from a class that is not
                        # Kafka's.
                        if owner == member.owner or kafka_api().releases_with_member(found):
                            members.setdefault(found, user.head.name)
            except ValueError as error:
                self.problems.append(f"class {user.head.name}: {error}")
                continue
            if user.head.name.startswith(KAFKA):
                continue  # its own connectors know the worker, and run in a program without one
            for text in user.raw_texts():
                if not text.startswith(_RUNTIME):
                    continue
                name = text.decode(errors="replace").replace("/", ".")
                if name not in self._bundled:
                    internals.setdefault(name, user.head.name)
        return KafkaLinks(
            classes=classes,
            members=members,
            bundled=self._bundled,
            internals=internals,
            java=java,
            problems=tuple(self.problems),
        )

    def _class(self, name: str) -> ClassFile | None:
        """Return a class of the location; None if it is not there or cannot be read."""
        if name not in self._classes and name in self._places:
            self._classes[name] = None
            container, path = self._places[name]
            content = self.content(container, path)
            try:
                self._classes[name] = None if content is None else ClassFile(content)
            except ValueError as error:
                self.problems.append(f"{path} in {container.path}: {error}")
        return self._classes.get(name)

    def _reached(self, entry_points: Collection[str]) -> Iterator[ClassFile]:
        """Yield the classes that a plugin can reach, without Kafka's own."""
        # Constants name a class in either form, and code may load a class by a text.
        spelt = {
            form.encode(): name
            for name in self._places
            if name not in self._bundled
            for form in (name, name.replace(".", "/"))
        }
        waiting = list(entry_points)
        seen = set(waiting)
        while waiting:
            found = self._class(waiting.pop())
            if found is None:
                continue
            yield found
            for name in filter(None, map(spelt.get, found.raw_texts())):
                if name not in seen:
                    seen.add(name)
                    waiting.append(name)

    def _kafka_ancestors(self, name: str) -> frozenset[str]:
        """Return the nearest classes of Kafka above a class of the location."""
        if name not in self._ancestors:
            # This ends the recursion for a class that claims to extend itself.
            self._ancestors[name] = frozenset()
            found = self._class(name)
            self._ancestors[name] = frozenset().union(
                *(
                    {parent} if _is_kafkas(parent) else self._kafka_ancestors(parent)
                    for parent in (found.head.parents if found else ())
                )
            )
        return self._ancestors[name]

    def _kafka_owners(self, member: ClassMember) -> Collection[str]:
        """Return Kafka's classes that may have a member; none if the location's class has it."""
        if _is_kafkas(member.owner):
            return (member.owner,)
        ancestors = self._kafka_ancestors(member.owner)
        return () if ancestors and self._declares(member.owner, member.name, set()) else ancestors

    def _declares(self, owner: str, name: str, seen: set[str]) -> bool:
        found = self._class(owner)
        if found is None or owner in seen:
            return False
        seen.add(owner)
        return name in found.members() or any(
            self._declares(parent, name, seen) for parent in found.head.parents
        )
