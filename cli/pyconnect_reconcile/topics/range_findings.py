"""Findings that follow from a snapshot alone. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from pyconnect_reconcile.document import Bounds
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.findings import Finding, Severity, count_of, error, unknown
from pyconnect_reconcile.topics.snapshot import UNKNOWN_POLICY, PartitionRange, TopicsSnapshot


def _of_offsets(
    part: PartitionRange, offsets: range, kind: str, severity: Severity, message: str
) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        message=message,
        topic=part.topic,
        partition=part.partition,
        of="offsets",
        first=offsets.start,
        last=offsets.stop - 1,
        count=len(offsets),
    )


def of_ranges(snapshot: TopicsSnapshot, severity: Severity, consequence: str) -> Iterator[Finding]:
    """Yield why the ranges do not show all records; arguments as in `removed_beginnings`."""
    yield from open_tails(snapshot)
    yield from removed_beginnings(snapshot, severity, consequence)
    yield from unknown_policies(snapshot)


def open_tails(snapshot: TopicsSnapshot) -> Iterator[Finding]:
    """Yield requested offsets beyond the end: open transactions, and offsets without a record.

    If the request ends at the last stable offset or before it, an open transaction is only a note.
    """
    for part in snapshot.partitions:
        bound = max(part.asked_start or 0, part.asked_end or 0)
        if bound > part.high_watermark:
            yield _of_offsets(
                part,
                range(part.high_watermark, bound),
                "cut-range",
                Severity.UNKNOWN,
                f"the range was asked for up to offset {bound}, but the partition ends"
                f" at offset {part.high_watermark}: were records lost, or was the topic created"
                " again?",
            )
        asked = part.asked_end
        if part.open_tail <= 0 or (asked is not None and asked < part.last_stable):
            continue
        cut = asked is None or asked > part.last_stable
        producers = ", ".join(
            f"producer {producer.producer_id} (epoch {producer.producer_epoch}) since offset"
            f" {producer.transaction_start_offset}"
            for producer in part.open_producers
        )
        scope = "audited" if cut else "asked for"
        yield _of_offsets(
            part,
            range(part.last_stable, part.high_watermark),
            "open-transaction",
            Severity.UNKNOWN if cut else Severity.NOTE,
            f"{count_of(part.open_tail, 'offset beyond the last stable one was')} not"
            f" {scope}: a transaction is open ({producers or 'its producer is not known'})",
        )


def removed_beginnings(
    snapshot: TopicsSnapshot, severity: Severity, consequence: str
) -> Iterator[Finding]:
    """Yield the requested offsets that retention has removed.

    `consequence` says what cannot be known because of them.
    """
    for part in snapshot.partitions:
        if part.removed:
            yield _of_offsets(
                part,
                part.removed,
                "expired",
                severity,
                f"{count_of(len(part.removed), 'offset at the beginning has')} been"
                f" removed: {consequence}",
            )


def empty_ranges(snapshot: TopicsSnapshot) -> Iterator[Finding]:
    """Yield one finding when the range is empty, which is not an agreement."""
    if snapshot.length == 0:
        topics = ", ".join(topic.topic for topic in snapshot.topics)
        yield unknown(
            kind="empty-range",
            message=f"there is nothing to read in {topics or 'no topic'}: the range is empty",
        )


def without_commits(snapshot: TopicsSnapshot, until: Bounds) -> Iterator[Finding]:
    """Yield topics with records, but without any offset that the sink's group has committed.

    A consumer that never ran and offsets that have expired look the same.
    """
    for topic in snapshot.topics:
        records = sum(part.beyond_end.length for part in topic.partitions)
        if records and topic.topic in until and not until[topic.topic]:
            yield unknown(
                kind="not-audited",
                message=f"no offset of {topic.topic} is committed: none of its"
                f" {count_of(records, 'offset')} was compared",
                topic=topic.topic,
                count=records,
            )


def refuse_compacted(snapshot: TopicsSnapshot, job: str) -> None:
    """Raise NotAuditable when compaction may have removed what the job would count."""
    names = [topic.topic for topic in snapshot.topics if topic.compacted]
    if names:
        raise NotAuditable(
            f"{job} cannot detect losses in compacted topics: {', '.join(names)}",
            hint="compare by key instead (upsert mode), or use `ranges`",
        )


def unknown_policies(snapshot: TopicsSnapshot) -> Iterator[Finding]:
    """Yield topics that may be compacted, for jobs that refuse compacted topics."""
    for topic in snapshot.topics:
        if topic.cleanup_policy == UNKNOWN_POLICY:
            yield unknown(
                kind="unknown-policy",
                message="it is not known whether the topic is compacted, so records may"
                " have been removed; grant DescribeConfigs on it",
                topic=topic.topic,
            )


def without_previous(now: TopicsSnapshot, before: TopicsSnapshot | None) -> Iterator[Finding]:
    """Yield partitions that have lost records and that no saved run has seen."""
    known = {part.topic for part in before.partitions} if before else set()
    seen = {(part.topic, part.partition) for part in before.partitions} if before else set()
    for part in now.partitions:
        if part.earliest == 0 or (part.topic, part.partition) in seen:
            continue
        run = "has this partition" if part.topic in known else "has this topic"
        yield _of_offsets(
            part,
            range(part.earliest),
            "expired",
            Severity.UNKNOWN,
            f"retention has removed {count_of(part.earliest, 'offset')}, and no"
            f" earlier run {run}: it is not known whether they had been read",
        )


def against_previous(now: TopicsSnapshot, before: TopicsSnapshot) -> Iterator[Finding]:
    """Yield changes since a saved run: topics created again, retention, lower ends."""
    known = {topic.topic: topic for topic in before.topics}
    for topic in now.topics:
        old = known.get(topic.topic)
        if old is None:
            continue
        if old.topic_id != topic.topic_id:
            yield error(
                kind="recreated-topic",
                message=f"{topic.topic} was deleted and created again since the saved run: topic id"
                f" {old.topic_id} became {topic.topic_id}",
                topic=topic.topic,
            )
            continue
        parts = {part.partition: part for part in old.partitions}
        for part in topic.partitions:
            if (old_part := parts.get(part.partition)) is not None:
                yield from _moved(part, old_part)


def _moved(part: PartitionRange, old: PartitionRange) -> Iterator[Finding]:
    if part.earliest > old.earliest:
        read = max(min(part.earliest, old.end) - old.earliest, 0)
        unread = max(part.earliest - old.end, 0)
        yield _of_offsets(
            part,
            range(old.earliest, part.earliest),
            "retention-loss",
            Severity.ERROR if unread else Severity.NOTE,
            f"retention removed {count_of(part.earliest - old.earliest, 'offset')}"
            f" since the saved run: {read:,} in its range, {unread:,} never audited",
        )
    if part.high_watermark < old.high_watermark:
        yield _of_offsets(
            part,
            range(part.high_watermark, old.high_watermark),
            "truncated",
            Severity.ERROR,
            "the partition ends before the end of the saved run: records were lost",
        )


def hanging(snapshot: TopicsSnapshot, *, older_than_ms: int) -> Iterator[Finding]:
    """Yield transactions that are open for longer than `older_than_ms`."""
    for part in snapshot.partitions:
        for producer in part.open_producers:
            age_ms = snapshot.taken_ms - producer.last_timestamp_ms
            if age_ms > older_than_ms:
                finding = _of_offsets(
                    part,
                    range(producer.transaction_start_offset, part.high_watermark),
                    "hanging-transaction",
                    Severity.ERROR,
                    f"the transaction of producer {producer.producer_id} (epoch"
                    f" {producer.producer_epoch}) last wrote {age_ms // 1000} s ago and holds back"
                    " consumers of committed records",
                )
                yield replace(finding, count=part.open_tail)
