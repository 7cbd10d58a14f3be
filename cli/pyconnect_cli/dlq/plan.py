"""Dead letters in groups by their causes, and replays as their journal records them. Pure.

A cause is the error in a worker's headers without its varying parts. A worker adds error and
origin as headers if the sink has errors.deadletterqueue.context.headers.enable (KIP-298). Java
workers and agents write the same headers as texts.

The committed offsets of a replay's group decide which batches were sent. A batch is journaled
before its transaction is committed, so the journal alone does not show if the last one was sent.
"""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeAlias

from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.kafka.model import TopicRecord
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
        """Return whether both spans may hold the same letter."""
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
    """One replay with the state that the journal records."""

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
        """The batches that were certainly sent: without the last one of an unfinished run."""
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
                # Batches after the entry's start were never committed, or were undone.
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
    """Builds spans from letters that come, in each partition, in the order of their offsets."""

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
        """Return whether a letter may be in one of the other spans, too."""
        known = [span for spans in self._spans.values() for span in spans]
        return any(span.meets(other) for span in known for other in others)


PREFIX = "__connect.errors."
SHAPES = 2
"""The version of `message_shape`; a replay is resumed with the version that planned it."""
LONGEST_SHAPE = 300
LONGEST_MESSAGE = 4_000
_HEX = "[0-9a-fA-F]"
_QUOTED = re.compile(r"""(?<!\w)(["'`]).*?\1(?!\w)""", re.DOTALL)
_VARYING = re.compile(
    rf"\b{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b"  # a UUID
    rf"|@{_HEX}{{4,}}\b"  # an object of Java, as in [B@1f2e3d
    rf"|\b(?=[a-fA-F]*\d){_HEX}{{8,}}\b"
    r"|(?<!\w)-?\d\w*(?:[.,:+-]+\d\w*)*"
    r"|\d{3,}"
)
_UTF_8 = re.compile(
    r"can't decode bytes?(?: \w+)? in position \S+: "
    r"(?:invalid (?:start|continuation) byte|unexpected end of data)"
    r"|Invalid UTF-8 (?:start|middle) byte \w+"
)
"""Texts of Python and Jackson about bytes that are not UTF-8; the texts vary with the bytes."""
_ROOT = re.compile(r"^Caused by: ([\w.$]+)", re.MULTILINE)


LetterContext: TypeAlias = Mapping[str, str | None]
"""The headers that the worker added to a letter, by name without their prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The facts that dead letters of a group share; empty texts without headers.

    `root` is the class of the innermost exception, `processor` that of the converter, the
    transformation or the task that failed, `topic` the original one.
    """

    stage: str
    exception: str
    root: str
    message: str
    processor: str
    topic: str


def context_of(record: TopicRecord) -> LetterContext:
    """Decode the context of a letter, once for each letter: it may hold a long stack trace."""
    return {
        name.removeprefix(PREFIX): None if data is None else data.decode(errors="replace")
        for name, data in record.headers
        if name.startswith(PREFIX)
    }


def cause_of(known: LetterContext) -> Cause:
    """Return the cause of a dead letter with this context."""
    return Cause(
        stage=known.get("stage") or "",
        exception=known.get("exception.class.name") or "",
        root=next(reversed(_ROOT.findall(known.get("exception.stacktrace") or "")), ""),
        message=message_shape(known.get("exception.message") or ""),
        processor=known.get("class.name") or "",
        topic=known.get("topic") or "",
    )


@lru_cache(maxsize=1_000)
@lru_cache(maxsize=10_000)
def message_shape(message: str) -> str:
    """Return a message with `…` for each quoted part and N for each number or identifier."""
    text = _UTF_8.sub("invalid bytes", message[:LONGEST_MESSAGE])
    text = _QUOTED.sub(lambda found: f"{found[1]}…{found[1]}", text)
    return " ".join(_VARYING.sub("N", text).split())[:LONGEST_SHAPE]


@lru_cache(maxsize=10_000)
def group_id(cause: Cause) -> str:
    """Return the id of a group, the same for each listing."""
    text = json.dumps(asdict(cause), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


@dataclass(slots=True, kw_only=True)
class LetterGroup:
    """The letters of one cause; `left`: those that no replay has, `example`: the first letter."""

    id: str
    cause: Cause
    example: TopicRecord
    count: int = 0
    left: int = 0
    first_ms: int
    last_ms: int

    def to_json(self, spans: Collection[Span]) -> dict[str, object]:
        """Return the stable form for machines, without the example."""
        places = [asdict(span) for span in spans if span.group == self.id]
        return {
            "group": self.id,
            **asdict(self.cause),
            "count": self.count,
            "left": self.left,
            "first_timestamp_ms": self.first_ms,
            "last_timestamp_ms": self.last_ms,
            "places": [{key: place[key] for key in place if key != "group"} for place in places],
        }


@dataclass(slots=True, kw_only=True)
class LetterSorter:
    """Sorts the letters of a queue, each partition in the order of its offsets.

    `connector`: letters of other sinks are left out. `replayed`: letters of replays. `chosen`: ids
    of groups, None for all. `limit`: number of letters to take.
    """

    connector: str | None = None
    replayed: Letters = field(default_factory=lambda: Letters(()))
    chosen: Collection[str] | None = None
    limit: int | None = None
    groups: dict[str, LetterGroup] = field(default_factory=dict)
    spans: SpanBuilder = field(default_factory=SpanBuilder)
    taken: int = 0
    foreign: int = 0

    def take(self, record: TopicRecord) -> bool:
        """Sort a letter; return whether a replay would send it."""
        known = context_of(record)
        if not is_letter_of(known, self.connector):
            self.foreign += 1
            return False
        cause = cause_of(known)
        identity = group_id(cause)
        group = self.groups.get(identity)
        if group is None:
            at_ms = record.timestamp_ms
            group = self.groups[identity] = LetterGroup(
                id=identity, cause=cause, example=record, first_ms=at_ms, last_ms=at_ms
            )
        group.count += 1
        group.first_ms = min(group.first_ms, record.timestamp_ms)
        group.last_ms = max(group.last_ms, record.timestamp_ms)
        if self.replayed.include(identity, record.partition, record.offset):
            self.spans.interrupt(identity, record.partition)
            return False
        group.left += 1
        if self.chosen is not None and identity not in self.chosen:
            return False
        if self.limit is not None and self.taken >= self.limit:
            return False
        self.taken += 1
        self.spans.add(identity, record.partition, record.offset)
        return True

    def by_count(self) -> list[LetterGroup]:
        """Return the groups, the largest first."""
        return sorted(self.groups.values(), key=lambda group: (-group.count, group.id))


def is_letter_of(known: LetterContext, connector: str | None) -> bool:
    """Return whether a letter is a connector's; one without headers may be of any connector."""
    return connector is None or known.get("connector.name", connector) == connector


def require_groups(
    groups: Mapping[str, LetterGroup], chosen: Collection[str], to_topic: str | None
) -> None:
    """Raise NotFound for an id without letters, UsageError for letters without a target topic."""
    if unknown := sorted(set(chosen) - set(groups)):
        raise NotFound(
            f"no dead letter belongs to the group {', '.join(unknown)}",
            hint="list the groups: pyconnect connectors dlq NAME",
        )
    nowhere = sorted(name for name in chosen if not groups[name].cause.topic)
    if nowhere and to_topic is None:
        raise UsageError(
            f"the dead letters of {', '.join(nowhere)} have no header with their original topic",
            hint="name a topic: --to-topic TOPIC; a sink writes these headers with"
            " errors.deadletterqueue.context.headers.enable=true",
        )


def as_sent(
    record: TopicRecord,
    known: LetterContext,
    to_topic: str | None,
    partitions: Mapping[str, int],
    value: bytes | None,
) -> TopicRecord:
    """Return the record that a replay writes for a letter; the value may be mended.

    The partition is that of the original record. If the target does not have it, the key decides
    (-1). `partitions`: the number of partitions of each target.
    """
    topic = to_topic or known.get("topic") or ""
    number = known.get("partition") or ""
    partition = int(number) if number.isascii() and number.isdigit() else -1
    return replace(
        record,
        topic=topic,
        partition=partition if partition < partitions[topic] else -1,
        value=value,
        headers=tuple(header for header in record.headers if not header[0].startswith(PREFIX)),
    )
