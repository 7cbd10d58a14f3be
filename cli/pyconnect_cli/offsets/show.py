"""`offsets get diff export history`: verbs that only read, also again and again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.conditions import selection_from
from pyconnect_cli.acting.selection import selected_views
from pyconnect_cli.acting.wait import looks
from pyconnect_cli.errors import ExitCode, PyconnectError, UsageError
from pyconnect_cli.kafka.model import kafka_offset
from pyconnect_cli.offsets.backups import Backups, backup_directory
from pyconnect_cli.offsets.files import ExportFileOption, export_snapshot, read_offsets_file
from pyconnect_cli.offsets.plan.change import OffsetChange
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.offsets.run import offsets_view, snapshot_of
from pyconnect_cli.offsets.stored import (
    known_offsets,
    offset_differences,
    report_unread,
    unread_error,
)
from pyconnect_cli.parsing.arguments import NameArgument, NamesArgument
from pyconnect_cli.parsing.durations import parse_duration
from pyconnect_cli.render.tables import Column
from pyconnect_cli.render.whole_files import file_name
from pyconnect_cli.rest.offset_entries import (
    SINK_OFFSET_KEY,
    ConnectorOffsets,
    OffsetEntry,
    partition_json,
    show_offset,
    show_partition,
)
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import SelectingVerb

app = typer.Typer()

COLUMNS: Sequence[Column[OffsetEntry]] = (
    Column("PARTITION", lambda entry: show_partition(entry.partition), whole=True),
    Column("OFFSET", lambda entry: show_offset(entry.offset)),
)
OWNED_COLUMNS: Sequence[Column[tuple[str, OffsetEntry]]] = (
    Column("CONNECTOR", lambda row: row[0], whole=True),
    Column("PARTITION", lambda row: show_partition(row[1].partition), whole=True),
    Column("OFFSET", lambda row: show_offset(row[1].offset)),
)
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


@app.command(cls=SelectingVerb)
def get(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="a line for each change of a connector's offset, until Ctrl-C or for --timeout"
            " when it is given",
        ),
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="time between two requests of --watch")
    ] = "2s",
) -> None:
    """Show the stored offsets of connectors.

    With one name, -o json prints the REST body, which `alter -f` accepts; otherwise an object of
    them by name.
    """
    session = session_of(context)
    single = names and len(names) == 1 and not selection_from(session.given, ()).filters
    if watch:
        if not names or not single:
            raise UsageError("--watch needs the name of one connector")
        watch_offsets(session, names[0], parse_duration(interval, what="--interval"))
        return
    if names and single:
        offsets = known_offsets(session, names[0])
        session.output.listing(
            COLUMNS,
            offsets.entries,
            document=offsets.raw,
            entries=[entry.to_json() for entry in offsets.entries],
            empty=f"{names[0]} has no stored offsets",
        )
        return
    found: dict[str, ConnectorOffsets] = {}
    unread: list[PyconnectError] = []
    for view in (views := selected_views(session, names or ())):
        try:
            found[view.name] = known_offsets(session, view.name)
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
    rows = [(name, entry) for name, offsets in found.items() for entry in offsets.entries]
    session.output.listing(
        OWNED_COLUMNS,
        rows,
        document={name: offsets.raw for name, offsets in found.items()},
        entries=[{"connector": name, **entry.to_json()} for name, entry in rows],
        empty="no stored offsets",
    )
    report_unread(session, unread, len(views))


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


@app.command(cls=SelectingVerb)
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
    for view in views:
        place = directory / file_name(view.name) if directory else file
        try:
            snapshot = snapshot_of(offsets_view(session, view), worker)
        except PyconnectError as error:
            unread.append(unread_error(view.name, error))
            continue
        export_snapshot(session, snapshot, place)
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


def watch_offsets(session: Session, name: str, pause_s: float) -> None:
    """Print each change until Ctrl-C, the run's end, or the end of the reader.

    The first look prints every offset as a change from none.
    """
    last: Sequence[OffsetEntry] = ()
    seen_s: float | None = None
    for offsets in looks(session, pause_s, lambda: known_offsets(session, name)):
        moment_s = time.monotonic()
        for change in offset_differences(last, offsets.entries):
            _print_change(session, change, None if seen_s is None else moment_s - seen_s)
        last, seen_s = offsets.entries, moment_s


def advanced(change: OffsetChange) -> int | None:
    """Return by how many records a sink's offset moved; None for a source's, or without both."""
    entries = [
        OffsetEntry(partition=change.partition, offset=offset)
        for offset in (change.before, change.after)
        if offset is not None and set(offset) == {SINK_OFFSET_KEY}
    ]
    numbers = [kafka_offset(entry) for entry in entries]
    if len(numbers) < 2 or numbers[0] is None or numbers[1] is None:
        return None
    return numbers[1] - numbers[0]


def _print_change(session: Session, change: OffsetChange, elapsed_s: float | None) -> None:
    moment = datetime.now().astimezone()
    records = advanced(change)
    text = f"{show_offset(change.before)} -> {show_offset(change.after)}"
    if elapsed_s is None:
        text = show_offset(change.after)
    elif records is not None:
        text += f"  ({records:+,}, {records / max(elapsed_s, 0.001):,.0f}/s)"
    session.output.document(
        {
            "time": moment.isoformat(timespec="milliseconds"),
            "partition": partition_json(change.partition),
            "before": change.before,
            "after": change.after,
        },
        text=f"{moment:%H:%M:%S}  {show_partition(change.partition)}  {text}",
    )
