"""The plan of an offset change of one connector: states, and each partition before and after.

Pure: the caller makes the plan again from a fresh view once the connector is STOPPED, because its
tasks commit while they stop. What cannot be planned is raised as an error for the user.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.offsets.plan.checks import unlike_stored
from pyconnect_cli.rest.offset_entries import (
    OffsetEntry,
    Partition,
    Primitives,
    by_key,
    partition_json,
    partition_key,
    same_offset,
    show_partition,
)


class Action(Enum):
    """The kind of change that the user asked for."""

    RESET = "reset"
    ALTER = "alter"
    SEEK = "seek"
    IMPORT = "import"
    COPY = "copy"
    UNDO = "undo"
    RESTORE = "restore"


DONE = {
    Action.RESET: "reset",
    Action.ALTER: "altered",
    Action.SEEK: "altered",
    Action.IMPORT: "imported",
    Action.COPY: "copied",
    Action.UNDO: "undone",
    Action.RESTORE: "restored",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsView:
    """One connector with its state and its stored offsets."""

    name: str
    type: str
    class_name: str
    state: str
    config: Mapping[str, str | None]
    offsets: tuple[OffsetEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """One partition; None means no offset."""

    partition: Partition
    before: Primitives | None
    after: Primitives | None

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
        return {
            "partition": partition_json(self.partition),
            "before": None if self.before is None else dict(self.before),
            "after": None if self.after is None else dict(self.after),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsPlan:
    """The change of one connector.

    `everything`: one DELETE of all offsets instead of a PATCH; for a sink it removes the consumer
    group. `resume`: the connector runs afterwards. `since`, for an undo: partitions whose offset is
    no longer the one that the change left; `before` is the offset that it left, `after` the present
    one. None if that is not known.
    """

    view: OffsetsView
    action: Action
    changes: tuple[OffsetChange, ...]
    everything: bool = False
    resume: bool = False
    since: tuple[OffsetChange, ...] | None = ()

    @property
    def needed(self) -> bool:
        """Whether there is something to send.

        A reset of everything is always sent: a connector may keep offsets elsewhere, and the
        request makes it delete them.
        """
        return bool(self.changes) or (self.everything and self.action is Action.RESET)

    @property
    def states(self) -> tuple[str, ...]:
        """The states the connector goes through."""
        states = [self.view.state]
        if self.view.state != "STOPPED":
            states.append("STOPPED")
        if self.resume:
            states.append("RUNNING")
        return tuple(states)

    @property
    def wanted(self) -> tuple[OffsetEntry, ...]:
        """The entries to send, which must be read back afterwards."""
        return tuple(OffsetEntry(partition=c.partition, offset=c.after) for c in self.changes)

    @property
    def left(self) -> tuple[OffsetEntry, ...]:
        """All offsets of the connector after the change."""
        after = by_key(self.view.offsets) | by_key(self.wanted)
        return tuple(entry for entry in after.values() if entry.offset is not None)

    def to_json(self) -> dict[str, object]:
        """The stable form for machines."""
        document: dict[str, object] = {
            "name": self.view.name,
            "would": self.action.value if self.needed else "nothing",
            "states": list(self.states) if self.needed else [self.view.state],
            "changes": [change.to_json() for change in self.changes],
        }
        if self.action is Action.UNDO:
            since = self.since
            document["since"] = None if since is None else [change.to_json() for change in since]
        return document


def plan_reset(
    view: OffsetsView, partitions: Sequence[Partition] = (), *, action: Action = Action.RESET
) -> OffsetsPlan:
    """Plan to delete all offsets, or those of some partitions; NotFound for one without offset."""
    stored = by_key(view.offsets)
    if not partitions:
        return _planned(view, action, dict.fromkeys(stored), everything=True)
    keys = [partition_key(partition) for partition in partitions]
    for key, partition in zip(keys, partitions, strict=True):
        if key not in stored:
            raise NotFound(
                f"{view.name} has no offset of partition {show_partition(partition)}",
                hint=f"show its offsets: pyconnect offsets get {view.name}",
            )
    return _planned(view, action, dict.fromkeys(keys))


def plan_alter(
    view: OffsetsView,
    wanted: Sequence[OffsetEntry],
    *,
    action: Action = Action.ALTER,
    force: bool = False,
    topic_doubts: Sequence[str] | None = None,
) -> OffsetsPlan:
    """Plan to set offsets of some partitions and keep the others.

    UsageError for offsets unlike the stored ones, without `force`. A connector without stored
    offsets is no reason: there is nothing to compare with. `topic_doubts` are from the check of a
    sink's topics; None: Kafka was not asked, and partitions without an offset may not exist.
    """
    doubts = [] if force else list(topic_doubts or ())
    if view.offsets and not force:
        new_partitions = action is not Action.ALTER or topic_doubts is not None
        doubts += unlike_stored(wanted, view.offsets, new_partitions=new_partitions)
    if doubts:
        more = f" (and {len(doubts) - 3} more)" if len(doubts) > 3 else ""
        raise UsageError(
            f"{view.name}: {'; '.join(doubts[:3])}{more}; nothing was changed",
            hint=f"compare with: pyconnect offsets get {view.name}; if this is intended: --force",
        )
    return _planned(view, action, {entry.key: entry for entry in wanted})


def plan_restore(
    view: OffsetsView, snapshot: Sequence[OffsetEntry], *, action: Action = Action.UNDO
) -> OffsetsPlan:
    """Plan to make the offsets exactly those of a snapshot; other partitions lose theirs."""
    wanted: dict[str, OffsetEntry | None] = dict.fromkeys(by_key(view.offsets))
    return _planned(view, action, {**wanted, **by_key(snapshot)})


def plan_undo(
    view: OffsetsView, snapshot: Sequence[OffsetEntry], left: Sequence[OffsetEntry] | None
) -> OffsetsPlan:
    """Plan to restore a snapshot, and find changes since the one that was made after it.

    `left`: all offsets as that change left them, None when that is not known.
    """
    planned = plan_restore(view, snapshot)
    if left is None:
        return replace(planned, since=None)
    known = by_key(left)
    since = []
    # A partition that has its old offset again is not among the changes.
    for change in planned.changes:
        entry = known.get(partition_key(change.partition))
        sent = entry.offset if entry else None
        if not _is_what_was_sent(change.before, sent):
            later = OffsetChange(partition=change.partition, before=sent, after=change.before)
            since.append(later)
    return replace(planned, since=tuple(since))


def read_back_differs(plan: OffsetsPlan, offsets: Sequence[OffsetEntry]) -> str | None:
    """Return the first partition without the offset that was sent, None if there is none."""
    stored = by_key(offsets)
    for entry in plan.wanted:
        found = stored.get(entry.key)
        offset = found.offset if found else None
        if not _is_what_was_sent(offset, entry.offset):
            return show_partition(entry.partition)
    if plan.everything and offsets:
        return show_partition(offsets[0].partition)
    return None


def _is_what_was_sent(found: Primitives | None, sent: Primitives | None) -> bool:
    """Compare less strictly than `same_offset`: a worker may answer 5.0 where 5 was sent."""
    if found is None or sent is None:
        return found is sent
    return dict(found) == dict(sent)


def _planned(
    view: OffsetsView,
    action: Action,
    wanted: Mapping[str, OffsetEntry | None],
    *,
    everything: bool = False,
) -> OffsetsPlan:
    stored = by_key(view.offsets)
    changes = []
    for key, entry in wanted.items():
        found = stored.get(key) or entry
        assert found is not None, "what is wanted or stored"
        before = stored[key].offset if key in stored else None
        after = entry.offset if entry else None
        if not same_offset(before, after):
            # With members in the stored order: Java workers write to exactly these bytes.
            changes.append(OffsetChange(partition=found.partition, before=before, after=after))
    forgotten = {partition_key(c.partition) for c in changes if c.after is None}
    return OffsetsPlan(
        view=view,
        action=action,
        changes=tuple(changes),
        everything=everything or (bool(changes) and forgotten >= {*stored, *wanted}),
    )
