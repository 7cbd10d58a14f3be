"""Dead letters in groups by their causes, and the letters of a replay. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace

from pyconnect_cli.dlq.plan.causes import (
    PREFIX,
    Cause,
    LetterContext,
    cause_of,
    context_of,
    group_id,
)
from pyconnect_cli.dlq.plan.replays import Letters, Span, SpanBuilder
from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.kafka.model import TopicRecord


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
        """The stable form for machines, without the example."""
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
    """Return whether a letter is a connector's; one without headers may be anyone's."""
    return connector is None or known.get("connector.name", connector) == connector


def require_groups(
    groups: Mapping[str, LetterGroup], chosen: Collection[str], to_topic: str | None
) -> None:
    """Raise NotFound for an id without letters, UsageError for letters without a target."""
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
