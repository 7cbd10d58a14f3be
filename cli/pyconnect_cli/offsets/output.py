"""The display of plans of offset changes: on stderr, with --dry-run on stdout."""

from __future__ import annotations

from collections.abc import Sequence

from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.offsets.plan.change import OffsetsPlan
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.offset_entries import partition_key, show_offset, show_partition
from pyconnect_cli.session import Session

MOST_LINES = 20


def show_plans(
    session: Session,
    plans: Sequence[OffsetsPlan],
    refused: Sequence[PyconnectError],
    *,
    backup: bool,
) -> None:
    """Print the plans; all partitions with `-v` or `-o wide`, else each connector's first ones."""
    lines = []
    for plan in plans:
        view = plan.view
        if not plan.needed:
            lines.append(f"{view.name}: nothing to change")
            continue
        short_class = view.class_name.rsplit(".", 1)[-1]
        lines += [
            f"{plan.action.value} offsets of {view.name} ({view.type}, {short_class})",
            f"  state   {' -> '.join(plan.states)}",
        ]
        if plan.changes:
            lines.append(f"  backup  {'first' if backup else 'none'}")
        else:
            lines.append("  no offsets are stored; the connector is asked to reset its own")
        lines += [f"  {line}" for line in since_lines(plan)]
        left = {partition_key(change.partition): change.before for change in plan.since or ()}
        changes = []
        for change in plan.changes:
            after = "forgotten" if change.after is None else show_offset(change.after)
            key = partition_key(change.partition)
            since = f"  (was left at {show_offset(left[key])})" if key in left else ""
            moved = f"{show_offset(change.before)} -> {after}{since}"
            changes.append(f"  {show_partition(change.partition)}  {moved}")
        lines += first_lines(session, changes, len(changes))
    show_plan(session, lines, [plan.to_json() for plan in plans])
    for error in refused if session.given.get("dry_run") else ():
        session.output.error(error)


def show_plan(session: Session, lines: Sequence[str], document: object) -> None:
    """Print a plan on stderr; with --dry-run on stdout, for machines as a document."""
    dry_run = bool(session.given.get("dry_run"))
    if dry_run and session.output.machine:
        session.output.document(document)
        return
    for line in lines:
        if dry_run:
            session.output.line(line)
        else:
            session.output.message(line)


def first_lines(session: Session, lines: Sequence[str], total: int) -> list[str]:
    """Return the lines of partitions: the first ones, all with `-v` or `-o wide`."""
    everything = bool(session.settings.verbose) or session.settings.output == "wide"
    shown = [*lines] if everything else [*lines[:MOST_LINES]]
    if total > len(shown):
        shown.append(f"  … and {total - len(shown)} more; see all with -v")
    return shown


def since_lines(plan: OffsetsPlan) -> list[str]:
    """Return lines about later changes that an undo overwrites too."""
    if plan.since is None:
        return ["later changes are not known: the backup is not the newest one"]
    if not plan.since:
        return []
    changed = counted(len(plan.since), "partition")
    return [
        f"warning: the connector or a user has changed {changed} since then; undo loses that change"
    ]
