"""Connector offsets in the form of REST (KIP-875): entries, their identity, their display.

An entry is `{"partition": {…} | null, "offset": {…} | null}`. The keys of a source's maps are its
own; its partition may be null, which only agents list. A sink's maps are
`{"kafka_topic", "kafka_partition"}` and `{"kafka_offset"}`. Pure.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pyconnect_cli.rest.model import Json, as_list, as_object

Primitives = Mapping[str, object]
Partition = Primitives | None
SINK_PARTITION_KEYS = frozenset({"kafka_topic", "kafka_partition"})
SINK_OFFSET_KEY = "kafka_offset"
# Made once: `json.dumps` with options makes an encoder for each of perhaps 100,000 calls.
_canonical = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetEntry:
    """The offset of one partition; None: no offset is stored, or it is to be deleted."""

    partition: Partition
    offset: Primitives | None

    @property
    def key(self) -> str:
        return partition_key(self.partition)

    def to_json(self) -> dict[str, object]:
        """Return the entry of a REST body."""
        offset = None if self.offset is None else dict(self.offset)
        return {"partition": partition_json(self.partition), "offset": offset}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsets:
    """The answer of `GET /connectors/{name}/offsets`, entries in the order of their partitions."""

    entries: tuple[OffsetEntry, ...]
    raw: Json = field(default_factory=dict, compare=False, repr=False)


def partition_json(partition: Partition) -> dict[str, object] | None:
    return None if partition is None else dict(partition)


def partition_key(partition: Partition) -> str:
    """Return a text that is the same for equal partitions, with members in any order."""
    return _canonical(partition)


def same_offset(one: Primitives | None, other: Primitives | None) -> bool:
    """Return whether two offsets are equal as JSON: `1` does not equal `"1"` or `true`."""
    return _canonical(one) == _canonical(other)


def same_entries(one: Iterable[OffsetEntry], other: Iterable[OffsetEntry]) -> bool:
    """Return whether both hold the same offsets of the same partitions, in any order."""
    ours, theirs = by_key(one), by_key(other)
    return ours.keys() == theirs.keys() and all(
        same_offset(entry.offset, theirs[key].offset) for key, entry in ours.items()
    )


def by_key(entries: Iterable[OffsetEntry]) -> dict[str, OffsetEntry]:
    """Return entries by the identity of their partition; the last of two wins, as over REST."""
    return {entry.key: entry for entry in entries}


def read_offsets(value: object) -> ConnectorOffsets:
    """Read the body of an answer."""
    body = as_object(value)
    entries = []
    for entry in map(as_object, as_list(body["offsets"])):
        partition, offset = entry["partition"], entry.get("offset")
        entries.append(
            OffsetEntry(
                partition=None if partition is None else as_object(partition),
                offset=None if offset is None else as_object(offset),
            )
        )
    return ConnectorOffsets(entries=tuple(sorted(entries, key=_order)), raw=body)


def offsets_body(entries: Sequence[OffsetEntry]) -> dict[str, object]:
    """Return the body of `PATCH /connectors/{name}/offsets`."""
    return {"offsets": [entry.to_json() for entry in entries]}


def show_partition(partition: Partition) -> str:
    """Return `topic:3` of a sink's partition, JSON of a source's."""
    if partition is None:
        return "null"
    if is_sink_partition(partition):
        return f"{partition['kafka_topic']}:{partition['kafka_partition']}"
    return _compact(dict(partition))


def show_offset(offset: Primitives | None) -> str:
    """Return the number of a sink's offset, JSON of a source's, `-` for none."""
    if offset is None:
        return "-"
    if set(offset) == {SINK_OFFSET_KEY}:
        return str(offset[SINK_OFFSET_KEY])
    return _compact(dict(offset))


def is_sink_partition(partition: Primitives) -> bool:
    """Return whether a partition is a partition of a Kafka topic."""
    return set(partition) == SINK_PARTITION_KEYS


def _order(entry: OffsetEntry) -> tuple[str, int, str]:
    if entry.partition is not None and is_sink_partition(entry.partition):
        number = entry.partition["kafka_partition"]
        return str(entry.partition["kafka_topic"]), number if isinstance(number, int) else -1, ""
    return "", 0, entry.key
