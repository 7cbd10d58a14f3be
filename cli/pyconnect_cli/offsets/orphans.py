"""`offsets orphans list export purge`: offsets of deleted connectors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from pyconnect_cli.acting.workers import ask_workers
from pyconnect_cli.errors import (
    NotFound,
    PreconditionFailed,
    PyconnectError,
    UsageError,
)
from pyconnect_cli.offsets.export import ExportFileOption, export_snapshot
from pyconnect_cli.offsets.orphans_run import OrphanKeeper
from pyconnect_cli.offsets.output import first_lines, show_plan
from pyconnect_cli.offsets.plan.orphans import SINK, Orphan
from pyconnect_cli.offsets.run import Change, run_changes
from pyconnect_cli.parsing.near_names import did_you_mean
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.agent_client import AgentClient
from pyconnect_cli.rest.offset_entries import show_offset, show_partition
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.settings.given_files import worker_properties
from pyconnect_cli.verbs import BatchCronVerb

OFFSETS_TOPIC = "offset.storage.topic"
app = typer.Typer(help="Show, export and purge offsets of deleted connectors, directly in Kafka.")

TopicsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        "-t",
        metavar="TOPIC",
        help="offsets topic: the workers' offset.storage.topic, or a connector's own;"
        " repeatable (default: as the agents report it)",
    ),
]
OrphanNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME]…", help="deleted connectors")
]
AllOption = Annotated[bool, typer.Option("--all", help="every connector that `list` shows")]


def _time(written_ms: int | None) -> str:
    if written_ms is None:
        return "-"
    return datetime.fromtimestamp(written_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


COLUMNS: Sequence[Column[Orphan]] = (
    Column("CONNECTOR", lambda orphan: orphan.name, whole=True),
    Column("TYPE", lambda orphan: orphan.type),
    Column("STORED IN", lambda orphan: ",".join(orphan.places), prose=True),
    Column("OFFSETS", lambda orphan: str(orphan.count), right=True),
    Column("LAST WRITTEN", lambda orphan: _time(orphan.written_ms)),
)


@app.command("list")
def list_orphans(context: typer.Context, *, topics: TopicsOption = None) -> None:
    """List deleted connectors with offsets; those of sinks are in consumer groups connect-NAME."""
    session = session_of(context)
    keeper = _keeper(session, topics)
    found = keeper.find()
    if keeper.live:
        session.output.message(
            "left out, because their consumer groups have members (sinks of other Connect"
            f" clusters): {', '.join(sorted(keeper.live))}"
        )
    session.output.listing(
        COLUMNS,
        found,
        document=[_orphan_json(orphan) for orphan in found],
        names=[orphan.name for orphan in found],
        empty="no orphans",
    )


@app.command()
def export(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="name of a deleted connector")],
    *,
    topics: TopicsOption = None,
    sink: Annotated[
        bool, typer.Option("--sink", help="offsets of the consumer group connect-NAME")
    ] = False,
    file: ExportFileOption = None,
) -> None:
    """Write a deleted connector's offsets to a file for `import --force` and `diff -f`."""
    session = session_of(context)
    keeper = _keeper(session, topics)
    wanted = [orphan for orphan in keeper.find() if (orphan.type == SINK) == sink]
    (orphan,) = _named(wanted, [name], keeper)
    export_snapshot(session, keeper.snapshot(orphan), file)


@app.command(cls=BatchCronVerb)
def purge(
    context: typer.Context,
    names: OrphanNames = None,
    *,
    topics: TopicsOption = None,
    everything: AllOption = False,
    sink_groups: Annotated[
        bool,
        typer.Option(
            "--sink-groups",
            help="deletion of the consumer groups connect-NAME too; another Connect cluster"
            " on the same Kafka may own them",
        ),
    ] = False,
    confirmed: Annotated[
        list[str] | None,
        typer.Option(
            "--confirm-topic",
            metavar="TOPIC",
            help="offsets topic that belongs to this Connect cluster although its workers do"
            " not report it; repeatable",
        ),
    ] = None,
    worker_config: Annotated[
        str | None,
        typer.Option(
            "--worker-config",
            metavar="FILE",
            help="properties file of a worker, which names its offsets topic",
        ),
    ] = None,
    no_backup: Annotated[
        bool, typer.Option("--no-backup", help="no backup: the change cannot be undone")
    ] = False,
) -> None:
    """Delete offsets of deleted connectors; existing connectors are refused, `undo` restores."""
    session = session_of(context)
    if bool(names) == everything:
        raise UsageError("no connector to purge is given", hint="name deleted connectors, or --all")
    keeper = _keeper(session, topics, worker_config)
    found = keeper.find()
    wanted = found if everything else _named(found, names or (), keeper)
    chosen = [orphan for orphan in wanted if sink_groups or orphan.type != SINK]
    left = [orphan for orphan in wanted if orphan not in chosen]
    for orphan in left:
        session.output.message(
            f"kept: consumer group {orphan.places[0]} (delete it with --sink-groups)"
        )
    if left and not chosen and not everything:
        raise PreconditionFailed(
            "nothing was done: these names have consumer groups only", hint="add --sink-groups"
        )
    keeper.require_own(chosen, confirmed or ())
    _purge(session, keeper, chosen, backup=not no_backup)


def _purge(
    session: Session, keeper: OrphanKeeper, chosen: Sequence[Orphan], *, backup: bool
) -> None:
    lines = [] if chosen else ["no orphans: nothing to purge"]
    for orphan in chosen:
        lines += [
            f"purge offsets of {orphan.name} ({orphan.type}, no such connector)",
            f"  in      {', '.join(orphan.places)}",
            f"  backup  {'first' if backup else 'none'}",
        ]
        forgotten = [
            f"  {show_partition(entry.partition)}  {show_offset(entry.offset)} -> forgotten"
            for entry in orphan.entries
        ]
        lines += first_lines(session, forgotten, orphan.count)
    document = [{"would": "purge", **_orphan_json(orphan)} for orphan in chosen]
    show_plan(session, lines, document)
    changes = [
        Change(name=orphan.name, act=partial(keeper.purge, orphan, backup=backup))
        for orphan in chosen
    ]
    backups = keeper.backups if backup else None
    run_changes(session, changes, "purge", "purged", backups, what="name")


def _keeper(
    session: Session, topics: Sequence[str] | None, worker_config: str | None = None
) -> OrphanKeeper:
    return OrphanKeeper(
        session, topics or (), worker_topics=lambda: worker_topics_of(session, worker_config)
    )


def worker_topics_of(session: Session, worker_config: str | None) -> set[str]:
    """Return the offsets topic, as agents, the context or the file of a Java worker name it."""
    urls = session.client.exchange.urls
    answers = ask_workers(session, urls, lambda exchange: AgentClient(exchange).config())
    configs = [answer for answer in answers if not isinstance(answer, PyconnectError)]
    if worker_config is not None:
        configs.append(dict(worker_properties(worker_config)))
        if not configs[-1].get(OFFSETS_TOPIC):
            raise UsageError(f"--worker-config {worker_config}: it has no {OFFSETS_TOPIC}")
    found = {topic for config in configs if (topic := config.get(OFFSETS_TOPIC))}
    known = session.settings.offsets_topic
    return found or ({known} if known else set())


def _named(found: Sequence[Orphan], names: Sequence[str], keeper: OrphanKeeper) -> list[Orphan]:
    for name in names:
        if name in keeper.existing:
            raise PreconditionFailed(
                f"connector {name} exists, so its offsets are not orphans; nothing was done",
                hint=f"to delete them: pyconnect offsets reset {name}",
            )
        if name in keeper.live and name not in {orphan.name for orphan in found}:
            raise PreconditionFailed(
                f"consumer group connect-{name} has members: a sink of another Connect cluster"
                " uses it; nothing was done"
            )
        if name not in {orphan.name for orphan in found}:
            near = did_you_mean(name, sorted({orphan.name for orphan in found}))
            raise NotFound(
                f"no offsets of a connector `{name}` were found in {keeper.searched}",
                hint=near or "list the orphans: pyconnect offsets orphans list",
            )
    return [orphan for orphan in found if orphan.name in names]


def _orphan_json(orphan: Orphan) -> dict[str, object]:
    return {
        "name": orphan.name,
        "type": orphan.type,
        "stored_in": list(orphan.places),
        "count": orphan.count,
        "written_ms": orphan.written_ms,
        "offsets": [entry.to_json() for entry in orphan.entries],
    }
