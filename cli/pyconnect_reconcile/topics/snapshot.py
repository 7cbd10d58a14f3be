"""The input of a run: partitions with their offsets, taken once before the first read. Pure.

`start` is the first offset that is read and `end` the first that is not: the last stable offset
(LSO) unless the run asks for less. Open transactions lie beyond the LSO, up to the high
watermark. The JSON form goes into reports, and `--ranges` reads it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import ReconcileError

FORMAT_VERSION = 1
UNKNOWN_POLICY = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerState:
    """A producer with an open transaction, as DescribeProducers names it (KIP-664)."""

    producer_id: int
    producer_epoch: int
    transaction_start_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRange:
    """One partition's offsets.

    `asked_start` and `asked_end` are the requested bounds; None: as far as records go.
    """

    topic: str
    partition: int
    start: int
    end: int
    earliest: int
    last_stable: int
    high_watermark: int
    open_producers: tuple[ProducerState, ...] = ()
    asked_start: int | None = None
    asked_end: int | None = None

    @property
    def removed(self) -> range:
        """The requested offsets before the earliest one that exists."""
        last = self.earliest if self.asked_end is None else min(self.earliest, self.asked_end)
        return range(max(self.asked_start or 0, 0), last)

    @property
    def begins_late(self) -> bool:
        """Whether the partition had records before the start, removed or not requested."""
        return self.start > 0

    @property
    def ends_early(self) -> bool:
        """Whether the partition has records from the end on."""
        return self.end < self.high_watermark

    @property
    def length(self) -> int:
        """The number of offsets that are read."""
        return max(self.end - self.start, 0)

    @property
    def beyond_end(self) -> PartitionRange:
        """The stable offsets from the end on, which the request leaves out."""
        return replace(self, start=self.end, end=max(self.last_stable, self.end))

    @property
    def open_offsets(self) -> PartitionRange:
        """The offsets beyond the last stable one and the end: only uncommitted reads show them."""
        start = max(self.last_stable, self.end)
        return replace(self, start=start, end=max(self.high_watermark, start))

    @property
    def open_tail(self) -> int:
        """The number of offsets beyond the last stable one."""
        return self.high_watermark - self.last_stable


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSnapshot:
    """One topic: its id changes when it is created again (KIP-516).

    `cleanup_policy` is the topic's setting, or UNKNOWN_POLICY where it may not be read.
    """

    topic: str
    topic_id: str
    cleanup_policy: str
    partitions: tuple[PartitionRange, ...]

    @property
    def compacted(self) -> bool:
        """Whether compaction may remove records."""
        return "compact" in self.cleanup_policy


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsSnapshot:
    cluster_id: str
    taken_ms: int
    topics: tuple[TopicSnapshot, ...]

    @property
    def partitions(self) -> tuple[PartitionRange, ...]:
        """Every partition of every topic."""
        return tuple(part for topic in self.topics for part in topic.partitions)

    @property
    def length(self) -> int:
        """The number of offsets that are read."""
        return sum(part.length for part in self.partitions)

    def of_topics(self, names: Sequence[str]) -> TopicsSnapshot:
        """Return the snapshot of these topics only."""
        return replace(self, topics=tuple(each for each in self.topics if each.topic in names))

    def to_json(self) -> dict[str, object]:
        """Return the document that `read_snapshot` reads."""
        return {"version": FORMAT_VERSION, **asdict(self)}


def narrowed(snapshot: TopicsSnapshot, *, since: Bounds, until: Bounds) -> TopicsSnapshot:
    """Return the snapshot with starts raised to `since` and ends lowered to `until`.

    If `until` names a topic but not a partition of it, that partition is not read: no offset was
    committed there. ReconcileError for a partition that the topic does not have.
    """
    there = {(part.topic, part.partition) for part in snapshot.partitions}
    for topic in snapshot.topics:
        for name, bounds in (("since", since), ("until", until)):
            for number in bounds.get(topic.topic, {}):
                if (topic.topic, number) not in there:
                    raise ReconcileError(
                        f"`{name}` has an offset of partition {number} of {topic.topic}, which has"
                        f" {len(topic.partitions)} partitions",
                        hint="was the topic deleted and created again?",
                    )

    def narrow(part: PartitionRange) -> PartitionRange:
        asked_start = since.get(part.topic, {}).get(part.partition, part.asked_start)
        start = max(part.start, asked_start or 0)
        end, asked_end = part.end, part.asked_end
        if part.topic in until:
            asked_end = until[part.topic].get(part.partition, start)
            end = min(end, asked_end)
        return replace(
            part, start=start, end=max(start, end), asked_start=asked_start, asked_end=asked_end
        )

    return replace(
        snapshot,
        topics=tuple(
            replace(topic, partitions=tuple(map(narrow, topic.partitions)))
            for topic in snapshot.topics
        ),
    )


def stable_only(snapshot: TopicsSnapshot) -> TopicsSnapshot:
    """Return the snapshot with only the offsets before the last stable one requested."""

    def bounded(part: PartitionRange) -> PartitionRange:
        asked = part.last_stable if part.asked_end is None else part.asked_end
        return replace(part, asked_end=min(asked, part.last_stable))

    return replace(
        snapshot,
        topics=tuple(
            replace(topic, partitions=tuple(map(bounded, topic.partitions)))
            for topic in snapshot.topics
        ),
    )


def read_snapshot(document: object) -> TopicsSnapshot:
    """Read a saved snapshot; ReconcileError for another document."""
    try:
        if not isinstance(document, Mapping):
            raise TypeError("not an object")
        # A whole report has its snapshot as a member.
        content = document.get("snapshot", document)
        if content["version"] != FORMAT_VERSION:
            raise ValueError(f"version {content['version']} is not {FORMAT_VERSION}")
        return TopicsSnapshot(
            cluster_id=str(content["cluster_id"]),
            taken_ms=int(content["taken_ms"]),
            topics=tuple(
                TopicSnapshot(
                    topic=str(topic["topic"]),
                    topic_id=str(topic["topic_id"]),
                    cleanup_policy=str(topic["cleanup_policy"]),
                    partitions=tuple(map(_read_partition, topic["partitions"])),
                )
                for topic in content["topics"]
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise ReconcileError(
            f"these are not saved ranges: {type(exc).__name__}: {exc}",
            hint="give the report.json of a run, or the `snapshot` member of it",
        ) from exc


def _read_partition(document: Mapping[str, object]) -> PartitionRange:
    numbers = {
        name: int(str(document[name]))
        for name in ("partition", "start", "end", "earliest", "last_stable", "high_watermark")
    }
    producers = document.get("open_producers") or ()
    assert isinstance(producers, Sequence)
    # Reports of earlier versions lack the requested bounds.
    start, end = (document.get(name) for name in ("asked_start", "asked_end"))
    return PartitionRange(
        topic=str(document["topic"]),
        open_producers=tuple(ProducerState(**producer) for producer in producers),
        asked_start=None if start is None else int(str(start)),
        asked_end=None if end is None else int(str(end)),
        **numbers,
    )
