"""transactions: how many offsets of each partition are records, aborted records and markers.

On a range [a, b) of an uncompacted topic, (b - a) - rows(read_uncommitted) = markers, and
rows(read_uncommitted) - rows(read_committed) = aborted records. A gap in the offsets is therefore
not a lost record: markers take offsets, and committed reads leave out aborted ones.
"""

from collections import Counter

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import COMMITTED, UNCOMMITTED, Bench
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    PartitionCounts,
    Severity,
    note,
    numbers_of,
    runs_of,
    unknown,
)
from pyconnect_reconcile.topics.range_findings import (
    empty_ranges,
    open_tails,
    removed_beginnings,
    unknown_policies,
)

MASK = "bit_or(shiftleft(1L, CAST(offset & 63 AS INT)))"


def check(bench: Bench) -> CheckOutcome:
    """Count both isolation levels and name the aborted offsets."""
    snapshot = bench.snapshot(bench.spec.topics)
    bench.events.step("counting uncommitted and committed records")
    # Offsets are folded to masks of 64.
    read = (
        bench.records(snapshot.partitions, isolation=isolation)
        .select("topic", "partition", "offset")
        .withColumn("shown", sql.lit(isolation == COMMITTED))
        for isolation in (UNCOMMITTED, COMMITTED)
    )
    uncommitted, committed = read
    masks = (
        uncommitted.unionByName(committed)
        .groupBy("topic", "partition", sql.expr("shiftright(offset, 6) AS bucket"))
        .agg(
            sql.expr(f"{MASK} FILTER (WHERE NOT shown) AS all"),
            sql.expr(f"coalesce({MASK} FILTER (WHERE shown), 0L) AS visible"),
        )
        .persist()
    )
    try:
        counted = masks.groupBy("topic", "partition").agg(
            sql.sum(sql.bit_count("all")), sql.sum(sql.bit_count("visible"))
        )
        rows = {(topic, number): found for topic, number, *found in counted.collect()}
        findings = _aborted(masks, bench.spec.findings)
    finally:
        masks.unpersist()
    counts = []
    gaps = Counter[str]()
    for part in snapshot.partitions:
        every, shown = rows.get((part.topic, part.partition), (0, 0))
        gaps[part.topic] += part.length - every
        counts.append(
            PartitionCounts(
                topic=part.topic,
                partition=part.partition,
                rows_uncommitted=every,
                rows_committed=shown,
                markers=part.length - every,
                aborted=every - shown,
            )
        )
    # Compaction has removed nothing from a topic without a gap in its offsets.
    gapped = snapshot.of_topics([topic for topic, count in gaps.items() if count])
    compacted = [
        unknown(
            kind="compacted",
            message="the topic is compacted: its transaction markers cannot be distinguished"
            " from removed records",
            topic=topic.topic,
        )
        for topic in gapped.topics
        if topic.compacted
    ]
    every, shown = map(sum, zip(*rows.values(), strict=True)) if rows else (0, 0)
    totals = {"aborted": every - shown}
    return CheckOutcome(
        findings=(
            *empty_ranges(snapshot),
            *open_tails(snapshot),
            *removed_beginnings(snapshot, Severity.NOTE, "their transactions are not counted"),
            *unknown_policies(gapped),
            *compacted,
            *findings,
        ),
        totals=totals,
        counts={
            "offsets": snapshot.length,
            "rows_uncommitted": every,
            "rows_committed": shown,
            "markers": snapshot.length - every,
            **totals,
        },
        partitions=tuple(counts),
    )


def _aborted(masks: DataFrame, limit: int) -> list[Finding]:
    """Return the intervals of aborted offsets in the first masks that have some."""
    rows = (
        masks.withColumn("aborted", sql.col("all").bitwiseAND(sql.bitwise_not("visible")))
        .where("aborted <> 0")
        .orderBy("topic", "partition", "bucket")
        .limit(limit)
        .select("topic", "partition", "bucket", "aborted")
    )
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, bucket, mask in rows.collect():
        offsets.setdefault((topic, partition), []).extend(numbers_of(bucket, mask))
    return [
        note(
            kind="aborted",
            message="records of aborted transactions: consumers of committed records never see"
            " them",
            topic=topic,
            partition=partition,
            of="offsets",
            first=interval.first,
            last=interval.last,
            count=interval.length,
        )
        for (topic, partition), numbers in offsets.items()
        for interval in runs_of(numbers)
    ]
