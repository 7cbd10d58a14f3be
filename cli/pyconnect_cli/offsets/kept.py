"""`offsets diff export history`: offsets beside others, in files and in backups."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.selection import (
    known_offsets,
    report_unread,
    selected_views,
    unread_error,
)
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError
from pyconnect_cli.offsets.files import (
    Backups,
    ExportFileOption,
    backup_directory,
    export_snapshot,
    read_offsets_file,
)
from pyconnect_cli.offsets.plan.change import OffsetChange
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.offsets.run import offsets_view, snapshot_of
from pyconnect_cli.offsets.stored import offset_differences
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.streams import file_name
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.offset_entries import show_offset, show_partition
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import NameArgument, NamesArgument, SelectingCronVerb

app = typer.Typer()

DIFFERENCE_COLUMNS: Sequence[Column[OffsetChange]] = (
    Column("PARTITION", lambda change: show_partition(change.partition), whole=True),
    Column("OFFSET", lambda change: show_offset(change.before)),
    Column("OTHER", lambda change: show_offset(change.after)),
)
HISTORY_COLUMNS: Sequence[Column[OffsetsSnapshot]] = (
    Column("ID", lambda snapshot: snapshot.id, whole=True),
    Column("TIME", lambda snapshot: snapshot.time, whole=True),
    Column("CONNECTOR", lambda snapshot: snapshot.connector),
    Column("BEFORE", lambda snapshot: snapshot.action),
    Column("PARTITIONS", lambda snapshot: str(len(snapshot.offsets)), right=True),
    Column("CLASS", lambda snapshot: snapshot.class_name, wide=True),
    Column("CLUSTER", lambda snapshot: snapshot.cluster_id, wide=True),
)


@app.command()
def diff(
    context: typer.Context,
    name: NameArgument,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="connector to compare with")
    ] = None,
    *,
    file: Annotated[
        str | None,
        typer.Option("--file", "-f", metavar="FILE", help="file to compare with; `-` for stdin"),
    ] = None,
    backup: Annotated[
        str | None, typer.Option("--backup", metavar="ID", help="id of the backup to compare with")
    ] = None,
) -> None:
    """Compare offsets with a file, a backup or another connector's; exit 1 if they differ."""
    session = session_of(context)
    given = [place for place in (other, file, backup) if place is not None]
    if len(given) != 1:
        raise UsageError(
            "give exactly one thing to compare with", hint="-f FILE, --backup ID or OTHER"
        )
    stored = known_offsets(session, name).entries
    if other is not None:
        wanted = known_offsets(session, other).entries
    elif backup is not None:
        wanted = backups_of(session).find(backup, datetime.now(UTC)).offsets
    else:
        connector_type = session.client.connector(name).type
        wanted = read_offsets_file(str(file), connector_type).entries
    changes = offset_differences(stored, wanted)
    session.output.listing(
        DIFFERENCE_COLUMNS,
        changes,
        document=[change.to_json() for change in changes],
        empty="no difference",
    )
    if changes:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


@app.command(cls=SelectingCronVerb)
def export(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    file: ExportFileOption = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--dir", "-d", metavar="DIR", help="directory for one file per connector: NAME.json"
        ),
    ] = None,
) -> None:
    """Write the offsets with cluster id, connector, class, time and version, for `import`."""
    session = session_of(context)
    if directory and file:
        raise UsageError("--file and --dir exclude each other")
    views = selected_views(session, names or ())
    if len(views) > 1 and not directory:
        raise UsageError(
            f"{len(views)} connectors do not fit into one file", hint="give a directory: --dir DIR"
        )
    worker = session.worker
    unread: list[PyconnectError] = []
    faults: dict[str, str | None] = {}
    for view in views:
        place = directory / file_name(view.name) if directory else file
        try:
            snapshot = snapshot_of(offsets_view(session, view), worker)
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
            faults[view.name] = error.message
            continue
        export_snapshot(session, snapshot, place)
        faults[view.name] = None
    session.record = BatchRecord.of_checks("export", faults)
    report_unread(session, unread, len(views))


@app.command()
def history(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="connector whose changes are listed")
    ] = None,
) -> None:
    """List the backups of offset changes on this machine, newest first."""
    session = session_of(context)
    found, broken = backups_of(session).all(datetime.now(UTC))
    for reason in broken.values():
        session.output.warning(reason)
    shown = [snapshot for snapshot in found if name is None or snapshot.connector == name]
    session.output.listing(
        HISTORY_COLUMNS,
        shown,
        document=[snapshot.to_json() for snapshot in shown],
        empty="no backups",
    )


def backups_of(session: Session) -> Backups:
    """Return the backups of the user."""
    return Backups(backup_directory(session.environ))
