"""`offsets undo import copy`: verbs that take offsets from a backup, a file or a connector."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import BatchStep
from pyconnect_cli.acting.selection import selected_views
from pyconnect_cli.acting.workers import connect_cluster
from pyconnect_cli.errors import NotFound, PreconditionFailed, UsageError
from pyconnect_cli.offsets.files import read_snapshot_file
from pyconnect_cli.offsets.kept import backups_of
from pyconnect_cli.offsets.orphans import OrphanKeeper
from pyconnect_cli.offsets.output import since_lines
from pyconnect_cli.offsets.plan.change import (
    Action,
    OffsetsPlan,
    OffsetsView,
    plan_alter,
    plan_undo,
)
from pyconnect_cli.offsets.plan.snapshots import (
    OffsetsSnapshot,
    require_fitting,
    require_same_connector,
    require_same_type,
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
from pyconnect_cli.offsets.stored import topic_doubts
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.offset_entries import same_entries
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.verbs import NameArgument

app = typer.Typer()


@app.command(cls=OffsetsVerb)
def undo(
    context: typer.Context,
    identity: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID]", help="id of the backup (default: the backup of the newest change)"
        ),
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
        for line in since_lines(plan):
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
        require_same_type(snapshot, view)
        if not options.force:
            require_fitting(snapshot, view, cluster_id=cluster_id)
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
    file: Annotated[
        str,
        typer.Option(
            "--file", "-f", metavar="FILE", help="file of `offsets export`; `-` for stdin"
        ),
    ],
) -> None:
    """Set the offsets of an exported file; another origin needs --force."""
    session = session_of(context)
    options = around(session.given)
    snapshot = read_snapshot_file(file)
    if not snapshot.offsets:
        raise UsageError(
            f"{file}: contains no offsets", hint="to delete all offsets: pyconnect offsets reset"
        )
    cluster_id = session.worker.kafka_cluster_id

    def planner(view: OffsetsView) -> OffsetsPlan:
        require_same_type(snapshot, view)
        if not options.force:
            require_same_connector(snapshot, view)
            require_fitting(snapshot, view, cluster_id=cluster_id)
        return _planned(session, view, snapshot, Action.IMPORT, options)

    change_offsets(session, selected_views(session, [name]), Action.IMPORT, planner, options)


@app.command(cls=OffsetsVerb)
def copy(
    context: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SRC", help="connector to read")],
    target: Annotated[str, typer.Argument(metavar="DST", help="connector to change")],
    *,
    to_context: Annotated[
        str | None, typer.Option("--to-context", metavar="CONTEXT", help="context of DST")
    ] = None,
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
        cluster_id = other.worker.kafka_cluster_id

        def planner(view: OffsetsView) -> OffsetsPlan:
            require_same_type(snapshot, view)
            if not options.force:
                require_fitting(snapshot, view, cluster_id=cluster_id)
            return _planned(other, view, snapshot, Action.COPY, options)

        change_offsets(other, selected_views(other, [target]), Action.COPY, planner, options)
    finally:
        if other is not session:
            session.record = other.record
            other.close()


def _planned(
    session: Session, view: OffsetsView, snapshot: OffsetsSnapshot, action: Action, options: Around
) -> OffsetsPlan:
    wanted, force = snapshot.offsets, options.force
    doubts = None if force else topic_doubts(session, view, wanted)
    return plan_alter(view, wanted, action=action, force=force, topic_doubts=doubts)


def _backup(session: Session, identity: str | None, cluster_id: str) -> OffsetsSnapshot:
    now = datetime.now(UTC)
    backups = backups_of(session)
    here = connect_cluster(session, session.client.connector_statuses().values())
    if identity is not None:
        snapshot = backups.find(identity, now)
        if snapshot.cluster_id != cluster_id:
            raise PreconditionFailed(
                f"backup {identity} is of Kafka cluster {snapshot.cluster_id}, this one is"
                f" {cluster_id}: nothing was changed",
                hint="choose the cluster with --context or --url",
            )
        if snapshot.connect.is_same(here) is False:
            raise PreconditionFailed(
                f"backup {identity} is of Connect group {snapshot.connect.group_id}, this one is"
                f" {here.group_id}: nothing was changed",
                hint="choose the cluster with --context or --url",
            )
        return snapshot
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
