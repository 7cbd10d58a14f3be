"""Reads the jars of locations in a process of its own.

Layer: java_processes. Kafka's jars alone have 14,000 entries; a worker that had read them would
keep 12 MB.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TextIO, TypeAlias

from pyconnect_agent.core.plugins.catalog import PluginKind
from pyconnect_agent.java_processes.jar_contents import Found, JarContents
from pyconnect_clients.plugin_jars.kafka_api import kafka_api
from pyconnect_clients.plugin_jars.kafka_links import read_links

MODULE = "pyconnect_agent.java_processes.jar_scan"
"""This module's name; `__name__` differs in the process that runs it."""


class ClassPath(NamedTuple):
    """A location's entries; `by_classes`: plugins without a service file are looked for too.

    `of_kafka`: they are Kafka's own.
    """

    entries: tuple[str, ...]
    by_classes: bool
    of_kafka: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class JarScan:
    """Classes by service files and by what they extend; `problems` name what was unreadable.

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
    with JarContents(kafka_jars) as kafka:
        return [_scanned(class_path, kafka) for class_path in class_paths]


def _scanned(class_path: ClassPath, kafka: JarContents) -> JarScan:
    with JarContents(class_path.entries) as contents:
        listed = contents.declared()
        implementing = contents.implementing(kafka) if class_path.by_classes else {}
    releases: Sequence[str] = ()
    if not class_path.of_kafka:
        plugins = {name for name, _ in (listed | implementing)}
        links = read_links(class_path.entries, entry_points=plugins)
        releases = links.releases(kafka_api())
    return JarScan(
        listed=listed,
        implementing=implementing,
        problems=contents.problems,
        releases=releases,
    )


def to_input(class_paths: Sequence[ClassPath], kafka_jars: Sequence[str]) -> str:
    """Return what the process reads from standard input."""
    return json.dumps([class_paths, kafka_jars])


def from_output(line: str) -> list[JarScan]:
    """Return what the process has printed."""
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
    """Scan what `given` names, and write a line of JSON."""
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
