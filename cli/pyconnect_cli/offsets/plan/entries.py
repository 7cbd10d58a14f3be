"""Entries of offsets that REST did not return: of users, and of deleted connectors. Pure.

Apache's REST interface stores any offsets of a source, also wrong ones, so every entry of a user is
checked before the first request. UsageError (exit 2) names place and entry.

The offsets of a deleted source are records of an offsets topic: key `["connector",{partition}]`,
value the offset, null to delete it. A sink's offsets are those of a consumer group `connect-NAME`.
The bytes of a key are kept unchanged: only they address the same record.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from pyconnect_cli.errors import UsageError
from pyconnect_cli.kafka.model import (
    Ranges,
    SinkGroup,
    StoredRecord,
    TopicPartition,
    kafka_offset,
    topic_partition,
)
from pyconnect_cli.parsing.values import parse_json
from pyconnect_cli.rest.offset_entries import (
    SINK_OFFSET_KEY,
    SINK_PARTITION_KEYS,
    OffsetEntry,
    Partition,
    Primitives,
    by_key,
    show_partition,
)
from pyconnect_clients.connect_names import SINK_GROUP_PREFIX, sink_group_id

LARGEST_KAFKA_OFFSET = 2**63 - 1
LARGEST_PARTITION = 2**31 - 1
_DIGITS = re.compile("-?[0-9]{1,100}")


def read_entries(document: object, connector_type: str, place: str) -> tuple[OffsetEntry, ...]:
    """Read the list of `offsets`; every entry must be complete, of the right types and unique."""
    if not isinstance(document, list) or not document:
        raise UsageError(f"{place}: `offsets` must be a list with at least one entry")
    entries = tuple(
        read_entry(entry, connector_type, f"{place}: entry {number}")
        for number, entry in enumerate(document, 1)
    )
    refuse_duplicates(entries, place)
    return entries


def refuse_duplicates(entries: Sequence[OffsetEntry], place: str) -> None:
    """Raise UsageError for a partition with two entries: a worker would silently take the last."""
    seen: set[str] = set()
    for entry in entries:
        if entry.key in seen:
            raise UsageError(f"{place}: partition {show_partition(entry.partition)} occurs twice")
        seen.add(entry.key)


def read_entry(document: object, connector_type: str, place: str) -> OffsetEntry:
    """Read `{"partition", "offset"}`."""
    entry = _object(document, place)
    if unknown := sorted(set(entry) - {"partition", "offset"}):
        raise UsageError(
            f"{place}: unknown member {', '.join(unknown)}",
            hint="an entry has `partition` and `offset`",
        )
    for member in ("partition", "offset"):
        if member not in entry:
            hint = "write null to delete the partition's offset" if member == "offset" else None
            raise UsageError(f"{place}: `{member}` is missing", hint=hint)
    return OffsetEntry(
        partition=read_partition(entry["partition"], connector_type, f"{place}: partition"),
        offset=read_offset(entry["offset"], connector_type, f"{place}: offset"),
    )


def read_partition(document: object, connector_type: str, place: str) -> Partition:
    """Read a partition; a sink's number may be a text, as over REST, and becomes a number."""
    if document is None and connector_type != "sink":
        return None
    partition = _primitives(document, place)
    if connector_type != "sink":
        return partition
    if set(partition) != SINK_PARTITION_KEYS:
        raise UsageError(
            f"{place}: a sink's partition has exactly `kafka_topic` and `kafka_partition`"
        )
    topic = partition["kafka_topic"]
    if not isinstance(topic, str) or not topic:
        raise UsageError(f"{place}: `kafka_topic` must be the name of a topic")
    number = _whole_number(partition["kafka_partition"], f"{place}: kafka_partition")
    if number > LARGEST_PARTITION:
        raise UsageError(f"{place}: kafka_partition {number} is too large")
    return {"kafka_topic": topic, "kafka_partition": number}


def read_offset(document: object, connector_type: str, place: str) -> Primitives | None:
    """Read an offset; None deletes the stored one."""
    if document is None:
        return None
    offset = _primitives(document, place)
    if connector_type != "sink":
        return offset
    if set(offset) != {SINK_OFFSET_KEY}:
        raise UsageError(f"{place}: a sink's offset is null or has exactly `{SINK_OFFSET_KEY}`")
    number = _whole_number(offset[SINK_OFFSET_KEY], f"{place}: {SINK_OFFSET_KEY}")
    if number > LARGEST_KAFKA_OFFSET:
        raise UsageError(f"{place}: {SINK_OFFSET_KEY} {number} is too large")
    return {SINK_OFFSET_KEY: number}


def parse_partition(text: str, connector_type: str) -> Partition:
    """Read `--partition`: JSON, or TOPIC:NUMBER of a sink."""
    place = f"--partition {text}"
    return read_partition(_partition_document(text, connector_type, place), connector_type, place)


def parse_assignment(text: str, connector_type: str) -> OffsetEntry:
    """Read `--set`: PARTITION=OFFSET, both JSON; TOPIC:NUMBER=OFFSET of a sink; null deletes."""
    place = f"--set {text}"
    if text.lstrip().startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text.lstrip())
        except (ValueError, RecursionError) as exc:
            raise UsageError(f"{place}: the partition is not JSON: {exc}") from exc
        start, rest = text.lstrip()[:end], text.lstrip()[end:].lstrip()
        equals, value = rest[:1], rest[1:]
    else:
        start, equals, value = text.partition("=")
    if equals != "=" or not value.strip():
        raise UsageError(
            f"{place}: is not PARTITION=OFFSET",
            hint='for example \'{"filename":"a.txt"}={"position":30}\', or orders:0=1000 of a sink',
        )
    partition = _partition_document(start, connector_type, place)
    offset = parse_json(value, place)
    if connector_type == "sink" and offset is not None and not isinstance(offset, Mapping):
        offset = {SINK_OFFSET_KEY: offset}
    return OffsetEntry(
        partition=read_partition(partition, connector_type, place),
        offset=read_offset(offset, connector_type, place),
    )


def unlike_stored(
    wanted: Sequence[OffsetEntry], stored: Sequence[OffsetEntry], *, new_partitions: bool
) -> list[str]:
    """Return differences from the stored offsets: unknown partitions, other types, negatives.

    A connector may accept them; the user decides.
    """
    known = by_key(stored)
    doubts = []
    for entry in wanted:
        shown = show_partition(entry.partition)
        before = known.get(entry.key)
        if before is None and not new_partitions:
            doubts.append(f"partition {shown} has no stored offset")
        for member, value in (entry.offset or {}).items():
            if isinstance(value, int | float) and not isinstance(value, bool) and value < 0:
                doubts.append(f"{shown}: `{member}` is negative: {value}")
            old = (before.offset or {}).get(member) if before else None
            if old is not None and value is not None and _kind(old) != _kind(value):
                doubts.append(
                    f"{shown}: `{member}` is a {_kind(value)}, the stored one is a {_kind(old)}"
                )
        if before and before.offset and entry.offset and not set(entry.offset) & set(before.offset):
            doubts.append(f"{shown}: the stored offset has none of {', '.join(entry.offset)}")
    return doubts


def _partition_document(text: str, connector_type: str, place: str) -> object:
    topic, colon, number = text.strip().rpartition(":")
    if connector_type == "sink" and colon and not text.lstrip().startswith("{"):
        return {"kafka_topic": topic, "kafka_partition": number}
    return parse_json(text, place)


def _object(document: object, place: str) -> Mapping[str, object]:
    if not isinstance(document, Mapping):
        raise UsageError(f"{place}: must be an object, not {_kind(document)}")
    for key in document:
        if not isinstance(key, str):
            raise UsageError(f"{place}: key {key!r} is not a text", hint="quote it")
    return document


def _primitives(document: object, place: str) -> Primitives:
    members = _object(document, place)
    for key, value in members.items():
        if value is not None and not isinstance(value, str | int | float | bool):
            raise UsageError(
                f"{place}: `{key}` is {_kind(value)}; only texts, numbers, true, false and null"
                " can be stored"
            )
    return dict(members)


def _whole_number(value: object, place: str) -> int:
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{place}: {json.dumps(value)} is not a whole number")
    if value < 0:
        raise UsageError(f"{place}: {value} is negative")
    return value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case list():
            return "a list"
        case _:
            return type(value).__name__


class SeekTo(Enum):
    """The targets of `seek`."""

    EARLIEST = "earliest"
    LATEST = "latest"
    SHIFT = "shift"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class SeekTarget:
    """A target; `number` is the shift in records, or the time in ms since the epoch."""

    to: SeekTo
    number: int = 0


def seek_entries(
    target: SeekTarget,
    stored: Sequence[OffsetEntry],
    ranges: Ranges,
    at_time: Mapping[TopicPartition, int | None],
) -> tuple[OffsetEntry, ...]:
    """Return offsets to set: of partitions with a range; for a shift, of those with an offset.

    A shift stays inside the topic; a time after the last record is the end.
    """
    current = {topic_partition(entry.partition): kafka_offset(entry) for entry in stored}
    offsets = {}
    for partition, found in ranges.items():
        match target.to:
            case SeekTo.EARLIEST:
                offsets[partition] = found.earliest
            case SeekTo.LATEST:
                offsets[partition] = found.latest
            case SeekTo.TIME:
                at = at_time.get(partition)
                offsets[partition] = found.latest if at is None else at
            case SeekTo.SHIFT if (before := current.get(partition)) is not None:
                shifted = before + target.number
                offsets[partition] = min(max(shifted, found.earliest), found.latest)
    return sink_entries(offsets)


def sink_entries(offsets: Mapping[TopicPartition, int]) -> tuple[OffsetEntry, ...]:
    """Return a group's offsets as REST would show them."""
    return tuple(
        OffsetEntry(
            partition={"kafka_topic": at.topic, "kafka_partition": at.partition},
            offset={SINK_OFFSET_KEY: offset},
        )
        for at, offset in sorted(offsets.items())
    )


def outside_topics(wanted: Sequence[OffsetEntry], ranges: Ranges) -> list[str]:
    """Return doubts about offsets without a record: unknown partition, before first, past end."""
    doubts = []
    for entry in wanted:
        shown = show_partition(entry.partition)
        found = ranges.get(topic_partition(entry.partition))
        offset = kafka_offset(entry)
        if found is None:
            doubts.append(f"Kafka has no partition {shown}")
        elif offset is not None and offset > found.latest:
            doubts.append(f"{shown}: {offset} is past the end, {found.latest}")
        elif offset is not None and offset < found.earliest:
            doubts.append(f"{shown}: {offset} is before the first record, {found.earliest}")
    return doubts


SOURCE, SINK = "source", "sink"

Configs = Mapping[str, Mapping[str, str | None]]
"""The configurations of the connectors that exist, by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """The offsets that one name left: of a source (`records`) or of a sink (`group`)."""

    name: str
    records: tuple[StoredRecord, ...] = ()
    group: SinkGroup | None = None
    entries: tuple[OffsetEntry, ...] = field(compare=False)

    @property
    def type(self) -> str:
        return SINK if self.group else SOURCE

    @property
    def places(self) -> tuple[str, ...]:
        """The topics or the group that hold them."""
        if self.group:
            return (self.group.group,)
        return tuple(sorted({record.topic for record in self.records}))

    @property
    def count(self) -> int:
        return len(self.group.offsets) if self.group else len(self.records)

    @property
    def written_ms(self) -> int | None:
        """The time of the newest record in ms since the epoch; None for a group."""
        return max((record.timestamp_ms or 0 for record in self.records), default=0) or None


def find_orphans(
    records: Iterable[StoredRecord], groups: Iterable[SinkGroup], existing: Configs
) -> list[Orphan]:
    """Return the orphans by name; a key that is not a Connect key belongs to no connector.

    A group with members has a sink that runs, in another Connect cluster.
    """
    by_name: dict[str, list[StoredRecord]] = {}
    for record in records:
        name = connector_of(record.key)
        if name is not None and name not in existing:
            by_name.setdefault(name, []).append(record)
    found = [
        Orphan(name=name, records=tuple(own), entries=source_entries(own))
        for name, own in by_name.items()
    ]
    used = {sink_group_id(name, config) for name, config in existing.items()}
    for group in groups:
        if group.live:
            continue
        name = group.group.removeprefix(SINK_GROUP_PREFIX)
        if name != group.group and name not in existing and group.group not in used:
            found.append(Orphan(name=name, group=group, entries=sink_entries(group.offsets)))
    return sorted(found, key=lambda orphan: (orphan.name, orphan.type))


def topics_of_others(records: Iterable[StoredRecord]) -> list[str]:
    """Return the topics that hold records and no offset of a connector."""
    holds_offsets: dict[str, bool] = {}
    for record in records:
        known = holds_offsets.get(record.topic, False)
        holds_offsets[record.topic] = known or connector_of(record.key) is not None
    return sorted(topic for topic, holds in holds_offsets.items() if not holds)


def connector_of(key: bytes) -> str | None:
    """Return the connector that a key names, None if it is not a key of Connect."""
    parts = _key_parts(key)
    return parts[0] if parts else None


def source_entries(records: Sequence[StoredRecord]) -> tuple[OffsetEntry, ...]:
    """Return offsets as REST would show them, without those that no worker can read."""
    entries = []
    for record in records:
        parts = _key_parts(record.key)
        try:
            value = None if record.value is None else json.loads(record.value)
            document = {"partition": parts[1] if parts else None, "offset": value}
            entries.append(read_entry(document, SOURCE, ""))
        except (ValueError, UsageError):
            continue
    return tuple(by_key(entries).values())


def own_topics(existing: Configs) -> set[str]:
    """Return the offsets topics of single sources on the workers' Kafka."""
    return {
        topic
        for config in existing.values()
        if (topic := config.get("offsets.storage.topic"))
        and not config.get("producer.override.bootstrap.servers")
    }


def _key_parts(key: bytes) -> tuple[str, object] | None:
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return None
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[0], str):
        return None
    return parts[0], parts[1]
