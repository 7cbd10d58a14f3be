"""Snapshots: bounds, saved ranges, and findings from them alone."""

from dataclasses import replace
from typing import Any

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Severity
from pyconnect_reconcile.topics.range_findings import (
    against_previous,
    hanging,
    open_tails,
    removed_beginnings,
    unknown_policies,
    without_previous,
)
from pyconnect_reconcile.topics.snapshot import (
    UNKNOWN_POLICY,
    PartitionRange,
    ProducerState,
    TopicSnapshot,
    TopicsSnapshot,
    narrowed,
    read_snapshot,
    stable_only,
)


def part(number: int = 0, **members: Any) -> PartitionRange:
    values = {"start": 10, "end": 90, "earliest": 10, "last_stable": 90, "high_watermark": 90}
    return PartitionRange(topic="t", partition=number, **{**values, **members})


def snapshot(*parts: PartitionRange, topic_id: str = "id") -> TopicsSnapshot:
    topic = TopicSnapshot(topic="t", topic_id=topic_id, cleanup_policy="delete", partitions=parts)
    return TopicsSnapshot(cluster_id="c", taken_ms=1_000_000_000, topics=(topic,))


def test_saved_ranges_are_read_back_as_they_were() -> None:
    """`--ranges` reads the same ranges from a report as from a file of ranges."""
    producer = ProducerState(
        producer_id=1, producer_epoch=2, transaction_start_offset=88, last_timestamp_ms=3
    )
    saved = snapshot(part(), part(1, high_watermark=95))
    first = replace(saved.partitions[0], open_producers=(producer,), asked_start=3, asked_end=88)
    saved = snapshot(first, part(1))
    assert read_snapshot(saved.to_json()) == saved
    assert read_snapshot({"snapshot": saved.to_json()}) == saved


@pytest.mark.parametrize(
    "document", [None, [], {}, {"version": 1}, {"version": 9}, {"snapshot": 1}]
)
def test_a_file_without_saved_ranges_is_refused(document: object) -> None:
    """A damaged file of ranges is an error instead of a stack trace."""
    with pytest.raises(ReconcileError, match="not saved ranges"):
        read_snapshot(document)


def test_bounds_only_narrow() -> None:
    """Ends stay below the last stable offset, and a partition without an offset is not read."""
    whole = snapshot(part(0), part(1), part(2))
    bounds = narrowed(whole, since={"t": {0: 50, 1: 5}}, until={"t": {0: 70, 1: 500}})
    assert [(each.start, each.end) for each in bounds.partitions] == [(50, 70), (10, 90), (10, 10)]
    assert bounds.length == 20 + 80


def test_an_open_transaction_cuts_a_range_that_was_asked_for_as_far_as_records_go() -> None:
    """An open transaction is unknown unless the requested end is before it."""
    opened = part(high_watermark=95)
    [finding] = open_tails(snapshot(opened))
    assert (finding.first, finding.last, finding.count) == (90, 94, 5)
    assert finding.severity is Severity.UNKNOWN

    def found(**members: Any) -> list[tuple[str, Severity]]:
        asked = open_tails(snapshot(replace(opened, **members)))
        return [(each.kind, each.severity) for each in asked]

    assert found(end=80, asked_end=80) == []
    assert found(asked_end=90) == [("open-transaction", Severity.NOTE)]
    assert found(asked_end=93) == [("open-transaction", Severity.UNKNOWN)]
    [only] = open_tails(stable_only(snapshot(opened)))
    assert only.severity is Severity.NOTE
    assert "not asked for" in only.message
    assert list(open_tails(stable_only(snapshot(replace(opened, end=80, asked_end=80))))) == []


def test_offsets_that_were_asked_for_and_are_not_there_cut_the_range() -> None:
    """A requested bound beyond the end is unknown: records were lost, or the topic is new."""
    whole = snapshot(part())
    beyond = narrowed(whole, since={}, until={"t": {0: 120}})
    [finding] = open_tails(beyond)
    assert (finding.kind, finding.severity) == ("cut-range", Severity.UNKNOWN)
    assert (finding.first, finding.last) == (90, 119)
    [finding] = open_tails(narrowed(whole, since={"t": {0: 99}}, until={}))
    assert finding.kind == "cut-range"
    with pytest.raises(ReconcileError, match="`until` has an offset of partition 3 of t"):
        narrowed(whole, since={}, until={"t": {3: 1}})


def test_a_removed_beginning_is_reported_unless_the_range_begins_behind_it() -> None:
    """Expired offsets are reported only if the requested range includes them."""
    expired = snapshot(part())

    def removed(since: int) -> list[tuple[int | None, int | None]]:
        asked = narrowed(expired, since={"t": {0: since}}, until={})
        found = removed_beginnings(asked, Severity.UNKNOWN, "unknown")
        return [(each.first, each.last) for each in found]

    assert [(each.first, each.last) for each in removed_beginnings(expired, Severity.NOTE, "")] == [
        (0, 9)
    ]
    assert (removed(4), removed(10), removed(50)) == ([(4, 9)], [], [])
    assert list(removed_beginnings(snapshot(part(earliest=0, start=0)), Severity.NOTE, "")) == []


def test_a_partition_without_an_earlier_run_is_whole_only_if_nothing_was_removed() -> None:
    """Expired offsets are unknown in a first run, which cannot say whether they had been read."""
    [finding] = without_previous(snapshot(part()), None)
    assert (finding.kind, finding.severity, finding.last) == ("expired", Severity.UNKNOWN, 9)
    assert list(without_previous(snapshot(part(earliest=0)), None)) == []
    assert list(without_previous(snapshot(part()), snapshot(part()))) == []
    [added] = without_previous(snapshot(part(), part(1)), snapshot(part()))
    assert added.partition == 1


def test_only_an_unknown_cleanup_policy_is_reported() -> None:
    """An unknown cleanup policy is a finding, a known one is not."""
    known = snapshot(part())
    assert list(unknown_policies(known)) == []
    topics = (replace(known.topics[0], cleanup_policy=UNKNOWN_POLICY),)
    [finding] = unknown_policies(replace(known, topics=topics))
    assert (finding.topic, finding.severity) == ("t", Severity.UNKNOWN)


def test_retention_is_a_loss_only_for_records_that_no_run_had_read() -> None:
    """Expired records are a loss only if no earlier run has audited them."""
    before = snapshot(part())
    [read] = against_previous(snapshot(part(earliest=60, start=60)), before)
    assert (read.kind, read.severity) == ("retention-loss", Severity.NOTE)
    now = part(earliest=100, start=100, end=120, last_stable=120, high_watermark=120)
    [unread] = against_previous(snapshot(now), before)
    assert (unread.severity, unread.first, unread.last) == (Severity.ERROR, 10, 99)


def test_recreated_topics_and_smaller_end_offsets_are_losses() -> None:
    """A topic that was created again, and a smaller end offset, are errors."""
    before = snapshot(part())
    [recreated] = against_previous(snapshot(part(), topic_id="other"), before)
    assert recreated.kind == "recreated-topic"
    back = part(end=50, last_stable=50, high_watermark=50)
    [truncated] = against_previous(snapshot(back), before)
    assert (truncated.kind, truncated.first, truncated.last) == ("truncated", 50, 89)


def test_a_transaction_that_wrote_long_ago_hangs() -> None:
    """A transaction is an error after the time in which its coordinator would have aborted it."""
    producer = ProducerState(
        producer_id=7, producer_epoch=0, transaction_start_offset=90, last_timestamp_ms=10
    )
    opened = snapshot(part(high_watermark=95, open_producers=(producer,)))
    [finding] = hanging(opened, older_than_ms=900_000)
    assert (finding.kind, finding.first) == ("hanging-transaction", 90)
    assert list(hanging(opened, older_than_ms=2_000_000_000)) == []
