"""sequence: whether the numbers of each source are all there, once, and in order.

One pass folds the records to masks (`numbered`). Further passes look up only the buckets that have
repeated numbers, or whose order the masks do not prove.

A range that begins behind other records, or ends before them, hides numbers: a number that is
missing there may not be lost.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.places import AT, places, unparsable_finding
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    Interval,
    Severity,
    count_of,
    error,
    hidden,
    holes_within,
    most_severe,
    undecided,
)
from pyconnect_reconcile.spec import PROVENANCE
from pyconnect_reconcile.topics.range_findings import empty_ranges, of_ranges, refuse_compacted
from pyconnect_reconcile.topics.snapshot import PartitionRange
from pyconnect_reconcile.values.extract import (
    EPOCH_HEADER,
    PARTITION_HEADER,
    SEQUENCE_HEADER,
    needs_headers,
    text_of,
    with_texts,
)

# The difference of larger numbers, or that to an offset, does not fit into 64 bits.
MOST = 2**62 - 1
# This sample shows whether the records of several sources alternate in a partition.
SAMPLE_OFFSETS, SAMPLE_PARTITIONS = 5_000, 4
SAMPLE_VALUES = 10
# Up to this many rows a join is a broadcast, and records are sorted at once.
FEW = 100_000
NOT_COMPARED = ("numbers below the lowest and above the highest one of each source",)
FROM_ONE_NOT_COMPARED = ("numbers above the highest one of each source",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """Lazy rows of the topics; each use reads the topics again."""

    records: DataFrame
    numbers: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folded:
    """The masks of a pass; `at_once`: each range was sorted as a whole, so `doubtful` is exact.

    `bounds` has per group the numbers `low` and `high`; a missing number outside of them may not be
    lost. Partitions without a readable number may have had any number of any group, but at most
    `hidden` of them, which is the count of their offsets outside of the range.
    """

    read: _Pass
    masks: DataFrame
    at_once: bool
    bounds: DataFrame | None = None
    hidden: int = 0


def check(bench: Bench) -> CheckOutcome:
    """Look for missing, repeated and disordered numbers."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    refuse_compacted(snapshot, "sequence")
    # Sorting or reading few records again costs less than sampling them.
    few = snapshot.length <= FEW
    sort = spec.ordered and (few or (spec.group is not None and _interleaved(bench)))
    bench.events.step("folding the sequence numbers")
    quick = any(str(each).startswith("json:") for each in (spec.sequence, spec.group))
    if quick and not few:
        first = _read(bench, snapshot.partitions, exact=False).numbers.limit(SAMPLE_VALUES)
        quick = first.where("sequence IS NULL").isEmpty()
    folded = _folded(bench, snapshot.partitions, sort=sort, quick=quick)
    try:
        outcome = _judged(bench, folded)
    finally:
        folded.masks.unpersist()
    groups = outcome.series["groups"]
    assert isinstance(groups, list)
    below = f"{groups[0]['lowest']:,}" if len(groups) == 1 else "its lowest one"
    unknown = f"whether the numbers of a source below {below} were all there cannot be known"
    outcome = replace(
        outcome,
        findings=(
            *empty_ranges(snapshot),
            *of_ranges(snapshot, Severity.UNKNOWN, unknown),
            *outcome.findings,
        ),
        counts={"offsets": snapshot.length, **outcome.counts},
    )
    if not spec.hide_keys or spec.group is None or not spec.group.startswith("key"):
        return outcome

    def hide(finding: Finding) -> Finding:
        if finding.group is None:
            return finding
        name = hidden(finding.group)
        message = finding.message.replace(_of(finding.group), _of(name), 1)
        return replace(finding, group=name, message=message)

    return replace(
        outcome,
        findings=tuple(map(hide, outcome.findings)),
        series={"groups": [{**each, "group": hidden(each["group"])} for each in groups]},
    )


def _interleaved(bench: Bench) -> bool:
    """Return whether the records of several sources alternate in a sample."""
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


def _folded(bench: Bench, parts: Sequence[PartitionRange], *, sort: bool, quick: bool) -> _Folded:
    """Read the ranges and fold their numbers; the caller unpersists the masks.

    If the quick parser fails on a value, the ranges are read again by parsers that lose nothing.
    """
    several = any(
        part.start >> numbered.SORTED_BITS != part.end >> numbered.SORTED_BITS for part in parts
    )
    read = _read(bench, parts, exact=not quick)
    if sort:
        masks = numbered.sorted_masks(read.numbers, several_chunks=several)
    else:
        masks = numbered.masks(read.numbers)
    folded = _Folded(read=read, masks=masks.persist(), at_once=sort and not several)
    cut = [
        (part.topic, part.partition, part.begins_late, part.ends_early)
        for part in parts
        if part.begins_late or part.ends_early
    ]
    if not quick and not cut:
        return folded
    there = folded.masks.groupBy("topic", "partition").agg(
        sql.expr("count(bucket) AS known"), sql.expr("bool_or(bucket IS NULL) AS strange")
    )
    rows = there.collect()
    if quick and any(row.strange for row in rows):
        folded.masks.unpersist()
        return _folded(bench, parts, sort=sort, quick=False)
    if not cut:
        return folded
    known = {(row.topic, row.partition) for row in rows if row.known}
    hollow = (part for part in parts if (part.topic, part.partition) not in known)
    schema = "topic string, partition int, late boolean, early boolean"
    at = bench.spark.createDataFrame(cut, schema)
    return replace(
        folded,
        bounds=numbered.known_between(folded.masks.where("bucket IS NOT NULL"), at),
        hidden=sum(part.start + max(part.high_watermark - part.end, 0) for part in hollow),
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


def _judged(bench: Bench, folded: _Folded) -> CheckOutcome:
    """Judge the masks; look up the records that they name."""
    spec = bench.spec
    from_one = spec.sequence == PROVENANCE
    every = numbered.over_partitions(folded.masks).persist()
    buckets = every.where("bucket IS NOT NULL")
    groups = numbered.groups(every, folded.bounds, from_one=from_one).persist()
    counted = Observation()
    try:
        shown = groups.observe(counted, *map(sql.expr, TOTALS)).where("copies IS NOT NULL")
        series = shown.orderBy(sql.desc("missing"), "group").limit(spec.findings).collect()
        total = counted.get
        missing, rows = int(total["missing"]), total["rows"] + total["wrong"]
        split = list(_gaps(folded, buckets, groups, spec.findings)) if missing else []
        copies: list[Finding] = []
        if total["rows"] > total["distinct"]:
            bench.events.step("looking up repeated numbers")
            copies = list(_copies(folded.read, numbered.repeated(buckets), spec.findings))
    finally:
        groups.unpersist()
        every.unpersist()
    perhaps = min(missing, int(total["perhaps"]) + folded.hidden)
    if folded.hidden and missing > perhaps:
        said = count_of(missing - perhaps, "number more is")
        split.append(
            error(
                kind="missing",
                message=f"{said} missing than the {count_of(folded.hidden, 'offset')} outside of"
                " the range can hold",
                of="sequence",
                count=missing - perhaps,
            )
        )
    proven = not spec.ordered or (folded.at_once and not total["doubtful"])
    late, disorder = (0, []) if proven else _disorder(bench, folded)
    strange = unparsable_finding(
        folded.read.records,
        sql.col("sequence").isNull(),
        count=total["wrong"],
        rows=rows,
        what="sequence number at the given place",
        fatal=spec.fail_unparsable,
    )
    totals = {
        "missing": missing - perhaps,
        "perhaps-missing": perhaps,
        "repeated": total["rows"] - total["distinct"],
        "disordered": late,
        "unparsable": total["wrong"],
    }
    names = {"group": "group", "lowest": "begin", "highest": "highest", "rows": "copies"}
    names |= {"distinct": "distinct", "missing": "missing"}
    return CheckOutcome(
        findings=(*undecided(strange), *most_severe(split, spec.findings), *copies, *disorder),
        totals=totals,
        counts={"rows": rows, "groups": total["groups"], **totals},
        series={"groups": [{to: row[of] for to, of in names.items()} for row in series]},
        not_compared=FROM_ONE_NOT_COMPARED if from_one else NOT_COMPARED,
    )


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
        # A source partition within one start of its task; null when either header is missing.
        names = (PARTITION_HEADER, EPOCH_HEADER)
        partition, epoch = (text_of(f"header:{name}") for name in names)
        records = records.withColumn("group", sql.concat(partition, sql.lit("/"), epoch))
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
        records=records, numbers=records.select("group", "topic", "partition", "offset", "sequence")
    )


def _gaps(folded: _Folded, buckets: DataFrame, groups: DataFrame, limit: int) -> Iterator[Finding]:
    """Yield intervals of missing numbers; the limit prefers those of lost numbers.

    An interval is cut at the bounds of its group.
    """
    wide = numbered.gaps_between(buckets).unionByName(numbered.beginnings(groups))
    within = numbered.holed(buckets).selectExpr(
        "`group`", "lowest AS first", "highest AS last", "bucket", "mask"
    )
    found = wide.unionByName(within, allowMissingColumns=True)
    order = ["group", "first"]
    if folded.bounds is not None and not folded.hidden:
        inside = "(low IS NULL OR last > low) AND (high IS NULL OR first < high)"
        found = found.join(groups.select("group", "low", "high"), "group").withColumn(
            "outside", sql.expr(f"NOT ({inside} AND coalesce(low < high, true))")
        )
        order, limit = ["outside", *order], 2 * limit
    else:
        found = found.selectExpr("*", "CAST(NULL AS BIGINT) AS low", "CAST(NULL AS BIGINT) AS high")
    for row in sorted(found.orderBy(*order).limit(limit).collect(), key=lambda each: each[:2]):
        whole = [Interval(row.first, row.last)]
        if row.mask is not None:
            whole = holes_within(row.bucket, row.mask)
        low, high = row.low, row.high
        for first, last in whole:
            begin = first if low is None else min(max(first, low), last + 1)
            end = last if high is None else max(min(last, high), begin - 1)
            if folded.hidden or (low is not None and high is not None and low >= high):
                begin, end = last + 1, last
            for part, lost in (
                (Interval(first, begin - 1), False),
                (Interval(begin, end), True),
                (Interval(end + 1, last), False),
            ):
                if part.length == 0:
                    continue
                numbers, said = f"numbers {part.first} to {part.last}", "are"
                if part.length == 1:
                    numbers, said = f"number {part.first}", "is"
                if lost:
                    said = f"{said} missing"
                else:
                    said = f"{said} not in the range, but may be among the records outside of it"
                yield Finding(
                    kind="missing" if lost else "perhaps-missing",
                    severity=Severity.ERROR if lost else Severity.UNKNOWN,
                    message=f"{numbers}{_of(row.group)} {said}",
                    group=row.group or None,
                    of="sequence",
                    first=part.first,
                    last=part.last,
                    count=part.length,
                )


def _of(group: str) -> str:
    return f" of source {group}" if group else ""


def _copies(read: _Pass, repeated: DataFrame, limit: int) -> Iterator[Finding]:
    # Each of these buckets has at least one repeated number.
    first = repeated.orderBy("group", "bucket").limit(limit)
    suspects = sql.broadcast(first.select("group", "bucket"))
    rows = (
        read.numbers.withColumn("bucket", sql.expr("shiftright(sequence, 6)"))
        .join(suspects, ["group", "bucket"], "left_semi")
        .groupBy("group", "sequence")
        .count()
        .where("count > 1")
        .orderBy("group", "sequence")
        .limit(limit)
        .collect()
    )
    found = places(read.records, [row[:2] for row in rows], ("group", "sequence"))
    for group, number, count in rows:
        yield error(
            kind="repeated",
            message=f"number {number}{_of(group)} occurs {count_of(count, 'time')}",
            group=group or None,
            of="sequence",
            first=number,
            last=number,
            count=count,
            copies=tuple(found.get((group, number), [])),
        )


def _disorder(bench: Bench, folded: _Folded) -> tuple[int, list[Finding]]:
    """Return how many records are late, and findings up to the limit."""
    suspects = numbered.unproven(folded.masks.where("bucket IS NOT NULL")).persist()
    counted = Observation()
    try:
        count = suspects.count()
        if count == 0:
            return 0, []
        bench.events.step("checking the order where it is not proven yet")
        looked_at = sql.broadcast(suspects) if count <= FEW else suspects
        late = numbered.disordered(folded.read.numbers, looked_at)
        late = late.observe(counted, sql.count("*").alias("late"))
        rows = late.orderBy("topic", "partition", "offset").limit(bench.spec.findings).collect()
    finally:
        suspects.unpersist()
    at = [(row.topic, row.partition, row.offset) for row in rows]
    # These columns need no value of a record to be parsed.
    found = places(folded.read.records.select(*AT, "timestamp_ms", "key"), at, AT)
    findings = [
        error(
            kind="disorder",
            message=f"number {row.sequence}{_of(row.group)} comes after a higher one",
            topic=row.topic,
            partition=row.partition,
            group=row.group or None,
            of="sequence",
            first=row.sequence,
            last=row.sequence,
            copies=tuple(found[place]),
        )
        for row, place in zip(rows, at, strict=True)
    ]
    return counted.get["late"], findings
