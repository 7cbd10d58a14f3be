"""The manifest of a backup, and the plan of a restore. Pure.

A manifest names the cluster and the digest of every file of its directory. It is written last, so
a directory without one was not finished.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from pyconnect_cli.connectors.plan import (
    Config,
    ConnectorFile,
    KeyDifference,
    differences,
    refuse_masked,
    unmasked,
)
from pyconnect_cli.errors import PreconditionFailed, UsageError
from pyconnect_cli.offsets.plan.change import (
    Action,
    OffsetChange,
    OffsetsSnapshot,
    OffsetsView,
    plan_restore,
)
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.model import ConnectCluster, as_list, as_object
from pyconnect_cli.rest.offset_entries import show_offset, show_partition

FORMAT = "pyconnect-backup"
FORMAT_VERSION = 1
SHOWN_OFFSETS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedConnector:
    """A connector as a backup holds it.

    `state`: the target state, RUNNING, PAUSED or STOPPED; None: it was not known. `offsets` None:
    they could not be read.
    """

    name: str
    config: Config
    state: str | None
    offsets: OffsetsSnapshot | None

    @property
    def type(self) -> str:
        """`source`, `sink`, or `unknown` without offsets."""
        return self.offsets.type if self.offsets else "unknown"

    def file(self, place: str) -> ConnectorFile:
        """Return the description of the connector, which `apply` accepts."""
        return ConnectorFile(
            name=self.name, config=self.config, initial_state=self.state, place=place
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The contents of a backup.

    `files`: digests (SHA-256) by relative path. `missing`: parts that could not be read, with
    the reason. `whole`: no selection was made and nothing is missing. `absent`: connectors
    that did not exist when a restore began, so that its undo deletes them.
    """

    time: str
    kafka_cluster_id: str
    connect: ConnectCluster
    version: str
    whole: bool
    files: Mapping[str, str]
    missing: Mapping[str, str] = field(default_factory=dict)
    absent: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the document of manifest.json."""
        return {
            "format": f"{FORMAT}/{FORMAT_VERSION}",
            "time": self.time,
            "kafka_cluster_id": self.kafka_cluster_id,
            "connect_group": self.connect.group_id,
            "workers": sorted(self.connect.workers),
            "version": self.version,
            "whole": self.whole,
            "missing": dict(self.missing),
            "absent": list(self.absent),
            "files": dict(self.files),
        }

    def is_of(self, kafka_cluster_id: str, connect: ConnectCluster) -> bool | None:
        """Return whether the backup is of this cluster; None when that is not known."""
        return kafka_cluster_id == self.kafka_cluster_id and self.connect.is_same(connect)


def read_manifest(text: str, place: str) -> Manifest:
    """Read manifest.json; UsageError for another format or a damaged document."""
    document = parse_json(text, place)
    kind, _, version = str(
        document.get("format") if isinstance(document, Mapping) else ""
    ).partition("/")
    if kind != FORMAT:
        raise UsageError(f"{place}: is not the manifest of a `pyconnect backup`")
    if version != str(FORMAT_VERSION):
        raise UsageError(
            f"{place}: has format {version}; this version of pyconnect reads {FORMAT_VERSION}",
            hint="restore it with the version of pyconnect that made it, or a later one",
        )
    try:
        body = as_object(document)
        return Manifest(
            time=str(body["time"]),
            kafka_cluster_id=str(body["kafka_cluster_id"]),
            connect=ConnectCluster(
                group_id=str(body["connect_group"]),
                workers=frozenset(map(str, as_list(body["workers"]))),
            ),
            version=str(body["version"]),
            whole=body["whole"] is True,
            missing={name: str(why) for name, why in as_object(body["missing"]).items()},
            absent=tuple(map(str, as_list(body["absent"]))),
            files={path: str(digest) for path, digest in as_object(body["files"]).items()},
        )
    except (KeyError, TypeError) as fault:
        raise UsageError(f"{place}: is damaged: {fault}") from fault


def require_same_cluster(
    manifest: Manifest, kafka_cluster_id: str, connect: ConnectCluster, place: str
) -> None:
    """Raise PreconditionFailed if a backup is of another cluster; see `Manifest.is_of`."""
    if manifest.is_of(kafka_cluster_id, connect) is not False:
        return
    theirs, here = manifest.kafka_cluster_id, kafka_cluster_id
    if theirs == here:
        theirs, here = f"Connect group {manifest.connect.group_id}", connect.group_id
    raise PreconditionFailed(
        f"{place} is a backup of {theirs}, this cluster is {here}: nothing was changed",
        hint="choose the cluster with --context or --url; to restore into another one: --force",
    )


class Restored(Enum):
    """The kind of a step of a restore; the value is the word for its result."""

    CREATE = "created"
    CHANGE = "restored"
    DELETE = "deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRestore:
    """The restore of one connector.

    `present` None: it does not exist. `placed`: an interrupted run has set config and offsets, so
    only the state is left. `state` None: the target state stays.
    """

    name: str
    kind: Restored
    config: Config = field(default_factory=dict)
    state: str | None = None
    offsets: OffsetsSnapshot | None = None
    present: SavedConnector | None = None
    configured: tuple[KeyDifference, ...] = ()
    moved: tuple[OffsetChange, ...] = ()
    placed: bool = False

    @property
    def stops(self) -> bool:
        """Whether the connector has to be STOPPED for the changes."""
        return bool(self.configured or self.moved) and not self.placed

    @property
    def changes(self) -> tuple[str, ...]:
        """Lines of the plan; empty if the connector is as the backup holds it."""
        if self.kind is Restored.DELETE:
            return ("deleted: it did not exist before the restore",)
        lines = []
        if self.kind is Restored.CREATE:
            lines.append(f"new {self.config.get('connector.class') or ''}".rstrip())
        elif not self.placed:
            lines += [difference.text() for difference in self.configured]
        if self.moved and not self.placed:
            moves = [
                f"{show_partition(move.partition)} {show_offset(move.before)} -> "
                f"{show_offset(move.after)}"
                for move in self.moved[:SHOWN_OFFSETS]
            ]
            moves += ["…"] if len(self.moved) > SHOWN_OFFSETS else []
            partitions = counted(len(self.moved), "partition")
            lines.append(f"offsets of {partitions}: {', '.join(moves)}")
        before = (self.present.state or "FAILED") if self.present else None
        after = self.state or ("STOPPED" if self.stops else before)
        passed = [before, "STOPPED" if self.stops else None, after]
        states = [state for state in passed if state]
        shown = [state for at, state in enumerate(states) if at == 0 or states[at - 1] != state]
        if len(shown) > 1:
            lines.append(" -> ".join(shown))
        return tuple(lines)


def plan_connector(
    saved: SavedConnector, present: SavedConnector | None, *, place: str, placed: bool
) -> ConnectorRestore:
    """Plan the changes that make a connector as a backup holds it.

    A masked secret stays the one that the connector has. Raises UsageError if it has none.
    """
    known = unmasked(saved.file(place), present.config if present else {})
    refuse_masked(known)
    before = {} if present is None else {"name": saved.name, **present.config}
    moved: tuple[OffsetChange, ...] = ()
    if saved.offsets is not None:
        view = OffsetsView(
            name=saved.name,
            type=saved.type,
            class_name=saved.offsets.class_name,
            state="STOPPED",
            config=saved.config,
            offsets=present.offsets.offsets if present and present.offsets else (),
        )
        moved = plan_restore(view, saved.offsets.offsets, action=Action.RESTORE).changes
    return ConnectorRestore(
        name=saved.name,
        kind=Restored.CHANGE if present else Restored.CREATE,
        config=known.config,
        state=saved.state or (present.state if present else None),
        offsets=saved.offsets,
        present=present,
        configured=differences(before, {"name": saved.name, **known.config}),
        moved=moved,
        placed=placed,
    )
