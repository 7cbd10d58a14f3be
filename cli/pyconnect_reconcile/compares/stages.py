"""Compares two sets of rows in two stages: checksums of buckets, then the rows of bad buckets.

The first stage exchanges one row per bucket, so sides that agree cost little more than reading.
Two hashes stand for a row everywhere. Rows come from the left, and should be on the right.

A difference may be uncertain, with a reason. The other side's records may have been removed.
A sink may have written rows after the run looked at its topic, if its rows could not be copied
first: in a table, or in files that are not lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.capture import ends_moved, is_bounded
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows
from pyconnect_reconcile.findings import Finding, Severity, count_of, unknown
from pyconnect_reconcile.spec import Spec, TopicSide
from pyconnect_reconcile.values.canonical import HASHES

FEWEST_BUCKETS, MOST_BUCKETS, BUCKET_ROWS = 64, 65536, 512
CHECKSUM = (
    "count(*) AS rows",
    "bit_xor(first) AS xor_first",
    "bit_xor(second) AS xor_second",
    # Sums of half hashes cannot overflow before 2^31 rows of one bucket.
    "sum(first & 4294967295) AS sum_low",
    "sum(shiftrightunsigned(first, 32)) AS sum_high",
    "count_if(tail) AS tail",
    "count_if(unparsable AND NOT tail) AS unparsable",
    "sum(copies - 1) FILTER (WHERE NOT keyless) AS further",
    "sum(copies) FILTER (WHERE keyless) AS keyless",
    "count_if(tied) AS tied",
)
APPENDED = (*HASHES, "tail", "unparsable", "copies", "keyless", "tied", "lane", "offset")
COUNTED = ("committed", "uncommitted", "there", "unsettled")
LEAST = ("left_lane", "left_offset", "right_lane", "right_offset")
NO_LANE = "CAST(NULL AS BIGINT)"
MISSING = "greatest(committed - there - unsettled, 0)"
SURPLUS = "greatest(there - committed - uncommitted, 0)"
VERSION = "xxhash64(key_second, first, second)"
SUMS = ("rows", "xor_first", "xor_second", "sum_low", "sum_high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums:
    """The first stage: counts of rows and unparsable rows per side, and the buckets that differ.

    Rows of tails are counted apart. Three counts concern compares by key: `further` rows beyond the
    first one of their key, `keyless` rows of both sides, and `tied` keys whose last version is not
    known.
    """

    left: int
    right: int
    unparsable_left: int
    unparsable_right: int
    tail_left: int = 0
    tail_right: int = 0
    further_left: int = 0
    further_right: int = 0
    keyless: int = 0
    tied: int = 0
    buckets: int = 0
    bad: tuple[int, ...] = ()


def bucket_count(length: int | None) -> int:
    """Return the number of buckets for that many rows."""
    if length is None:
        return MOST_BUCKETS // 4
    return max(FEWEST_BUCKETS, min(MOST_BUCKETS, length // BUCKET_ROWS))


def checksums(left: DataFrame, right: DataFrame, buckets: int) -> Checksums:
    """Compute the first stage; each side is read once."""
    sides = [
        rows.groupBy(sql.expr(_bucket(buckets)).alias("bucket"))
        .agg(*map(sql.expr, CHECKSUM))
        .withColumn("side", sql.lit(side))
        for side, rows in (("left", left), ("right", right))
    ]
    found: dict[str, dict[int, Row]] = {"left": {}, "right": {}}
    for row in sides[0].unionByName(sides[1]).collect():
        found[row.side][row.bucket] = row
    totals = {
        f"{name}_{side}": sum(row[name] or 0 for row in rows.values())
        for side, rows in found.items()
        for name in ("rows", "tail", "unparsable", "further", "keyless", "tied")
    }
    sums = {
        side: {bucket: tuple(row[name] for name in SUMS) for bucket, row in rows.items()}
        for side, rows in found.items()
    }
    # A bucket without rows has the checksum of no rows.
    nothing = (0,) * len(SUMS)
    every = sorted(sums["left"].keys() | sums["right"].keys())
    bad = (b for b in every if sums["left"].get(b, nothing) != sums["right"].get(b, nothing))
    return Checksums(
        left=totals["rows_left"] - totals["tail_left"],
        right=totals["rows_right"] - totals["tail_right"],
        keyless=totals["keyless_left"] + totals["keyless_right"],
        tied=totals["tied_left"] + totals["tied_right"],
        buckets=buckets,
        bad=tuple(bad),
        **{
            f"{name}_{side}": totals[f"{name}_{side}"]
            for name in ("unparsable", "tail", "further")
            for side in found
        },
    )


def differing_rows(left: DataFrame, right: DataFrame, sums: Checksums) -> DataFrame:
    """Return the multiset difference of the bad buckets.

    Columns: HASHES; committed and uncommitted (rows on the left, its tail); there and unsettled
    (rows on the right, its tail); per side the least lane and offset. Rows are MISSING, or there is
    a SURPLUS of them, where no choice among the rows of the tails makes both sides equal. Rows that
    the right has only in its tail are returned, too.
    """
    certain, tail = "CAST(NOT tail AS BIGINT)", "CAST(tail AS BIGINT)"
    sides = [
        _of_buckets(rows, sums).select(
            *HASHES,
            *(sql.expr(each).alias(name) for name, each in zip(COUNTED, counted, strict=True)),
            *(sql.expr(each).alias(name) for name, each in zip(LEAST, least, strict=True)),
        )
        for rows, counted, least in (
            (left, (certain, tail, "0L", "0L"), ("lane", "offset", NO_LANE, NO_LANE)),
            (right, ("0L", "0L", certain, tail), (NO_LANE, NO_LANE, "lane", "offset")),
        )
    ]
    return (
        sides[0]
        .unionByName(sides[1])
        .groupBy(*HASHES)
        .agg(
            *(sql.sum(name).alias(name) for name in COUNTED),
            *(sql.min(name).alias(name) for name in LEAST),
        )
        .where(f"there < committed OR {SURPLUS} > 0")
        .withColumn("missing", sql.expr(MISSING))
        .withColumn("surplus", sql.expr(SURPLUS))
    )


def last_versions(rows: DataFrame) -> DataFrame:
    """Return one row per key: the hashes of its last version, unless that is a tombstone.

    The rows' own hashes become those of key and version together, so that buckets are of keys.
    Offsets order the versions within a partition. If a key is in several partitions, such as after
    partitions were added, the time of its last record decides. If two partitions' last records have
    the same time, the key is `tied`, and `other` is the version that is not chosen. `copies` counts
    rows.
    """
    version = sql.struct(*HASHES, "tombstone", "unparsable", "keyless", "timestamp_ms", "lane")
    each = rows.groupBy(*KEY_HASHES, "lane").agg(
        sql.max_by(version, sql.struct("offset")).alias("last"), sql.count("*").alias("copies")
    )
    last = each.groupBy(*KEY_HASHES).agg(
        sql.expr("max_by(last, (last.timestamp_ms, NOT last.tombstone, last.lane)) AS last"),
        sql.expr("max_by(last, (last.timestamp_ms, last.tombstone, -last.lane)) AS other"),
        sql.sum("copies").alias("copies"),
    )
    alive = last.where("NOT last.tombstone")
    return alive.select(
        *KEY_HASHES,
        sql.col("key_first").alias("first"),
        sql.expr("xxhash64(key_second, last.first, last.second)").alias("second"),
        sql.expr(
            "CASE WHEN NOT other.tombstone THEN xxhash64(key_second, other.first, other.second) END"
        ).alias("other"),
        "last.unparsable",
        "last.keyless",
        sql.lit(False).alias("tail"),
        "copies",
    ).withColumn("tied", sql.expr("NOT keyless AND NOT other <=> second"))


def tail_versions(rows: DataFrame) -> DataFrame:
    """Return KEY_HASHES and `version` of the keys in a side's tail; null stands for a removed key.

    A version is the column `second` of `last_versions`.
    """
    version = sql.expr(f"CASE WHEN NOT tombstone THEN {VERSION} END")
    return rows.where("tail").select(*KEY_HASHES, version.alias("version")).distinct()


def tied_versions(versions: DataFrame) -> DataFrame:
    """Return versions that `last_versions` did not choose, in the columns of `tail_versions`."""
    return versions.where("tied").select(*KEY_HASHES, sql.col("other").alias("version"))


def without_versions_under_way(
    different: DataFrame, left: DataFrame, right: DataFrame
) -> DataFrame:
    """Return the keys of `differing_keys` that differ whichever versions of left and right count.

    A sink may or may not have written any version beyond its committed offsets.
    """
    keys = list(KEY_HASHES)
    before, after = (
        different.select(*keys, sql.col(name).alias("version")).unionByName(tail)
        for name, tail in (("before", left), ("after", right))
    )
    # Set operations treat nulls as equal: a removed key is a version, too.
    possible = before.intersect(after).select(*keys)
    return different.join(possible, keys, "left_anti")


def last_records(rows: DataFrame, versions: DataFrame) -> DataFrame:
    """Return the rows whose versions are among `last_versions` or `differing_keys`.

    `versions` has KEY_HASHES and `second`. A version that a key had twice is returned twice.
    """
    named = rows.withColumn("version", sql.expr(VERSION))
    wanted = versions.select(*KEY_HASHES, sql.col("second").alias("version"))
    return named.join(wanted, [*KEY_HASHES, "version"], "left_semi")


def differing_keys(left: DataFrame, right: DataFrame, sums: Checksums) -> DataFrame:
    """Return the keys of bad buckets whose last versions differ.

    Columns: KEY_HASHES, before and after (versions), kind.
    """
    sides = [
        _of_buckets(rows, sums).select(*KEY_HASHES, sql.col("second").alias(name))
        for rows, name in ((left, "before"), (right, "after"))
    ]
    kind = (
        sql.when(sql.col("after").isNull(), "missing")
        .when(sql.col("before").isNull(), "extra")
        .otherwise("different")
    )
    return (
        sides[0]
        .join(sides[1], list(KEY_HASHES), "full_outer")
        .where("NOT before <=> after")
        .select(*KEY_HASHES, "before", "after", kind.alias("kind"))
    )


def _bucket(buckets: int) -> str:
    return f"CAST(pmod(first, {buckets}) AS INT)"


def _of_buckets(rows: DataFrame, sums: Checksums) -> DataFrame:
    """Keep the rows of bad buckets, without an exchange."""
    if len(sums.bad) == sums.buckets:
        return rows
    return rows.where(f"{_bucket(sums.buckets)} IN ({', '.join(map(str, sums.bad)) or 'NULL'})")


SURPLUS_KINDS = frozenset({"extra", "repeated"})


def doubted(bench: Bench, left: Rows, right: Rows, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, with UNKNOWN for those that prove nothing, and the reasons."""
    found = {finding.kind for finding in findings if finding.severity is Severity.ERROR}
    doubts: list[tuple[frozenset[str], Finding]] = []
    for rows, kinds in ((left, SURPLUS_KINDS), (right, frozenset({"missing"}))):
        if not isinstance(rows.side, TopicSide):
            continue
        parts = bench.snapshot(rows.side.topics, rows.side.cluster).partitions
        if removed := sum(len(part.removed) for part in parts):
            reason = unknown(
                kind="expired",
                message=f"{count_of(removed, f'offset at the beginning of {rows.name} has')} been"
                f" removed: records that are {' or '.join(sorted(kinds))} may have been among them",
                count=removed,
            )
            doubts.append((kinds, reason))
    kinds = SURPLUS_KINDS | (
        {"different", "missing"} if bench.spec.mode == "upsert" else frozenset()
    )
    if (
        kinds & found
        and isinstance(left.side, TopicSide)
        and not right.files.copies
        and is_bounded(bench.spec, left.side)
        and ends_moved(bench.spec, left.side, bench.snapshot(left.side.topics, left.side.cluster))
    ):
        reason = unknown(
            kind="written-meanwhile",
            message=f"{left.name} received records while {right.name} was read: records that"
            f" are {' or '.join(sorted(kinds))} may come from them",
        )
        doubts.append((kinds, reason))
    doubts = [each for each in doubts if each[0] & found]
    proving_nothing = frozenset[str]().union(*(kinds for kinds, _ in doubts))
    return [
        *(
            replace(finding, severity=Severity.UNKNOWN)
            if finding.kind in proving_nothing and finding.severity is Severity.ERROR
            else finding
            for finding in findings
        ),
        *(reason for _, reason in doubts),
    ]


def under_way(
    spec: Spec, left: Rows, right: Rows, sums: Checksums, *, ahead: int
) -> Iterator[Finding]:
    """Explain the rows of the left's tail, without which the counts of both sides do not add up.

    `ahead` of these rows are on the right already. In a chain of reports the right's next range
    begins behind them, the left's before them.
    """
    if not sums.tail_left:
        return
    chained = ahead > 0 and spec.since_last and spec.job == "topic-topic"
    later = "; the next run reads these again" if chained else ""
    yield Finding(
        kind="under-way",
        severity=Severity.UNKNOWN if chained else Severity.NOTE,
        message=f"{count_of(sums.tail_left, f'row of {left.name} is')} beyond the compared"
        f" offsets; already in {right.name}: {ahead:,}{later}",
        count=sums.tail_left,
    )


def unfinished(
    right: Rows, sums: Checksums, compared: tuple[DataFrame, DataFrame], *, missing: int
) -> Iterator[Finding]:
    """Yield a finding on the rows of the right's tail, and how many left rows only they match.

    `missing` is the number of left rows that not even the tail has. An open transaction may still
    be aborted, and a line without an end may be half of a line.
    """
    every = replace(sums, bad=tuple(range(sums.buckets)))
    certain = differing_rows(compared[0], compared[1].where("NOT tail"), every)
    [row] = certain.selectExpr("coalesce(sum(missing), 0) AS missing").collect()
    needed = int(row.missing) - missing
    said = f"; {needed:,} of them are expected" if needed > 0 else ""
    yield Finding(
        kind="unfinished",
        severity=Severity.UNKNOWN if needed > 0 else Severity.NOTE,
        message=f"{count_of(sums.tail_right, f'row of {right.name} is')}"
        f" not finished (a last line without an end, or an open transaction), not extra{said}",
        count=sums.tail_right,
    )


def keyless_tombstones(spec: Spec, rows: Rows, side: TopicSide) -> Iterator[Finding]:
    """Yield tombstones where keys are in the values: which keys they removed is not known."""
    if spec.mode != "upsert" or side.row is not None:
        return
    if spec.key.partition(":")[0] in {"key", "key.json", "header", "timestamp"}:
        return
    if count := rows.rows.where("tombstone AND NOT tail").count():
        yield unknown(
            kind="keyless",
            message=f"{count_of(count, f'tombstone in {rows.name} has')}"
            f" no key (`{spec.key}`): whether what is removed is gone was not compared; name a key"
            " of the record (`key.json:PATH`)",
            count=count,
        )
