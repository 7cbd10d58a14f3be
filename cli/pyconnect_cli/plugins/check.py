"""`plugins check`: which releases of Kafka the Java plugins of this machine can run with.

Reads class files; starts neither Java nor a worker.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import ExitCode, NotFound, UsageError
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.java_program import java_version
from pyconnect_clients.plugin_jars.kafka_api import kafka_api
from pyconnect_clients.plugin_jars.kafka_links import KafkaLinks, Missing, read_links
from pyconnect_clients.plugin_jars.locations import class_path_of, java_locations
from pyconnect_clients.properties_file import load_properties

app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFinding:
    """One finding about one location; `status` is ok, warning or failed.

    `kafka`: the releases that have all that the location needs, `3.9 to 4.3`.
    """

    location: str
    kafka: str
    status: str
    detail: str


COLUMNS: Sequence[Column[LinkFinding]] = (
    Column("STATUS", lambda finding: finding.status, style=state_style),
    Column("LOCATION", lambda finding: Path(finding.location).name, distinct=True),
    Column("KAFKA", lambda finding: finding.kafka),
    Column("DETAIL", lambda finding: finding.detail, prose=True),
)


@app.command("check")
def check(
    context: typer.Context,
    directories: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="plugin directories, or jars, of this machine"),
    ] = None,
    *,
    worker: Annotated[
        Path | None,
        typer.Option("--worker", metavar="FILE", help="worker.properties, for its plugin.path"),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(
            "--kafka", metavar="RELEASE", help="release that has to run all plugins, such as 4.4"
        ),
    ] = None,
) -> None:
    """Check which releases of Kafka the Java plugins of a directory can run with.

    The command reads the jars, without Java. It names classes and methods of Kafka that a plugin
    needs and a release lacks, and exits with 1 when a plugin cannot run: with the release of
    --kafka, else with any release.
    """
    session = session_of(context)
    release = _known(kafka)
    findings = [
        finding
        for location, class_path in _locations(directories or [], worker).items()
        for finding in findings_of(str(location), read_links(class_path), release, _java())
    ]
    failed = any(finding.status == "failed" for finding in findings)
    if not session.output.silent(success=not failed):
        session.output.listing(
            COLUMNS,
            findings,
            document=[asdict(finding) for finding in findings],
            names=[finding.location for finding in findings],
        )
    if failed:
        raise typer.Exit(ExitCode.NEGATIVE)


def _known(release: str | None) -> str | None:
    try:
        if release is not None:
            kafka_api().bit(release)
    except KeyError:
        raise UsageError(
            f"the classes of Kafka {release} are not known; known are"
            f" {', '.join(kafka_api().releases)}"
        ) from None
    return release


def _locations(directories: Sequence[Path], worker: Path | None) -> Mapping[Path, Sequence[str]]:
    """Return the class paths of all locations. A directory that holds jars is one location."""
    found: list[Path] = []
    for given in [*directories, *_plugin_path(worker)]:
        if not given.exists():
            raise NotFound(f"{given} does not exist", hint="give a directory of plugins, or a jar")
        holds_jars = given.is_file() or any(given.glob("*.jar"))
        found += [given.absolute()] if holds_jars else java_locations([str(given)])
    if not found:
        raise NotFound(
            "there are no Java plugins to check",
            hint="name directories that hold jars, or a worker's file: --worker worker.properties",
        )
    return {location: class_path_of(location) for location in dict.fromkeys(found)}


def _plugin_path(worker: Path | None) -> list[Path]:
    if worker is None:
        return []
    try:
        entries = load_properties(str(worker)).get("plugin.path", "").split(",")
    except ClientPropertyError as error:
        raise UsageError(str(error)) from error
    return [Path(entry.strip()) for entry in entries if entry.strip()]


def _java() -> int | None:
    """Return the version of this machine's Java; None without one."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return java_version(Path(program)) if program else None


def findings_of(
    location: str, links: KafkaLinks, release: str | None, java: int | None
) -> list[LinkFinding]:
    """Return the findings about one location: `ok` alone, or what is wrong with it."""
    releases = links.releases(kafka_api())
    kafka = _range(releases)
    found = [*_failures(links, releases, release, java), *_warnings(links)]
    if not any(status == "failed" for status, _ in found):
        found.insert(0, ("ok", f"{len(links.classes)} classes of Kafka are used"))
    return [
        LinkFinding(location=location, kafka=kafka, status=status, detail=detail)
        for status, detail in found
    ]


def _failures(
    links: KafkaLinks, releases: Sequence[str], release: str | None, java: int | None
) -> Iterator[tuple[str, str]]:
    if java is not None and links.java > java:
        yield "failed", f"needs Java {links.java}; this machine has Java {java}"
    if release is None and releases:
        return
    wanted = release or kafka_api().releases[-1]
    for missing in links.missing(kafka_api(), wanted):
        yield "failed", f"Kafka {wanted} lacks {_described(missing)}, which {missing.user} uses"


def _warnings(links: KafkaLinks) -> Iterator[tuple[str, str]]:
    if links.bundled:
        count = len(links.bundled)
        yield "warning", f"holds {count} classes of Kafka; Connect takes its own release's instead"
    for name, user in links.internals.items():
        yield "warning", f"{user} reaches into the worker: {name}"
    for problem in links.problems:
        yield "warning", problem


def _described(missing: Missing) -> str:
    name, parenthesis, _ = missing.needed.partition("(")
    had = f"the last release with it is {missing.last}" if missing.last else ""
    has = f"{missing.first} has it" if missing.first else ""
    return f"{name}{'()' if parenthesis else ''} ({'; '.join(filter(None, (had, has)))})"


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
