"""One connector's offsets at one moment, as backups and exported files hold them. Pure.

Before another connector gets offsets, `require_…` compare their origin with it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.kafka.model import StoredRecord
from pyconnect_cli.offsets.plan.change import OffsetsPlan, OffsetsView
from pyconnect_cli.offsets.plan.checks import read_entries
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.model import UNKNOWN_CLUSTER, ConnectCluster, is_class
from pyconnect_cli.rest.offset_entries import OffsetEntry, show_offset, show_partition

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
        """The document of a file; its `offsets` are the REST body's."""
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
