"""sequence: are the numbers of each source all there, once, and in order.

One pass folds the records to masks (`numbered`). Only buckets with repeated numbers, or whose
order the masks do not prove, are looked up by further passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.findings import CheckOutcome, Finding, Place, Severity
from pyconnect_reconcile.intervals import Interval, holes_within
from pyconnect_reconcile.lookup import places
from pyconnect_reconcile.spec import PROVENANCE
from pyconnect_reconcile.topics.range_findings import (
    empty_ranges,
    open_tails,
    refuse_compacted,
    unknown_policies,
)
from pyconnect_reconcile.unparsable import unparsable_finding
from pyconnect_reconcile.values.extract import (
    EPOCH_HEADER,
    PARTITION_HEADER,
    SEQUENCE_HEADER,
    needs_headers,
    text_of,
    with_texts,
)

# Of larger numbers the difference, or that to an offset, does not fit into 64 bits.
MOST = 2**62 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """Lazy rows of the topics: each use of them reads again."""

    records: DataFrame
    numbers: DataFrame
    limit: int


def check(bench: Bench) -> CheckOutcome:
    """Look for missing, repeated and disordered numbers."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    refuse_compacted(snapshot, "sequence")
    read = _read(bench)
    bench.events.step("folding the sequence numbers")
    folded = numbered.masks(read.numbers).persist()
    known = folded.where("bucket IS NOT NULL")
    buckets = numbered.over_partitions(known)
    try:
        every = numbered.groups(numbered.over_partitions(folded)).orderBy("group").collect()
        wrong = sum(row.wrong for row in every)
        groups = [row for row in every if row.copies]
        gaps = _gaps(buckets, spec.findings) if any(row.missing for row in groups) else []
        copies: list[Finding] = []
        if any(row.copies > row.distinct for row in groups):
            bench.events.step("looking up repeated numbers")
            copies = list(_copies(read, numbered.repeated(buckets)))
        disorder = _disorder(bench, read, known) if spec.ordered else []
    finally:
        folded.unpersist()
    rows = sum(row.copies for row in groups) + wrong
    strange = unparsable_finding(
        read.records,
        sql.col("sequence").isNull(),
        count=wrong,
        rows=rows,
        what="sequence number at the given place",
        fatal=spec.fail_unparsable,
    )
    totals = {
        "missing": sum(row.missing for row in groups),
        "repeated": sum(row.copies - row.distinct for row in groups),
        "disordered": len(disorder),
        "unparsable": wrong,
    }
    return CheckOutcome(
        findings=(
            *empty_ranges(snapshot),
            *open_tails(snapshot),
            *unknown_policies(snapshot),
            *strange,
            *gaps,
            *copies,
            *disorder,
        ),
        totals=totals,
        counts={"offsets": snapshot.length, "rows": rows, "groups": len(groups), **totals},
        series={"groups": [_group_json(row) for row in groups[: spec.findings]]},
    )


def _read(bench: Bench) -> _Pass:
    spec = bench.spec
    assert spec.sequence is not None
    provenance = spec.sequence == PROVENANCE
    records = bench.records(
        bench.snapshot(spec.topics).partitions,
        isolation=spec.isolation,
        headers=provenance or needs_headers(spec.sequence, spec.group),
    )
    if provenance:
        records = records.withColumn("group", _provenance_group())
        records = with_texts(records, {"number": f"header:{SEQUENCE_HEADER}"}, whole=("number",))
    elif spec.group is None:
        # One group when there is no source id.
        records = records.withColumn("group", sql.lit(""))
        records = with_texts(records, {"number": spec.sequence}, whole=("number",))
    else:
        texts = {"number": spec.sequence, "group": spec.group}
        records = with_texts(records, texts, whole=("number",))
    # A record without a source belongs to no sequence.
    usable = sql.col("group").isNotNull() & sql.col("number").between(-MOST, MOST)
    number = sql.when(usable, sql.col("number"))
    records = records.withColumn("sequence", number)
    return _Pass(
        records=records,
        numbers=records.select("group", "topic", "partition", "offset", "sequence"),
        limit=spec.findings,
    )


def _provenance_group() -> Column:
    """A source partition within one start of its task; null when either header is missing."""
    partition, epoch = (text_of(f"header:{name}") for name in (PARTITION_HEADER, EPOCH_HEADER))
    return sql.concat(partition, sql.lit("/"), epoch)


def _gaps(buckets: DataFrame, limit: int) -> list[Finding]:
    between = numbered.gaps_between(buckets).orderBy("group", "first").limit(limit).collect()
    holed = numbered.holed(buckets).orderBy("group", "bucket").limit(limit).collect()
    found = [(row.group, Interval(row.first, row.last)) for row in between]
    for row in holed:
        holes = holes_within(row.bucket, row.mask, row.lowest, row.highest)
        found += [(row.group, hole) for hole in holes]
    return [_missing(group, interval) for group, interval in sorted(found)[:limit]]


def _missing(group: str, interval: Interval) -> Finding:
    one = interval.length == 1
    numbers = f"number {interval.first}" if one else f"numbers {interval.first} to {interval.last}"
    return Finding(
        kind="missing",
        severity=Severity.ERROR,
        message=f"{numbers}{_of(group)} {'is' if one else 'are'} missing",
        group=group or None,
        of="sequence",
        first=interval.first,
        last=interval.last,
        count=interval.length,
    )


def _of(group: str) -> str:
    return f" of source {group}" if group else ""


def _copies(read: _Pass, repeated: DataFrame) -> Iterator[Finding]:
    suspects = sql.broadcast(repeated.select("group", "bucket"))
    numbers = (
        read.numbers.withColumn("bucket", sql.expr("sequence >> 6"))
        .join(suspects, ["group", "bucket"], "left_semi")
        .groupBy("group", "sequence")
        .count()
        .where("count > 1")
        .orderBy("group", "sequence")
        .limit(read.limit)
        .persist()
    )
    counts = {(row.group, row.sequence): row["count"] for row in numbers.collect()}
    found = places(read.records, numbers, ("group", "sequence"), limit=read.limit)
    numbers.unpersist()
    for (group, number), count in counts.items():
        yield Finding(
            kind="repeated",
            severity=Severity.ERROR,
            message=f"number {number}{_of(group)} occurs {count} times",
            group=group or None,
            of="sequence",
            first=number,
            last=number,
            count=count,
            copies=tuple(found.get((group, number), [])),
        )


def _disorder(bench: Bench, read: _Pass, known: DataFrame) -> list[Finding]:
    suspects = numbered.unproven(known).persist()
    try:
        if suspects.isEmpty():
            return []
        bench.events.step("checking the order where it is not proven yet")
        rows = (
            numbered.disordered(read.numbers, suspects)
            .orderBy("topic", "partition", "offset")
            .limit(read.limit)
            .collect()
        )
    finally:
        suspects.unpersist()
    return [_late(row) for row in rows]


def _late(row: Row) -> Finding:
    return Finding(
        kind="disorder",
        severity=Severity.ERROR,
        message=f"number {row.sequence}{_of(row.group)} comes after a higher one",
        topic=row.topic,
        partition=row.partition,
        group=row.group or None,
        of="sequence",
        first=row.sequence,
        last=row.sequence,
        copies=(Place(topic=row.topic, partition=row.partition, offset=row.offset),),
    )


def _group_json(row: Row) -> dict[str, object]:
    return {
        "group": row.group,
        "lowest": row.lowest,
        "highest": row.highest,
        "rows": row.copies,
        "distinct": row.distinct,
        "missing": row.missing,
    }
