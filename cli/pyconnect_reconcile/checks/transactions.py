"""transactions: what of each partition's offsets are records, aborted records and markers.

On a range [a, b) of an uncompacted topic, (b - a) - rows(read_uncommitted) = markers, and
rows(read_uncommitted) - rows(read_committed) = aborted records. A gap in the offsets is therefore
no lost record: markers take offsets, and committed reads leave out aborted ones.
"""

from __future__ import annotations

from collections import Counter

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.findings import CheckOutcome, Finding, PartitionCounts, Severity
from pyconnect_reconcile.intervals import Interval, joined, numbers_of, runs_of
from pyconnect_reconcile.topics.range_findings import (
    empty_ranges,
    open_tails,
    removed_beginnings,
    unknown_policies,
)
from pyconnect_reconcile.topics.reading import COMMITTED, UNCOMMITTED
from pyconnect_reconcile.topics.snapshot import PartitionRange

Key = tuple[str, int]


def check(bench: Bench) -> CheckOutcome:
    """Count both isolation levels and name the aborted offsets."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    bench.events.step("counting uncommitted records")
    uncommitted = _masks(bench, snapshot.partitions, UNCOMMITTED)
    bench.events.step("counting committed records")
    committed = _masks(bench, snapshot.partitions, COMMITTED)
    both = uncommitted.withColumnRenamed("mask", "all").join(
        committed.withColumnRenamed("mask", "visible"), ["topic", "partition", "bucket"], "left"
    )
    both = both.withColumn("visible", sql.coalesce("visible", sql.lit(0))).persist()
    try:
        rows = both.groupBy("topic", "partition").agg(
            sql.sum(sql.bit_count("all")).alias("uncommitted"),
            sql.sum(sql.bit_count("visible")).alias("committed"),
        )
        counted = {(row.topic, row.partition): row for row in rows.collect()}
        aborted = _aborted(both, spec.findings)
    finally:
        both.unpersist()
    counts = tuple(
        _counts(part, counted.get((part.topic, part.partition))) for part in snapshot.partitions
    )
    findings = [
        *empty_ranges(snapshot),
        *open_tails(snapshot),
        *removed_beginnings(snapshot, Severity.NOTE, "their transactions are not counted"),
    ]
    gaps = Counter[str]()
    for each in counts:
        gaps[each.topic] += each.markers or 0
    # Without a gap in the offsets nothing has been removed.
    gapped = snapshot.of_topics([topic for topic, count in gaps.items() if count])
    findings += unknown_policies(gapped)
    findings += [_compaction(topic.topic) for topic in gapped.topics if topic.compacted]
    for key, intervals in aborted.items():
        findings += [_finding(key, interval) for interval in intervals]
    totals = {"aborted": sum(each.aborted or 0 for each in counts)}
    return CheckOutcome(
        findings=tuple(findings),
        totals=totals,
        counts={
            "offsets": snapshot.length,
            "rows_uncommitted": sum(each.rows_uncommitted or 0 for each in counts),
            "rows_committed": sum(each.rows_committed or 0 for each in counts),
            "markers": sum(each.markers or 0 for each in counts),
            **totals,
        },
        partitions=counts,
    )


def _masks(bench: Bench, ranges: tuple[PartitionRange, ...], isolation: str) -> DataFrame:
    """Fold offsets to masks of 64: topic, partition, bucket, mask."""
    records = bench.records(ranges, isolation=isolation)
    return records.groupBy("topic", "partition", sql.expr("shiftright(offset, 6) AS bucket")).agg(
        sql.expr("bit_or(shiftleft(1L, CAST(offset & 63 AS INT))) AS mask")
    )


def _aborted(both: DataFrame, limit: int) -> dict[Key, list[Interval]]:
    missing = sql.col("all").bitwiseAND(sql.bitwise_not("visible"))
    rows = (
        both.withColumn("aborted", missing)
        .where("aborted <> 0")
        .orderBy("topic", "partition", "bucket")
        .limit(limit)
        .select("topic", "partition", "bucket", "aborted")
    )
    found: dict[Key, list[Interval]] = {}
    for row in rows.collect():
        runs = runs_of(numbers_of(row.bucket, row.aborted))
        found.setdefault((row.topic, row.partition), []).extend(runs)
    return {key: joined(intervals) for key, intervals in found.items()}


def _counts(part: PartitionRange, row: Row | None) -> PartitionCounts:
    uncommitted, committed = (row.uncommitted, row.committed) if row else (0, 0)
    return PartitionCounts(
        topic=part.topic,
        partition=part.partition,
        rows_uncommitted=uncommitted,
        rows_committed=committed,
        markers=part.length - uncommitted,
        aborted=uncommitted - committed,
    )


def _finding(key: Key, interval: Interval) -> Finding:
    return Finding(
        kind="aborted",
        severity=Severity.NOTE,
        message="records of aborted transactions: consumers of committed records never see them",
        topic=key[0],
        partition=key[1],
        of="offsets",
        first=interval.first,
        last=interval.last,
        count=interval.length,
    )


def _compaction(topic: str) -> Finding:
    return Finding(
        kind="compacted",
        severity=Severity.UNKNOWN,
        message="the topic is compacted: its transaction markers cannot be distinguished"
        " from removed records",
        topic=topic,
    )
