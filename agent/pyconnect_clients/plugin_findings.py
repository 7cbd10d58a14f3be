"""Findings about the Java plugins of this machine, for `plugins check` and `agent readiness`.

The module reads class files, and starts neither Java nor a worker.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyconnect_clients.installation import java_version
from pyconnect_clients.plugin_jars.kafka_links import Missing, kafka_api, read_links
from pyconnect_clients.plugin_jars.locations import class_path_of, java_locations


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFinding:
    """One finding about one location; `status` is ok, warning or failed.

    `kafka`: the releases with all classes that the location needs, `3.9 to 4.3`.
    """

    location: str
    kafka: str
    status: str
    detail: str


def plugin_path_of(worker: Mapping[str, str]) -> list[Path]:
    """Return the entries of a worker's `plugin.path`."""
    entries = worker.get("plugin.path", "").split(",")
    return [Path(entry.strip()) for entry in entries if entry.strip()]


def check_locations(entries: Sequence[Path], release: str | None = None) -> list[LinkFinding]:
    """Return findings about the Java plugins of directories or jars; none without plugins.

    A directory that holds jars is one location. `release` is one of `kafka_api`.
    """
    locations: list[Path] = []
    for given in entries:
        holds_jars = given.is_file() or any(given.glob("*.jar"))
        locations += [given.absolute()] if holds_jars else java_locations([str(given)])
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    java = java_version(Path(program)) if program else None
    findings: list[LinkFinding] = []
    for location in dict.fromkeys(locations):
        links = read_links(class_path_of(location))
        releases = links.releases(kafka_api())
        found = []
        if java is not None and links.java > java:
            found.append(("failed", f"needs Java {links.java}; this machine has Java {java}"))
        if release is not None or not releases:
            wanted = release or kafka_api().releases[-1]
            for missing in links.missing(kafka_api(), wanted):
                had = f"the last release with it is {missing.last}" if missing.last else ""
                has = f"{missing.first} has it" if missing.first else ""
                lacks = f"{_name(missing)} ({'; '.join(filter(None, (had, has)))})"
                found.append(("failed", f"Kafka {wanted} lacks {lacks}, which {missing.user} uses"))
        absent = links.absent(kafka_api())
        known = _range(kafka_api().releases)
        found += [
            ("failed", f"no Kafka from {known} has a public {_name(each)}, which {each.user} uses")
            for each in absent
        ]
        if not found:
            found.append(("ok", f"{len(links.classes)} classes of Kafka are used"))
        if links.bundled:
            held = f"holds {len(links.bundled)} classes of Kafka"
            found.append(("warning", f"{held}; Connect takes its own release's instead"))
        for name, user in links.internals.items():
            found.append(("warning", f"{user} reaches into the worker: {name}"))
        found += [("warning", problem) for problem in links.problems]
        kafka = _range(() if absent else releases)
        findings += [
            LinkFinding(location=str(location), kafka=kafka, status=status, detail=detail)
            for status, detail in found
        ]
    return findings


def _name(missing: Missing) -> str:
    name, parenthesis, _ = missing.needed.partition("(")
    return f"{name}{'()' if parenthesis else ''}"


def _range(releases: Sequence[str]) -> str:
    """Return releases as text, neighbours as a range: `3.9, 4.1 to 4.3`."""
    runs: list[list[str]] = []
    known = kafka_api().releases
    for release in releases:
        if runs and known.index(runs[-1][-1]) + 1 == known.index(release):
            runs[-1].append(release)
        else:
            runs.append([release])
    texts = [run[0] if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return ", ".join(texts) or "none"
