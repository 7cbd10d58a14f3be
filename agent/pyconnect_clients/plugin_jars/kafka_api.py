"""The public classes and members of Kafka's clients and Connect, release by release.

Plugins link to them. The table (`kafka-api.txt.xz`, made by `scripts/kafka_releases.py`) has a line
for each class, and below it one for each member: releases as a bit mask in hexadecimal and a space,
then `:` with the class's parents, or the member's name with its descriptor.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources

from pyconnect_clients.plugin_jars.class_file import ClassMember

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
"""Members of the types of Java that many classes of Kafka have above them, without `_OF_OBJECT`."""


@dataclass(frozen=True, slots=True)
class KafkaApi:
    """`versions`: one of each minor release, oldest first: `("3.9.2", "4.0.2", …)`.

    `classes`: by name, the releases of each member as a bit mask; parents are `:` with their names.
    """

    versions: tuple[str, ...]
    classes: Mapping[str, Mapping[str, int]] = field(repr=False)

    @property
    def releases(self) -> tuple[str, ...]:
        """The minor releases, oldest first: `("3.9", "4.0", …)`."""
        return tuple(map(minor_release, self.versions))

    def releases_with(self, name: str) -> int:
        """Return the releases that have a class, as a bit mask; 0 when no release has it."""
        return sum(mask for _, mask in self._parents(name))

    def releases_with_member(self, member: ClassMember) -> int:
        """Return the releases in which a class has a member or inherits it, as a bit mask.

        A class that inherits from an unknown one has all members, but for constructors.
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
        """Return whether a class of any release is, extends or implements one of some types."""
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
    """Return `4.3` of `4.3.1`."""
    return ".".join(version.split(".")[:2])


def version_of(release: str, versions: Iterable[str]) -> str:
    """Return the version of a minor release, `4.0.2` for `4.0` or `4.0.0`. Raises KeyError."""
    return {minor_release(version): version for version in versions}[minor_release(release)]


@cache
def kafka_versions() -> tuple[str, ...]:
    """Return the versions of the table that ships, oldest first; the rest of it is not read."""
    table = resources.files(__package__).joinpath(TABLE)
    with table.open("rb") as packed, lzma.LZMAFile(packed) as lines:
        return tuple(lines.readline().decode().split())


@cache
def kafka_api() -> KafkaApi:
    """Return the table that ships with this package."""
    packed = resources.files(__package__).joinpath(TABLE).read_bytes()
    return parse_table(lzma.decompress(packed).decode())


def parse_table(text: str) -> KafkaApi:
    """Return the table of a text; its first line has the releases."""
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
