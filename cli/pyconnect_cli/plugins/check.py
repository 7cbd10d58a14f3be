"""`plugins check`: which releases of Kafka the Java plugins of this machine can run with.

Reads class files; starts neither Java nor a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.errors import ExitCode, NotFound, UsageError
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column
from pyconnect_cli.session import session_of
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.plugin_findings import LinkFinding, check_locations, plugin_path_of
from pyconnect_clients.plugin_jars.kafka_links import kafka_api
from pyconnect_clients.properties_file import load_properties

app = typer.Typer()


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
    try:
        if kafka is not None:
            kafka_api().bit(kafka)
    except KeyError:
        raise UsageError(
            f"the classes of Kafka {kafka} are not known; known are"
            f" {', '.join(kafka_api().releases)}"
        ) from None
    entries = list(directories or ())
    if worker is not None:
        try:
            entries += plugin_path_of(load_properties(str(worker)))
        except ClientPropertyError as error:
            raise UsageError(str(error)) from error
    for entry in entries:
        if not entry.exists():
            raise NotFound(f"{entry} does not exist", hint="give a directory of plugins, or a jar")
    findings = check_locations(entries, kafka)
    if not findings:
        raise NotFound(
            "there are no Java plugins to check",
            hint="name directories that hold jars, or a worker's file: --worker worker.properties",
        )
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
