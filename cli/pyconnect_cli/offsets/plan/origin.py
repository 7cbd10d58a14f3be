"""Checks of offsets from one connector before another one gets them. Pure."""

from __future__ import annotations

from pyconnect_cli.acting.conditions import is_class
from pyconnect_cli.errors import PreconditionFailed
from pyconnect_cli.offsets.plan.change import OffsetsPlan, OffsetsView
from pyconnect_cli.offsets.plan.snapshots import OffsetsSnapshot
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.offset_entries import show_offset, show_partition

FORCE = "if this is intended: --force"


def require_same_type(snapshot: OffsetsSnapshot, view: OffsetsView) -> None:
    """Raise if a sink would get a source's offsets or the reverse, which is never possible."""
    if snapshot.type != view.type:
        raise PreconditionFailed(
            f"{view.name} is a {view.type}; the offsets are of {snapshot.connector}, a"
            f" {snapshot.type}: nothing was changed"
        )


def same_class(one: str, other: str) -> bool:
    """Return whether two names mean one class: the full name, or an alias that workers know."""
    return is_class(one, [other]) or is_class(other, [one])


def require_fitting(snapshot: OffsetsSnapshot, view: OffsetsView, *, cluster_id: str) -> None:
    """Raise if offsets have another meaning: of another class, or of another Kafka for a sink."""
    require_same_type(snapshot, view)
    if not same_class(snapshot.class_name, view.class_name):
        raise PreconditionFailed(
            f"{view.name} is a {view.class_name}; the offsets are of a {snapshot.class_name}:"
            " nothing was changed",
            hint=FORCE,
        )
    if view.type == "sink" and snapshot.cluster_id != cluster_id:
        raise PreconditionFailed(
            f"the offsets are of Kafka cluster {snapshot.cluster_id}, {view.name} is on"
            f" {cluster_id}, where these offsets mean other records: nothing was changed",
            hint=FORCE,
        )


def require_same_connector(snapshot: OffsetsSnapshot, view: OffsetsView) -> None:
    """Raise when a file names another connector."""
    if snapshot.connector != view.name:
        raise PreconditionFailed(
            f"the file contains the offsets of {snapshot.connector}, not of {view.name}:"
            " nothing was changed",
            hint=FORCE,
        )


def require_untouched(snapshot: OffsetsSnapshot, plan: OffsetsPlan) -> None:
    """Raise when an undo without a question would overwrite later changes."""
    if not plan.since:
        return
    first, changed = plan.since[0], counted(len(plan.since), "partition")
    raise PreconditionFailed(
        f"{plan.view.name}: since the {snapshot.action} of {snapshot.time} the"
        f" connector or a user has changed {changed}:"
        f" {show_partition(first.partition)} was left at {show_offset(first.before)}"
        f" and is at {show_offset(first.after)}; nothing was changed",
        hint="to overwrite that: --force; to see all of it: --dry-run -v",
    )
