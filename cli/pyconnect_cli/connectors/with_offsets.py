"""`connectors create --offsets-from`: create a connector STOPPED, set its offsets, resume it."""

from __future__ import annotations

from pyconnect_cli.acting.wait import wait_for_state
from pyconnect_cli.connectors.plan import ConnectorFile
from pyconnect_cli.errors import (
    OutOfTime,
    PreconditionFailed,
    PyconnectError,
    UsageError,
    WaitTimedOut,
)
from pyconnect_cli.offsets.files import read_snapshot_file
from pyconnect_cli.offsets.plan.change import Action, OffsetsView, Planned, StateWish, plan_restore
from pyconnect_cli.offsets.plan.origin import require_fitting, same_class
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.offsets.run import Around, change_new_connector
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session


def read_offsets_for(file: ConnectorFile, place: str) -> OffsetsSnapshot:
    """Read an exported file for a new connector; offsets of another class are refused."""
    snapshot = read_snapshot_file(place)
    if not snapshot.offsets:
        raise UsageError(f"{place}: contains no offsets")
    class_name = file.config.get("connector.class") or ""
    if not same_class(snapshot.class_name, class_name):
        raise PreconditionFailed(
            f"{place}: contains offsets of a {snapshot.class_name}, but {file.name} is a"
            f" {class_name}: nothing was created",
            hint="if this is intended: create it with --initial-state STOPPED, then import"
            " with --force",
        )
    return snapshot


def create_with_offsets(
    session: Session, file: ConnectorFile, snapshot: OffsetsSnapshot, state: str
) -> str | None:
    """Create one connector with exactly these offsets; return a remark for its result line.

    Offsets of an earlier connector of the name are backed up and replaced. After a failure the new
    connector stays STOPPED: it has done nothing yet.
    """
    client = session.client
    cluster_id = session.worker.kafka_cluster_id
    info = client.create_connector(file.name, file.config, initial_state="STOPPED")

    def planner(view: OffsetsView) -> Planned:
        require_fitting(snapshot, view, cluster_id=cluster_id)
        return plan_restore(view, options.wish, snapshot.offsets, action=Action.IMPORT)

    options = Around(wish=StateWish(stop=False, resume=state == "RUNNING"))
    try:
        wait_for_state(session, [file.name], "STOPPED")
        status = client.connector_status(file.name)
        view = ConnectorView(name=file.name, info=info, status=status)
        remark = change_new_connector(session, view, planner, options)
        if state == "PAUSED":
            client.pause_connector(file.name)
    except PyconnectError as error:
        error.hint = (
            f"{file.name} was created and is STOPPED: import its offsets and resume it, or"
            f" pyconnect connectors delete {file.name}"
        )
        if isinstance(error, OutOfTime):
            # The batch would report "not tried", but the connector was created.
            raise WaitTimedOut(error.message, hint=error.hint) from error
        raise
    return remark
