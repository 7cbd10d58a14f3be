"""Replays of dead letters: the entries of their journal, and what these say together. Pure.

The committed offsets of a replay's group decide what was sent. A batch is journaled before its
transaction is committed, so the journal alone does not know whether the last batch was sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pyconnect_reconcile.spec import Registry

GROUP_PREFIX = "pyconnect-replay-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Dead letters of one group in one partition of the queue: from `first` to `last` offset."""

    group: str
    partition: int
    first: int
    last: int
    count: int

    def meets(self, other: Span) -> bool:
        """Whether both may hold the same letter."""
        same = (self.group, self.partition) == (other.group, other.partition)
        return same and self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, kw_only=True)
class ReplayPlanned:
    """The first entry of a replay.

    `connector`: only letters of this sink, None for those of all. `targets`: the topics that get
    letters, `to_topic`: the one for all letters, if it is not the original one. `mend`: a program
    of jq; `mend_text`: it gets texts; `registry`: that of the values.
    """

    replay: str
    at_ms: int
    cluster_id: str
    topic: str
    connector: str | None
    to_topic: str | None
    targets: tuple[str, ...]
    mend: str | None
    shapes: int
    spans: tuple[Span, ...]
    mend_text: bool = False
    registry: Registry | None = None

    @property
    def group(self) -> str:
        """The consumer group and transactional id of the replay."""
        return GROUP_PREFIX + self.replay

    @property
    def total(self) -> int:
        return sum(span.count for span in self.spans)

    @cached_property
    def partitions(self) -> tuple[int, ...]:
        """The partitions of the queue, in the order of all tuples of offsets."""
        return tuple(sorted({span.partition for span in self.spans}))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(
            min(span.first for span in self.spans if span.partition == partition)
            for partition in self.partitions
        )

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """The offsets behind the last letters."""
        return tuple(
            max(span.last for span in self.spans if span.partition == partition) + 1
            for partition in self.partitions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentSpan:
    """Letters of one group in one partition of their target: where a transaction wrote them."""

    group: str
    topic: str
    partition: int
    first: int
    last: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBatch:
    """One transaction, before its commit: the positions in the queue before and after it."""

    replay: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    sent: tuple[SentSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnded:
    """Every letter was read. `missing`: planned letters that the queue no longer has."""

    replay: str
    missing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayUndone:
    """The group is back at the beginning of its plan."""

    replay: str


ReplayEntry = ReplayPlanned | ReplayBatch | ReplayEnded | ReplayUndone


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One replay as the journal knows it."""

    planned: ReplayPlanned
    batches: tuple[ReplayBatch, ...] = ()
    missing: int | None = None
    undone: bool = False

    @property
    def state(self) -> str:
        if self.undone:
            return "undone"
        if self.missing is None:
            return "unfinished"
        return "incomplete" if self.missing else "finished"

    @property
    def certain(self) -> tuple[ReplayBatch, ...]:
        """The batches that were sent for certain: the last one of an unfinished run may not be."""
        return self.batches if self.state != "unfinished" else self.batches[:-1]

    def sent_until(self, positions: Sequence[int]) -> tuple[ReplayBatch, ...] | None:
        """Return the batches before these committed offsets; None if no batch ends there."""
        reached = tuple(positions)
        if reached == self.planned.starts:
            return ()
        for number, batch in enumerate(self.batches, 1):
            if batch.after == reached:
                return self.batches[:number]
        return None


def read_replays(entries: Iterable[ReplayEntry]) -> dict[str, Replay]:
    """Return the replays of a journal by their ids, oldest first."""
    found: dict[str, Replay] = {}
    for entry in entries:
        match entry:
            case ReplayPlanned():
                found[entry.replay] = Replay(planned=entry)
            case ReplayBatch():
                replay = found[entry.replay]
                kept = list(replay.batches)
                # Later ones that begin where it begins were never committed, or were undone.
                while kept and kept[-1].after != entry.before:
                    kept.pop()
                found[entry.replay] = replace(
                    replay, batches=(*kept, entry), missing=None, undone=False
                )
            case ReplayEnded():
                replay = found[entry.replay]
                found[entry.replay] = replace(replay, missing=entry.missing, undone=False)
            case ReplayUndone():
                found[entry.replay] = replace(found[entry.replay], missing=None, undone=True)
    return found


def unfinished(replays: Iterable[Replay]) -> Replay | None:
    """Return a replay that has to be resumed or undone before the next one."""
    return next((replay for replay in replays if replay.state == "unfinished"), None)


def sent_spans(replays: Iterable[Replay]) -> list[Span]:
    """Return the letters of replays that were not undone."""
    return [span for replay in replays if not replay.undone for span in replay.planned.spans]


def sent_places(batches: Iterable[ReplayBatch]) -> list[SentSpan]:
    """Return the places of sent letters: one span for each group and partition of a target."""
    places: dict[tuple[str, str, int], SentSpan] = {}
    for sent in (each for batch in batches for each in batch.sent):
        key = (sent.group, sent.topic, sent.partition)
        known = places.get(key, replace(sent, count=0))
        places[key] = replace(
            sent,
            first=min(known.first, sent.first),
            last=max(known.last, sent.last),
            count=known.count + sent.count,
        )
    return [places[key] for key in sorted(places)]


def sent_counts(batches: Iterable[ReplayBatch]) -> Counter[str]:
    """Return the number of sent letters of each group."""
    counts: Counter[str] = Counter()
    for place in sent_places(batches):
        counts[place.group] += place.count
    return counts


@dataclass(slots=True)
class SpanBuilder:
    """Builds spans from letters in the order of their offsets, one partition like another."""

    spans: dict[tuple[str, int], list[Span]] = field(default_factory=dict)
    cut: set[tuple[str, int]] = field(default_factory=set)

    def add(self, group: str, partition: int, offset: int) -> None:
        key = (group, partition)
        found = self.spans.setdefault(key, [])
        if not found or key in self.cut:
            self.cut.discard(key)
            found.append(Span(group=group, partition=partition, first=offset, last=offset, count=1))
        else:
            found[-1] = replace(found[-1], last=offset, count=found[-1].count + 1)

    def interrupt(self, group: str, partition: int) -> None:
        """Note a letter of the group that does not belong to a span."""
        self.cut.add((group, partition))

    def built(self) -> tuple[Span, ...]:
        return tuple(span for key in sorted(self.spans) for span in self.spans[key])


class Letters:
    """The letters inside spans, looked up by group, partition and offset.

    No letter is in two spans: a plan leaves out the letters of other replays.
    """

    def __init__(self, spans: Iterable[Span]) -> None:
        self._spans: dict[tuple[str, int], list[Span]] = {}
        for span in spans:
            self._spans.setdefault((span.group, span.partition), []).append(span)
        for known in self._spans.values():
            known.sort(key=lambda span: span.first)

    def include(self, group: str, partition: int, offset: int) -> bool:
        known = self._spans.get((group, partition), [])
        at = bisect_right(known, offset, key=lambda span: span.first)
        return at > 0 and offset <= known[at - 1].last

    def overlapping(self, others: Collection[Span]) -> bool:
        """Whether a letter may be in one of these spans, too."""
        known = [span for spans in self._spans.values() for span in spans]
        return any(span.meets(other) for span in known for other in others)
