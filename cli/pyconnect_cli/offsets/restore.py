"""`offsets diff export history undo import copy`: offsets in files, backups, other connectors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import BatchStep
from pyconnect_cli.acting.selection import (
    known_offsets,
    report_unread,
    selected_views,
    unread_error,
)
from pyconnect_cli.acting.workers import connect_cluster
from pyconnect_cli.errors import ExitCode, NotFound, PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.offsets.files import (
    ExportFileOption,
    backups_of,
    export_snapshot,
    read_offsets_file,
    read_snapshot_file,
)
from pyconnect_cli.offsets.orphans import OrphanKeeper
from pyconnect_cli.offsets.plan.change import (
    Action,
    OffsetChange,
    OffsetsPlan,
    OffsetsSnapshot,
    OffsetsView,
    offset_differences,
    plan_undo,
    require_fitting,
    require_untouched,
)
from pyconnect_cli.offsets.run import (
    Around,
    OffsetsVerb,
    around,
    change_offsets,
    offsets_view,
    run_changes,
    snapshot_of,
)
from pyconnect_cli.offsets.stored import alter_plan
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.streams import file_name
from pyconnect_cli.render.styles import counted
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.offset_entries import same_entries, show_offset, show_partition
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.verbs import NameArgument, NamesArgument, SelectingCronVerb, argument, option

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
    other: Annotated[str | None, argument("[OTHER]", "connector to compare with")] = None,
    *,
    file: Annotated[
        str | None, option("--file/-f FILE", "file to compare with; `-` for stdin")
    ] = None,
    backup: Annotated[str | None, option("--backup ID", "id of the backup to compare with")] = None,
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
        Path | None, option("--dir/-d DIR", "directory for one file per connector: NAME.json")
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
    name: Annotated[str | None, argument("[NAME]", "connector whose changes are listed")] = None,
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


@app.command(cls=OffsetsVerb)
def undo(
    context: typer.Context,
    identity: Annotated[
        str | None, argument("[ID]", "id of the backup (default: the backup of the newest change)")
    ] = None,
) -> None:
    """Restore a connector's offsets from before a change; an undo can be undone."""
    session = session_of(context)
    options = around(session.given)
    cluster_id = session.worker.kafka_cluster_id
    snapshot = _backup(session, identity, cluster_id)
    # A user sees the plan with the question and can refuse.
    unasked = session.settings.yes and not options.force and not session.given.get("dry_run")
    if snapshot.orphan:
        backup = options.backup
        keeper = OrphanKeeper(session)
        name = snapshot.connector
        plan = keeper.undo_plan(snapshot)
        if unasked:
            require_untouched(snapshot, plan)
        for line in plan.since_lines:
            session.output.message(line)
        if session.given.get("dry_run"):
            offsets = counted(len(snapshot.offsets), "offset")
            session.output.line(f"would restore {offsets} of the deleted {name}")
        step = BatchStep(
            name=name, done="undone", act=lambda: keeper.restore(snapshot, backup=backup)
        )
        backups = keeper.backups if backup else None
        run_changes(session, [step], "undo", backups, what="name")
        return

    def planner(view: OffsetsView) -> OffsetsPlan:
        require_fitting(snapshot, view, cluster_id=cluster_id, force=options.force)
        planned = plan_undo(view, snapshot.offsets, snapshot.left)
        if unasked:
            require_untouched(snapshot, planned)
        return planned

    views = selected_views(session, [snapshot.connector])
    change_offsets(session, views, Action.UNDO, planner, options)


@app.command("import", cls=OffsetsVerb)
def import_offsets(
    context: typer.Context,
    name: NameArgument,
    *,
    file: Annotated[str, option("--file/-f FILE", "file of `offsets export`; `-` for stdin")],
) -> None:
    """Set the offsets of an exported file; another origin needs --force."""
    session = session_of(context)
    options = around(session.given)
    snapshot = read_snapshot_file(file)
    if not snapshot.offsets:
        raise UsageError(
            f"{file}: contains no offsets", hint="to delete all offsets: pyconnect offsets reset"
        )
    _take(session, name, snapshot, Action.IMPORT, options)


@app.command(cls=OffsetsVerb)
def copy(
    context: typer.Context,
    source: Annotated[str, argument("SRC", "connector to read")],
    target: Annotated[str, argument("DST", "connector to change")],
    *,
    to_context: Annotated[str | None, option("--to-context CONTEXT", "context of DST")] = None,
) -> None:
    """Copy the offsets of SRC to DST; partitions of DST that SRC lacks keep theirs."""
    session = session_of(context)
    options = around(session.given)
    if to_context is None and source == target:
        raise UsageError("SRC and DST are the same connector")
    (source_view,) = selected_views(session, [source])
    snapshot = snapshot_of(offsets_view(session, source_view), session.worker)
    if not snapshot.offsets:
        raise NotFound(f"{source} has no stored offsets: nothing was changed")
    other = session if to_context is None else session_of_context(session, to_context)
    try:
        _take(other, target, snapshot, Action.COPY, options)
    finally:
        if other is not session:
            session.record = other.record
            other.close()


def _take(
    session: Session, name: str, snapshot: OffsetsSnapshot, action: Action, options: Around
) -> None:
    """Set the offsets of a snapshot; a file has to be of the connector, unless it is forced."""
    cluster_id, force = session.worker.kafka_cluster_id, options.force
    same_name = action is Action.IMPORT

    def planner(view: OffsetsView) -> OffsetsPlan:
        require_fitting(snapshot, view, cluster_id=cluster_id, force=force, same_name=same_name)
        return alter_plan(session, view, snapshot.offsets, action=action, force=force)

    change_offsets(session, selected_views(session, [name]), action, planner, options)


def _backup(session: Session, identity: str | None, cluster_id: str) -> OffsetsSnapshot:
    now = datetime.now(UTC)
    backups = backups_of(session)
    here = connect_cluster(session, session.client.connector_statuses().values())
    if identity is not None:
        snapshot = backups.find(identity, now)
        if snapshot.cluster_id != cluster_id:
            origin, this = f"Kafka cluster {snapshot.cluster_id}", cluster_id
        elif snapshot.connect.is_same(here) is False:
            origin, this = f"Connect group {snapshot.connect.group_id}", here.group_id
        else:
            return snapshot
        raise PreconditionFailed(
            f"backup {identity} is of {origin}, this one is {this}: nothing was changed",
            hint="choose the cluster with --context or --url",
        )
    found, broken = backups.all(now)
    of_kafka = [snapshot for snapshot in found if snapshot.cluster_id == cluster_id]
    ours = [snapshot for snapshot in of_kafka if snapshot.connect.is_same(here)]
    doubtful = [snapshot for snapshot in of_kafka if snapshot.connect.is_same(here) is None]
    if doubtful and not ours:
        raise PreconditionFailed(
            f"the newest backup, {doubtful[0].id}, was made through other workers"
            f" ({', '.join(sorted(doubtful[0].connect.workers))}): nothing was changed",
            hint=f"if they are of this Connect cluster: pyconnect offsets undo {doubtful[0].id}",
        )
    for snapshot in ours:
        if damaged := [broken_id for broken_id in broken if broken_id > snapshot.id]:
            raise PreconditionFailed(
                f"the newest backup, {damaged[0]}, cannot be used: {broken[damaged[0]]};"
                " nothing was changed",
                hint=f"to undo the change before it: pyconnect offsets undo {snapshot.id}",
            )
        if not _came_to_nothing(session, snapshot):
            return snapshot
        session.output.message(
            f"backup {snapshot.id} is skipped: its change failed and had no effect"
        )
    for reason in broken.values():
        session.output.warning(reason)
    raise NotFound(
        f"there is nothing to undo: {backups.directory} contains no backup of a"
        f" change in Kafka cluster {cluster_id}"
    )


def _came_to_nothing(session: Session, snapshot: OffsetsSnapshot) -> bool:
    """Return whether a change ended in an error and left the offsets as they were."""
    if not snapshot.failed:
        return False
    try:
        stored = session.client.connector_offsets(snapshot.connector).entries
    except NotFound:
        return False
    return same_entries(stored, snapshot.offsets)
