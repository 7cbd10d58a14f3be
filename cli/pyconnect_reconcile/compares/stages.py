"""Compares two sets of rows in two stages: checksums of buckets, then the rows of bad buckets.

The first stage exchanges one row per bucket, so sides that agree cost little more than reading.
Rows are their two hashes everywhere. Left is where rows come from, right where they should be.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.sides import KEY_HASHES
from pyconnect_reconcile.lookup import PLACE_COLUMNS
from pyconnect_reconcile.values.hashes import HASHES

FEWEST_BUCKETS, MOST_BUCKETS, BUCKET_ROWS = 64, 65536, 512
# Rows that do not parse are counted and left out: nobody knows what they are to be compared with.
PARSED = "FILTER (WHERE NOT unparsable)"
CHECKSUM = (
    f"count(*) {PARSED} AS rows",
    f"bit_xor(first) {PARSED} AS xor_first",
    f"bit_xor(second) {PARSED} AS xor_second",
    # Halves of the hash: sums of them cannot overflow before 2^31 rows of one bucket.
    f"sum(first & 4294967295) {PARSED} AS sum_low",
    f"sum(shiftrightunsigned(first, 32)) {PARSED} AS sum_high",
    "count_if(unparsable) AS unparsable",
)
APPENDED = (*HASHES, "tail", "unparsable")
SUMS = ("rows", "xor_first", "xor_second", "sum_low", "sum_high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums:
    """The first stage: rows and unparsable ones of both sides, and the buckets that differ."""

    left: int
    right: int
    unparsable_left: int
    unparsable_right: int
    buckets: int
    bad: tuple[int, ...]


def bucket_count(length: int | None) -> int:
    """Return how many buckets so many rows are dealt to."""
    if length is None:
        return MOST_BUCKETS // 4
    return max(FEWEST_BUCKETS, min(MOST_BUCKETS, length // BUCKET_ROWS))


def checksums(left: DataFrame, right: DataFrame, buckets: int) -> Checksums:
    """Compute the first stage; both sides are read once."""
    sums = [
        _bucketed(rows, buckets).groupBy("bucket").agg(*map(sql.expr, CHECKSUM))
        for rows in (left, right)
    ]
    found = (
        sums[0]
        .alias("l")
        .join(sums[1].alias("r"), "bucket", "full_outer")
        .selectExpr(
            "bucket",
            *(
                f"coalesce({side}.{name}, 0) AS {side}_{name}"
                for side in ("l", "r")
                for name in (*SUMS, "unparsable")
            ),
        )
    )
    rows = found.collect()
    return Checksums(
        left=sum(row.l_rows + row.l_unparsable for row in rows),
        right=sum(row.r_rows + row.r_unparsable for row in rows),
        unparsable_left=sum(row.l_unparsable for row in rows),
        unparsable_right=sum(row.r_unparsable for row in rows),
        buckets=buckets,
        bad=tuple(
            row.bucket for row in rows if any(row[f"l_{name}"] != row[f"r_{name}"] for name in SUMS)
        ),
    )


def differing_rows(bench: Bench, left: DataFrame, right: DataFrame, sums: Checksums) -> DataFrame:
    """Return the multiset difference of the bad buckets.

    Columns: HASHES; committed and uncommitted (rows on the left up to and beyond the committed
    source offset); there (rows on the right). Rows are missing when there < committed, and too many
    when there > committed + uncommitted.
    """
    sides = [
        _of_buckets(bench, rows.where("NOT unparsable"), sums).select(
            *HASHES,
            sql.expr(committed).alias("committed"),
            sql.expr(uncommitted).alias("uncommitted"),
            sql.expr(there).alias("there"),
        )
        for rows, committed, uncommitted, there in (
            (left, "CAST(NOT tail AS BIGINT)", "CAST(tail AS BIGINT)", "0L"),
            (right, "0L", "0L", "1L"),
        )
    ]
    return (
        sides[0]
        .unionByName(sides[1])
        .groupBy(*HASHES)
        .agg(*(sql.sum(name).alias(name) for name in ("committed", "uncommitted", "there")))
        .where("there < committed OR there > committed + uncommitted")
    )


def last_versions(rows: DataFrame) -> DataFrame:
    """Return one row per key: the hashes of its last version; keys that end in a tombstone go.

    The rows' own hashes become those of key and version together, so that buckets are of keys.
    A key is `unparsable` when its last version is: the earlier ones no longer matter.
    """
    last = rows.groupBy(*KEY_HASHES).agg(
        sql.max_by(sql.struct(*HASHES, "tombstone", "unparsable"), "position").alias("last")
    )
    alive = last.where("NOT last.tombstone")
    return alive.select(
        *KEY_HASHES,
        sql.col("key_first").alias("first"),
        sql.expr("xxhash64(key_second, last.first, last.second)").alias("second"),
        "last.unparsable",
    )


def unparsable_versions(rows: DataFrame, last: DataFrame, limit: int) -> DataFrame:
    """Return last versions that do not parse: PLACE_COLUMNS and `value`.

    `last` are `last_versions` of these rows.
    """
    keys = sql.broadcast(last.where("unparsable").select(*KEY_HASHES).limit(limit))
    strange = rows.where("unparsable").join(keys, list(KEY_HASHES), "left_semi")
    version = sql.struct(*map(sql.expr, PLACE_COLUMNS), "value")
    latest = strange.groupBy(*KEY_HASHES).agg(sql.max_by(version, "position").alias("version"))
    return latest.select("version.*")


def differing_keys(bench: Bench, left: DataFrame, right: DataFrame, sums: Checksums) -> DataFrame:
    """Return the keys of bad buckets whose last versions differ: KEY_HASHES and `kind`.

    Nobody knows what should be on the right where the left's last version does not parse, nor what
    a version is that does not parse on the right only. One that the left has otherwise differs.
    """
    sides = [
        _of_buckets(bench, rows, sums).select(
            *KEY_HASHES,
            sql.col("second").alias(name),
            sql.col("unparsable").alias(f"{name}_unparsable"),
        )
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
        .where("NOT coalesce(before_unparsable, after_unparsable)")
        .where("before IS NULL OR after IS NULL OR before <> after OR after_unparsable")
        .select(*KEY_HASHES, kind.alias("kind"))
    )


def _bucketed(rows: DataFrame, buckets: int) -> DataFrame:
    return rows.withColumn("bucket", sql.expr(f"CAST(pmod(first, {buckets}) AS INT)"))


def _of_buckets(bench: Bench, rows: DataFrame, sums: Checksums) -> DataFrame:
    """Keep the rows of bad buckets, without an exchange."""
    if len(sums.bad) == sums.buckets:
        return rows
    bad = bench.spark.createDataFrame([(bucket,) for bucket in sums.bad], "bucket int")
    return _bucketed(rows, sums.buckets).join(sql.broadcast(bad), "bucket", "left_semi")
