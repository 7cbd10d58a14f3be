"""One connector's offsets at one moment, as backups and exported files hold them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import StoredRecord
from pyconnect_cli.offsets.plan.checks import read_entries
from pyconnect_cli.parsing.json_text import parse_json
from pyconnect_cli.rest.model import UNKNOWN_CLUSTER, ConnectCluster
from pyconnect_cli.rest.offset_entries import OffsetEntry

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
            records = [_record_json(record) for record in self.records]
            document |= {"orphan": True, "records": records}
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
    left = document.get("left")
    connector_type = str(document["type"])
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
        records=_read_records(document.get("records") or [], place),
        connect=_read_connect(document),
    )


def _read_offsets(document: object, connector_type: str, place: str) -> tuple[OffsetEntry, ...]:
    # A connector without offsets has a snapshot too.
    return () if document == [] else read_entries(document, connector_type, place)


def _read_connect(document: Mapping[str, object]) -> ConnectCluster:
    workers = document.get("workers")
    return ConnectCluster(
        group_id=str(document.get("connect_group") or ""),
        workers=frozenset(map(str, workers)) if isinstance(workers, list) else frozenset(),
    )


def _record_json(record: StoredRecord) -> dict[str, object]:
    value = None if record.value is None else base64.b64encode(record.value).decode()
    key = base64.b64encode(record.key).decode()
    return {"topic": record.topic, "partition": record.partition, "key": key, "value": value}


def _read_records(document: object, place: str) -> tuple[StoredRecord, ...]:
    try:
        return tuple(_read_record(entry) for entry in document)  # type: ignore[attr-defined] # asked for forgiveness
    except (TypeError, KeyError, ValueError) as exc:
        raise UsageError(f"{place}: `records` are damaged") from exc


def _read_record(entry: Mapping[str, object]) -> StoredRecord:
    value = entry["value"]
    return StoredRecord(
        topic=str(entry["topic"]),
        partition=int(str(entry["partition"])),
        key=base64.b64decode(str(entry["key"]), validate=True),
        value=None if value is None else base64.b64decode(str(value), validate=True),
    )
