"""The offsets of a sink after `seek`, and the check that they lie inside their topics. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from pyconnect_cli.kafka.model import Ranges, TopicPartition, kafka_offset, topic_partition
from pyconnect_cli.rest.offset_entries import (
    SINK_OFFSET_KEY,
    OffsetEntry,
    show_partition,
)


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
    """Return the offsets to set: of every partition with a range, for a shift those with an offset.

    A shift stays inside the topic; a time after the last record is the end.
    """
    current = {topic_partition(entry.partition): kafka_offset(entry) for entry in stored}
    entries = []
    for partition in sorted(ranges):
        found = ranges[partition]
        match target.to:
            case SeekTo.EARLIEST:
                offset = found.earliest
            case SeekTo.LATEST:
                offset = found.latest
            case SeekTo.TIME:
                at = at_time.get(partition)
                offset = found.latest if at is None else at
            case SeekTo.SHIFT:
                before = current.get(partition)
                if before is None:
                    continue
                offset = min(max(before + target.number, found.earliest), found.latest)
        entries.append(
            OffsetEntry(
                partition={"kafka_topic": partition.topic, "kafka_partition": partition.partition},
                offset={SINK_OFFSET_KEY: offset},
            )
        )
    return tuple(entries)


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
