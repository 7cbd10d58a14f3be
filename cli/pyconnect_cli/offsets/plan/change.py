"""The plan of an offset change of one connector, and the snapshots that a plan may restore. Pure.

The caller makes the plan again from a fresh view once the connector is STOPPED, because its tasks
commit while they stop. A change that cannot be planned is an error for the user. Before another
connector gets the offsets of a snapshot, `require_fitting` compares their origin with it.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from pyconnect_cli.errors import NotFound, PreconditionFailed, UsageError
from pyconnect_cli.kafka.model import StoredRecord
from pyconnect_cli.offsets.plan.entries import read_entries, unlike_stored
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.model import UNKNOWN_CLUSTER, ConnectCluster, is_class
from pyconnect_cli.rest.offset_entries import (
    OffsetEntry,
    Partition,
    Primitives,
    by_key,
    partition_json,
    partition_key,
    same_offset,
    show_offset,
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
        """Return the stable form for machines."""
        return {
            "partition": partition_json(self.partition),
            "before": None if self.before is None else dict(self.before),
            "after": None if self.after is None else dict(self.after),
        }


def offset_differences(
    stored: Sequence[OffsetEntry], wanted: Sequence[OffsetEntry]
) -> list[OffsetChange]:
    """Return the partitions whose offset is not the same on both sides, in their order."""
    ours, theirs = by_key(stored), by_key(wanted)
    changes = []
    for key in dict.fromkeys([*ours, *theirs]):
        before = ours[key].offset if key in ours else None
        after = theirs[key].offset if key in theirs else None
        if not same_offset(before, after):
            partition = (ours.get(key) or theirs[key]).partition
            changes.append(OffsetChange(partition=partition, before=before, after=after))
    return changes


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
        """Whether there is a request to send.

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
    def since_lines(self) -> list[str]:
        """Lines about later changes that an undo overwrites too."""
        if self.since is None:
            return ["later changes are not known: the backup is not the newest one"]
        if not self.since:
            return []
        changed = counted(len(self.since), "partition")
        what = f"the connector or a user has changed {changed} since then"
        return [f"warning: {what}; undo loses that change"]

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
        """Return the stable form for machines."""
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
    """Plan to delete all offsets, or those of some partitions; NotFound if one has no offset."""
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

    UsageError for offsets unlike the stored ones, without `force`. For a connector without stored
    offsets nothing is compared. `topic_doubts` are from the check of a sink's topics; None: Kafka
    was not asked, and partitions without an offset may not exist.
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
    """Plan to restore a snapshot, and find later changes than the one that followed the snapshot.

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
            # Members keep their stored order, because a Java worker writes to exactly these bytes.
            changes.append(OffsetChange(partition=found.partition, before=before, after=after))
    forgotten = {partition_key(c.partition) for c in changes if c.after is None}
    return OffsetsPlan(
        view=view,
        action=action,
        changes=tuple(changes),
        everything=everything or (bool(changes) and forgotten >= {*stored, *wanted}),
    )


FORMAT = "pyconnect-offsets/1"
TEXT_MEMBERS = ("cluster_id", "connector", "class", "type", "time", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsSnapshot:
    """The offsets of one connector at `time` (ISO 8601, UTC); `version` is the worker's.

    Set in backups only:
    `action`: the change after the backup. `id`: the file's name. `left`: all offsets that the
    change was to leave, None in backups of earlier versions. `failed`: the change ended in an
    error, so it may be done not at all, in part or as a whole. `connect`: the Connect cluster.
    `orphan`: the connector was deleted; `records` are then a source's records in offsets topics,
    byte for byte, and class and version are unknown.
    """

    cluster_id: str
    connector: str
    class_name: str
    type: str
    time: str
    version: str
    offsets: tuple[OffsetEntry, ...]
    action: str = ""
    id: str = ""
    left: tuple[OffsetEntry, ...] | None = None
    failed: bool = False
    orphan: bool = False
    records: tuple[StoredRecord, ...] = ()
    connect: ConnectCluster = UNKNOWN_CLUSTER

    def to_json(self) -> dict[str, object]:
        """Return the document of a file; its `offsets` are the REST body's."""
        document: dict[str, object] = {
            "format": FORMAT,
            "cluster_id": self.cluster_id,
            "connector": self.connector,
            "class": self.class_name,
            "type": self.type,
            "time": self.time,
            "version": self.version,
        }
        if self.action:
            document |= {
                "id": self.id,
                "action": self.action,
                "failed": self.failed,
                "connect_group": self.connect.group_id,
                "workers": sorted(self.connect.workers),
            }
        document["offsets"] = [entry.to_json() for entry in self.offsets]
        if self.left is not None:
            document["left"] = [entry.to_json() for entry in self.left]
        if self.orphan:
            document |= {
                "orphan": True,
                "records": [
                    {
                        "topic": record.topic,
                        "partition": record.partition,
                        "key": base64.b64encode(record.key).decode(),
                        "value": None
                        if record.value is None
                        else base64.b64encode(record.value).decode(),
                    }
                    for record in self.records
                ],
            }
        return document


def read_snapshot(text: str, place: str) -> OffsetsSnapshot:
    """Read the file of a snapshot; UsageError says what is wrong in it."""
    document = parse_json(text, place)
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise UsageError(
            f"{place}: is not a file of `pyconnect offsets export`",
            hint="for a plain REST body: pyconnect offsets alter NAME -f FILE",
        )
    for member in TEXT_MEMBERS:
        if not isinstance(document.get(member), str):
            raise UsageError(f"{place}: `{member}` is missing or not a text")
    try:
        records = tuple(
            StoredRecord(
                topic=str(entry["topic"]),
                partition=int(str(entry["partition"])),
                key=base64.b64decode(str(entry["key"]), validate=True),
                value=None
                if entry["value"] is None
                else base64.b64decode(str(entry["value"]), validate=True),
            )
            for entry in document.get("records") or ()
        )
    except (TypeError, KeyError, ValueError) as exc:
        raise UsageError(f"{place}: `records` are damaged") from exc
    left = document.get("left")
    connector_type = str(document["type"])
    workers = document.get("workers")
    return OffsetsSnapshot(
        cluster_id=str(document["cluster_id"]),
        connector=str(document["connector"]),
        class_name=str(document["class"]),
        type=connector_type,
        time=str(document["time"]),
        version=str(document["version"]),
        offsets=_read_offsets(document.get("offsets"), connector_type, place),
        action=str(document.get("action") or ""),
        id=str(document.get("id") or ""),
        left=None if left is None else _read_offsets(left, connector_type, f"{place}: left"),
        failed=document.get("failed") is True,
        orphan=document.get("orphan") is True,
        records=records,
        connect=ConnectCluster(
            group_id=str(document.get("connect_group") or ""),
            workers=frozenset(map(str, workers)) if isinstance(workers, list) else frozenset(),
        ),
    )


def _read_offsets(document: object, connector_type: str, place: str) -> tuple[OffsetEntry, ...]:
    # A connector without offsets has a snapshot too.
    return () if document == [] else read_entries(document, connector_type, place)


FORCE = "if this is intended: --force"


def same_class(one: str, other: str) -> bool:
    """Return whether two names mean one class: the full name, or an alias that workers know."""
    return is_class(one, [other]) or is_class(other, [one])


def require_fitting(
    snapshot: OffsetsSnapshot,
    view: OffsetsView,
    *,
    cluster_id: str,
    force: bool = False,
    same_name: bool = False,
) -> None:
    """Raise if the offsets are of another class or, for a sink, of another Kafka cluster.

    `same_name`: also if they are of another connector. A sink never gets a source's offsets, or the
    reverse, even with `force`.
    """
    if snapshot.type != view.type:
        raise PreconditionFailed(
            f"{view.name} is a {view.type}; the offsets are of {snapshot.connector}, a"
            f" {snapshot.type}: nothing was changed"
        )
    if force:
        return
    if same_name and snapshot.connector != view.name:
        raise PreconditionFailed(
            f"the file contains the offsets of {snapshot.connector}, not of {view.name}:"
            " nothing was changed",
            hint=FORCE,
        )
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


def require_untouched(snapshot: OffsetsSnapshot, plan: OffsetsPlan) -> None:
    """Raise PreconditionFailed if an undo that asks no question would overwrite later changes."""
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
