"""Findings that follow from a snapshot alone. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding, Severity
from pyconnect_reconcile.topics.snapshot import UNKNOWN_POLICY, PartitionRange, TopicsSnapshot


def open_tails(snapshot: TopicsSnapshot) -> Iterator[Finding]:
    """Yield what lies beyond the last stable offset, where the range ends there."""
    for part in snapshot.partitions:
        if part.open_tail <= 0 or part.end < part.last_stable:
            continue
        producers = ", ".join(
            f"producer {producer.producer_id} (epoch {producer.producer_epoch}) since offset"
            f" {producer.transaction_start_offset}"
            for producer in part.open_producers
        )
        yield Finding(
            kind="open-transaction",
            severity=Severity.NOTE,
            message=f"{part.open_tail} offsets beyond the last stable one were not audited:"
            f" a transaction is open ({producers or 'its producer is not known'})",
            topic=part.topic,
            partition=part.partition,
            of="offsets",
            first=part.last_stable,
            last=part.high_watermark - 1,
            count=part.open_tail,
        )


def empty_ranges(snapshot: TopicsSnapshot) -> Iterator[Finding]:
    """Yield one finding when there is nothing to read at all: that is no agreement."""
    if snapshot.length == 0:
        topics = ", ".join(topic.topic for topic in snapshot.topics)
        yield Finding(
            kind="empty-range",
            severity=Severity.UNKNOWN,
            message=f"there is nothing to read in {topics or 'no topic'}: the range is empty",
        )


def refuse_compacted(snapshot: TopicsSnapshot, job: str) -> None:
    """Raise ReconcileError when compaction may have removed what the job would count."""
    names = [topic.topic for topic in snapshot.topics if topic.compacted]
    if names:
        raise ReconcileError(
            f"{job} cannot detect losses in compacted topics: {', '.join(names)}",
            hint="compare by key instead (upsert mode), or use `ranges` and `transactions`",
        )


def unknown_policies(
    snapshot: TopicsSnapshot, severity: Severity = Severity.UNKNOWN
) -> Iterator[Finding]:
    """Yield topics that may be compacted, for jobs that refuse such: they prove little there."""
    for topic in snapshot.topics:
        if topic.cleanup_policy == UNKNOWN_POLICY:
            yield Finding(
                kind="unknown-policy",
                severity=severity,
                message="it is not known whether the topic is compacted, so records may"
                " have been removed; grant DescribeConfigs on it",
                topic=topic.topic,
            )


def against_previous(now: TopicsSnapshot, before: TopicsSnapshot) -> Iterator[Finding]:
    """Yield what changed since a saved run: topics created again, retention, lower ends."""
    known = {topic.topic: topic for topic in before.topics}
    for topic in now.topics:
        old = known.get(topic.topic)
        if old is None:
            continue
        if old.topic_id != topic.topic_id:
            yield Finding(
                kind="recreated-topic",
                severity=Severity.ERROR,
                message=f"{topic.topic} was deleted and created again since the saved run: topic id"
                f" {old.topic_id} became {topic.topic_id}",
                topic=topic.topic,
            )
            continue
        yield from _moved(topic.partitions, old.partitions)


def _moved(now: Sequence[PartitionRange], before: Iterable[PartitionRange]) -> Iterator[Finding]:
    known = {part.partition: part for part in before}
    for part in now:
        old = known.get(part.partition)
        if old is None:
            continue
        if part.earliest > old.earliest:
            read = max(min(part.earliest, old.end) - old.earliest, 0)
            unread = max(part.earliest - old.end, 0)
            yield Finding(
                kind="retention-loss",
                severity=Severity.ERROR if unread else Severity.NOTE,
                message=f"retention removed {part.earliest - old.earliest} offsets since the saved"
                f" run; {read} of them were in its range, {unread} were never audited",
                topic=part.topic,
                partition=part.partition,
                of="offsets",
                first=old.earliest,
                last=part.earliest - 1,
                count=part.earliest - old.earliest,
            )
        if part.high_watermark < old.high_watermark:
            yield Finding(
                kind="truncated",
                severity=Severity.ERROR,
                message="the partition ends before the end of the saved run: records were lost",
                topic=part.topic,
                partition=part.partition,
                of="offsets",
                first=part.high_watermark,
                last=old.high_watermark - 1,
                count=old.high_watermark - part.high_watermark,
            )


def hanging(snapshot: TopicsSnapshot, *, older_than_ms: int) -> Iterator[Finding]:
    """Yield transactions that are open for longer than any broker allows by default."""
    for part in snapshot.partitions:
        for producer in part.open_producers:
            age_ms = snapshot.taken_ms - producer.last_timestamp_ms
            if age_ms > older_than_ms:
                yield Finding(
                    kind="hanging-transaction",
                    severity=Severity.ERROR,
                    message=f"the transaction of producer {producer.producer_id} (epoch"
                    f" {producer.producer_epoch}) last wrote {age_ms // 1000} s ago and holds back"
                    " consumers of committed records",
                    topic=part.topic,
                    partition=part.partition,
                    of="offsets",
                    first=producer.transaction_start_offset,
                    last=part.high_watermark - 1,
                    count=part.open_tail,
                )
