"""sequence: are the numbers of each source all there, once, and in order.

One pass folds the records to masks (`numbered`). Only buckets with repeated numbers, or whose
order the masks do not prove, are looked up by further passes.

A range that begins behind other records, or ends before them, hides numbers: those that are missing
there are not known to be lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    Place,
    Severity,
    count_of,
    hidden,
    most_severe,
    undecided,
)
from pyconnect_reconcile.intervals import Interval, holes_within
from pyconnect_reconcile.lookup import AT, places
from pyconnect_reconcile.spec import PROVENANCE
from pyconnect_reconcile.topics.range_findings import (
    empty_ranges,
    open_tails,
    refuse_compacted,
    removed_beginnings,
    unknown_policies,
)
from pyconnect_reconcile.topics.snapshot import PartitionRange
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
# So many offsets of so many partitions show how the sources' records lie between each other.
SAMPLE_OFFSETS, SAMPLE_PARTITIONS = 5_000, 4
SAMPLE_VALUES = 10
# A join of so many rows is done without an exchange of the other side.
FEW = 100_000
NOT_COMPARED = ("numbers below the lowest and above the highest one of each source",)
FROM_ONE_NOT_COMPARED = ("numbers above the highest one of each source",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """Lazy rows of the topics: each use of them reads again."""

    records: DataFrame
    numbers: DataFrame
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """Per group the numbers `low` and `high`, outside of which a missing one is not known lost.

    Partitions of which nothing was read may have had any number of any group, but no more of them
    than `hidden`, their offsets outside of the range.
    """

    bounds: DataFrame | None = None
    hidden: int = 0

    def split(self, found: Sequence[tuple[str, Interval]]) -> Iterator[tuple[str, Interval, bool]]:
        """Yield the intervals with whether they are lost, cut at the bounds."""
        limits = {}
        if self.bounds is not None and found:
            names = sorted({group for group, _ in found})
            rows = self.bounds.where(sql.col("group").isin(names)).collect()
            limits = {row.group: (row.low, row.high) for row in rows}
        for group, (first, last) in found:
            low, high = limits.get(group, (None, None))
            if self.hidden or (low is not None and high is not None and low >= high):
                yield group, Interval(first, last), False
                continue
            begin = first if low is None else min(max(first, low), last + 1)
            end = last if high is None else max(min(last, high), begin - 1)
            for part, lost in (
                (Interval(first, begin - 1), False),
                (Interval(begin, end), True),
                (Interval(end + 1, last), False),
            ):
                if part.length > 0:
                    yield group, part, lost


def check(bench: Bench) -> CheckOutcome:
    """Look for missing, repeated and disordered numbers."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    refuse_compacted(snapshot, "sequence")
    several_chunks = any(
        part.start >> numbered.SORTED_BITS != part.end >> numbered.SORTED_BITS
        for part in snapshot.partitions
    )
    interleaved = spec.ordered and spec.group is not None and _interleaved(bench)
    bench.events.step("folding the sequence numbers")
    first = _read(bench, snapshot.partitions, exact=False).numbers.limit(SAMPLE_VALUES)
    of_json = any(str(each).startswith("json:") for each in (spec.sequence, spec.group))
    quick = of_json and first.where("sequence IS NULL").isEmpty()

    def folded_once(*, exact: bool) -> tuple[_Pass, DataFrame]:
        read = _read(bench, snapshot.partitions, exact=exact)
        if interleaved:
            masks = numbered.sorted_masks(read.numbers, several_chunks=several_chunks)
        else:
            masks = numbered.masks(read.numbers)
        return read, masks.persist()

    read, folded = folded_once(exact=not quick)
    if quick and not folded.where("bucket IS NULL").isEmpty():
        # Values that are no plain objects are read again, by parsers that lose nothing.
        folded.unpersist()
        read, folded = folded_once(exact=True)
    try:
        at_once = interleaved and not several_chunks
        outcome = _judged(bench, read, folded, sorted_at_once=at_once)
    finally:
        folded.unpersist()
    findings = (
        *empty_ranges(snapshot),
        *open_tails(snapshot),
        *removed_beginnings(snapshot, Severity.UNKNOWN, _consequence(outcome)),
        *unknown_policies(snapshot),
        *outcome.findings,
    )
    counts = {"offsets": snapshot.length, **outcome.counts}
    outcome = replace(outcome, findings=findings, counts=counts)
    hides = spec.hide_keys and spec.group is not None and spec.group.startswith("key")
    return _with_hidden_groups(outcome) if hides else outcome


def _judged(bench: Bench, read: _Pass, folded: DataFrame, *, sorted_at_once: bool) -> CheckOutcome:
    """Answer from the masks; look up the records that they name."""
    spec = bench.spec
    known = folded.where("bucket IS NOT NULL")
    buckets = numbered.over_partitions(known)
    from_one = spec.sequence == PROVENANCE
    bounded = _known(bench, known, bench.snapshot(spec.topics).partitions)
    every = numbered.over_partitions(folded)
    groups = numbered.groups(every, bounded.bounds, from_one=from_one).persist()
    try:
        total = groups.selectExpr(*TOTALS).collect()[0]
        shown = groups.where("copies IS NOT NULL")
        series = shown.orderBy(sql.desc("missing"), "group").limit(spec.findings).collect()
        missing = int(total.missing)
        found = _gaps(bounded, buckets, groups, spec.findings) if missing else []
    finally:
        groups.unpersist()
    perhaps = min(missing, int(total.perhaps) + bounded.hidden)
    split = [_missing(*each) for each in bounded.split(found)]
    if bounded.hidden and missing > perhaps:
        split.append(_beyond_hidden(missing - perhaps, bounded.hidden))
    gaps = most_severe(split, spec.findings)
    copies: list[Finding] = []
    if total.rows > total.distinct:
        bench.events.step("looking up repeated numbers")
        copies = list(_copies(read, numbered.repeated(buckets)))
    proven = not spec.ordered or (sorted_at_once and not total.doubtful)
    late, disorder = (0, []) if proven else _disorder(bench, read, known)
    strange = unparsable_finding(
        read.records,
        sql.col("sequence").isNull(),
        count=total.wrong,
        rows=total.rows + total.wrong,
        what="sequence number at the given place",
        fatal=spec.fail_unparsable,
    )
    totals = {
        "missing": missing - perhaps,
        "perhaps-missing": perhaps,
        "repeated": total.rows - total.distinct,
        "disordered": late,
        "unparsable": total.wrong,
    }
    return CheckOutcome(
        findings=(*undecided(strange), *gaps, *copies, *disorder),
        totals=totals,
        counts={"rows": total.rows + total.wrong, "groups": total.groups, **totals},
        series={"groups": [_group_json(row) for row in series]},
        not_compared=FROM_ONE_NOT_COMPARED if from_one else NOT_COMPARED,
    )


TOTALS = (
    "count(copies) AS groups",
    "coalesce(sum(copies), 0) AS rows",
    "coalesce(sum(distinct), 0) AS distinct",
    # Sums of differences may exceed 64 bits.
    "coalesce(sum(CAST(missing AS DECIMAL(38, 0))), 0) AS missing",
    "coalesce(sum(CAST(perhaps AS DECIMAL(38, 0))), 0) AS perhaps",
    "coalesce(sum(wrong), 0) AS wrong",
    "coalesce(bool_or(doubtful), false) AS doubtful",
)


def _interleaved(bench: Bench) -> bool:
    """Return whether a sample shows records of several sources between each other."""
    parts = [
        replace(part, end=min(part.end, part.start + SAMPLE_OFFSETS))
        for part in bench.snapshot(bench.spec.topics).partitions
        if part.length
    ]
    sample = numbered.masks(_read(bench, parts[:SAMPLE_PARTITIONS], exact=True).numbers)
    [row] = (
        sample.where("bucket IS NOT NULL")
        .selectExpr("count_if(doubtful) * 10 > count(*) AS interleaved")
        .collect()
    )
    return bool(row.interleaved)


def _read(bench: Bench, parts: Iterable[PartitionRange], *, exact: bool) -> _Pass:
    spec = bench.spec
    assert spec.sequence is not None
    provenance = spec.sequence == PROVENANCE
    records = bench.records(
        parts,
        isolation=spec.isolation,
        headers=provenance or needs_headers(spec.sequence, spec.group),
    )
    if provenance:
        records = records.withColumn("group", _provenance_group())
        records = with_texts(records, {"number": f"header:{SEQUENCE_HEADER}"}, whole=("number",))
    elif spec.group is None:
        # One group when there is no source id.
        records = records.withColumn("group", sql.lit(""))
        records = with_texts(records, {"number": spec.sequence}, whole=("number",), exact=exact)
    else:
        texts = {"number": spec.sequence, "group": spec.group}
        records = with_texts(records, texts, whole=("number",), exact=exact)
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


def _known(bench: Bench, known: DataFrame, parts: Sequence[PartitionRange]) -> _Known:
    """Return which numbers the range may have left out."""
    late = [(part.topic, part.partition) for part in parts if part.begins_late]
    early = [(part.topic, part.partition) for part in parts if part.ends_early]
    if not late and not early:
        return _Known()
    there = {
        (row.topic, row.partition)
        for row in known.select("topic", "partition").distinct().collect()
    }
    cut = [bench.spark.createDataFrame(at, "topic string, partition int") for at in (late, early)]
    bounds = numbered.known_between(known, *cut)
    hollow = (part for part in parts if (part.topic, part.partition) not in there)
    hidden = sum(part.start + max(part.high_watermark - part.end, 0) for part in hollow)
    return _Known(bounds=bounds, hidden=hidden)


def _gaps(
    known: _Known, buckets: DataFrame, groups: DataFrame, limit: int
) -> list[tuple[str, Interval]]:
    """Return the first intervals of missing numbers; those that are lost are not crowded out."""
    wide = numbered.gaps_between(buckets).unionByName(numbered.beginnings(groups))
    holed = numbered.holed(buckets)
    found = set(_first_gaps(wide, holed, limit))
    if known.bounds is not None and not known.hidden:
        found.update(
            _first_gaps(
                _within(wide, known.bounds, "first", "last"),
                _within(holed, known.bounds, "lowest", "highest"),
                limit,
            )
        )
    return sorted(found)


def _within(rows: DataFrame, bounds: DataFrame, first: str, last: str) -> DataFrame:
    """Return the rows from `first` to `last` that reach between the bounds of their group."""
    return rows.join(bounds, "group", "left").where(
        f"(low IS NULL OR {last} > low) AND (high IS NULL OR {first} < high)"
        " AND coalesce(low < high, true)"
    )


def _first_gaps(wide: DataFrame, holed: DataFrame, limit: int) -> list[tuple[str, Interval]]:
    between = wide.orderBy("group", "first").limit(limit).collect()
    within = holed.orderBy("group", "bucket").limit(limit).collect()
    found = [(row.group, Interval(row.first, row.last)) for row in between]
    for row in within:
        holes = holes_within(row.bucket, row.mask, row.lowest, row.highest)
        found += [(row.group, hole) for hole in holes]
    return found


def _missing(group: str, interval: Interval, lost: bool) -> Finding:
    one = interval.length == 1
    numbers = f"number {interval.first}" if one else f"numbers {interval.first} to {interval.last}"
    verb = "is" if one else "are"
    said = f"{verb} missing"
    if not lost:
        said = f"{verb} not in the range, but may be among the records outside of it"
    return Finding(
        kind="missing" if lost else "perhaps-missing",
        severity=Severity.ERROR if lost else Severity.UNKNOWN,
        message=f"{numbers}{_of(group)} {said}",
        group=group or None,
        of="sequence",
        first=interval.first,
        last=interval.last,
        count=interval.length,
    )


def _beyond_hidden(count: int, hidden: int) -> Finding:
    return Finding(
        kind="missing",
        severity=Severity.ERROR,
        message=f"{count_of(count, 'number more is')} missing than the"
        f" {count_of(hidden, 'offset')} outside of the range can hold",
        of="sequence",
        count=count,
    )


def _consequence(outcome: CheckOutcome) -> str:
    """Say which numbers cannot be known without the beginning of a partition."""
    groups = outcome.series["groups"]
    assert isinstance(groups, list)
    below = f"{groups[0]['lowest']:,}" if len(groups) == 1 else "its lowest one"
    return f"whether the numbers of a source below {below} were all there cannot be known"


def _of(group: str) -> str:
    return f" of source {group}" if group else ""


def _copies(read: _Pass, repeated: DataFrame) -> Iterator[Finding]:
    # Each bucket has a repeated number at least.
    first = repeated.orderBy("group", "bucket").limit(read.limit)
    suspects = sql.broadcast(first.select("group", "bucket"))
    numbers = (
        read.numbers.withColumn("bucket", sql.expr("shiftright(sequence, 6)"))
        .join(suspects, ["group", "bucket"], "left_semi")
        .groupBy("group", "sequence")
        .count()
        .where("count > 1")
        .orderBy("group", "sequence")
        .limit(read.limit)
        .persist()
    )
    counts = {(row.group, row.sequence): row["count"] for row in numbers.collect()}
    found = places(read.records, numbers, ("group", "sequence"))
    numbers.unpersist()
    for (group, number), count in counts.items():
        yield Finding(
            kind="repeated",
            severity=Severity.ERROR,
            message=f"number {number}{_of(group)} occurs {count_of(count, 'time')}",
            group=group or None,
            of="sequence",
            first=number,
            last=number,
            count=count,
            copies=tuple(found.get((group, number), [])),
        )


def _disorder(bench: Bench, read: _Pass, known: DataFrame) -> tuple[int, list[Finding]]:
    """Return how many records are late, and findings up to the limit."""
    suspects = numbered.unproven(known).persist()
    try:
        count = suspects.count()
        if count == 0:
            return 0, []
        bench.events.step("checking the order where it is not proven yet")
        looked_at = sql.broadcast(suspects) if count <= FEW else suspects
        late = numbered.disordered(read.numbers, looked_at).persist()
        total = late.count()
        rows = late.orderBy("topic", "partition", "offset").limit(read.limit).collect()
        late.unpersist()
    finally:
        suspects.unpersist()
    if not rows:
        return 0, []
    at = bench.spark.createDataFrame(
        [(row.topic, row.partition, row.offset) for row in rows],
        "topic string, partition int, offset bigint",
    )
    # These columns need no value of a record to be parsed.
    found = places(read.records.select(*AT, "timestamp_ms", "key"), at, AT)
    return total, [_late(row, found[row.topic, row.partition, row.offset]) for row in rows]


def _late(row: Row, copies: Sequence[Place]) -> Finding:
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
        copies=tuple(copies),
    )


def _group_json(row: Row) -> dict[str, object]:
    return {
        "group": row.group,
        "lowest": row.begin,
        "highest": row.highest,
        "rows": row.copies,
        "distinct": row.distinct,
        "missing": row.missing,
    }


def _with_hidden_groups(outcome: CheckOutcome) -> CheckOutcome:
    """Return the outcome with hashes of the sources, which are keys of records."""

    def hide(finding: Finding) -> Finding:
        if finding.group is None:
            return finding
        name = hidden(finding.group)
        message = finding.message.replace(_of(finding.group), _of(name), 1)
        return replace(finding, group=name, message=message)

    groups = outcome.series["groups"]
    assert isinstance(groups, list)
    return replace(
        outcome,
        findings=tuple(map(hide, outcome.findings)),
        series={"groups": [{**each, "group": hidden(each["group"])} for each in groups]},
    )
