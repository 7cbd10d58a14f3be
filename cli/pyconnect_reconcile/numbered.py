"""Sequence numbers folded to masks: 64 numbers of a source in one row, before any exchange.

`masks` has one row per group, topic, partition and bucket of 64 numbers; everything that
`sequence` asks is answered from it. Windows over it are cut into chunks of CHUNK_BITS: gaps between
buckets are looked for within chunks, gaps between chunks over the chunks' ends only.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

# A chunk is 4,096 masks, 262,144 sequence numbers.
CHUNK_BITS = 12
BUCKET_KEYS = ("group", "topic", "partition", "bucket")


def masks(numbers: DataFrame) -> DataFrame:
    """Fold rows of group, topic, partition, offset and sequence.

    Columns: BUCKET_KEYS, chunk; mask, copies (rows), lowest and highest (numbers), first and last
    (offsets), least and most (offset - sequence).
    """
    folded = numbers.groupBy(
        "group", "topic", "partition", sql.expr("sequence >> 6 AS bucket")
    ).agg(
        sql.expr("bit_or(1L << CAST(sequence & 63 AS INT)) AS mask"),
        sql.count("*").alias("copies"),
        sql.min("offset").alias("first"),
        sql.max("offset").alias("last"),
        sql.expr("min(offset - sequence) AS least"),
        sql.expr("max(offset - sequence) AS most"),
    )
    # They follow from the mask, once for 64 records: its lowest bit and its number of digits.
    return folded.selectExpr(
        "*",
        f"bucket >> {CHUNK_BITS} AS chunk",
        "(bucket << 6) + bit_count((mask & -mask) - 1) AS lowest",
        "(bucket << 6) + length(bin(mask)) - 1 AS highest",
    )


def over_partitions(folded: DataFrame) -> DataFrame:
    """Return one row per group and bucket: what is in any partition is there."""
    return folded.groupBy("group", "chunk", "bucket").agg(
        sql.bit_or("mask").alias("mask"),
        sql.sum("copies").alias("copies"),
        sql.min("lowest").alias("lowest"),
        sql.max("highest").alias("highest"),
    )


def groups(buckets: DataFrame) -> DataFrame:
    """Return per group: lowest, highest, copies, distinct, missing; and `wrong`.

    `wrong` counts the records without a number; where a group has no other ones, the rest is null.
    """
    return (
        buckets.groupBy("group")
        .agg(
            sql.min("lowest").alias("lowest"),
            sql.max("highest").alias("highest"),
            sql.expr("sum(copies) FILTER (WHERE bucket IS NOT NULL) AS copies"),
            sql.sum(sql.bit_count("mask")).alias("distinct"),
            sql.expr("coalesce(sum(copies) FILTER (WHERE bucket IS NULL), 0) AS wrong"),
        )
        .withColumn("missing", sql.expr("highest - lowest + 1 - distinct"))
    )


def gaps_between(buckets: DataFrame) -> DataFrame:
    """Return the gaps between buckets: group, first, last (both missing)."""
    within = Window.partitionBy("group", "chunk").orderBy("bucket")
    chunks = buckets.groupBy("group", "chunk").agg(
        sql.min("lowest").alias("lowest"), sql.max("highest").alias("highest")
    )
    across = Window.partitionBy("group").orderBy("chunk")
    return _gaps(buckets, within).unionByName(_gaps(chunks, across))


def _gaps(rows: DataFrame, window: WindowSpec) -> DataFrame:
    following = sql.lead("lowest").over(window)
    return (
        rows.select("group", "highest", following.alias("following"))
        .where("following > highest + 1")
        .selectExpr("`group`", "highest + 1 AS first", "following - 1 AS last")
    )


def holed(buckets: DataFrame) -> DataFrame:
    """Return the buckets with numbers missing between their lowest and highest."""
    return buckets.where("bit_count(mask) <> highest - lowest + 1")


def repeated(buckets: DataFrame) -> DataFrame:
    """Return the buckets that hold a number more than once."""
    return buckets.where("copies > bit_count(mask)")


def unproven(folded: DataFrame) -> DataFrame:
    """Return the buckets whose order in their partition is not proven: BUCKET_KEYS and `later`.

    Within a bucket, offset - sequence that varies by one at most proves the order: two numbers in
    the wrong order would need the same offset. Between buckets, the last offset must lie before
    `later`, the first offset of any bucket with higher numbers (null: there is none).
    """
    # Descending: frames that grow cost one step a row, frames that shrink are computed again each.
    before = (Window.unboundedPreceding, -1)
    partition = ("group", "topic", "partition")
    within = Window.partitionBy(*partition, "chunk").orderBy(sql.desc("bucket"))
    across = Window.partitionBy(*partition).orderBy(sql.desc("chunk"))
    chunks = (
        folded.groupBy("group", "topic", "partition", "chunk")
        .agg(sql.min("first").alias("first"))
        .withColumn("beyond", sql.min("first").over(across.rowsBetween(*before)))
        .drop("first")
    )
    return (
        folded.withColumn("near", sql.min("first").over(within.rowsBetween(*before)))
        .join(chunks, ["group", "topic", "partition", "chunk"])
        # `least` skips nulls: the end of a chunk, the end of all.
        .withColumn("later", sql.least("near", "beyond"))
        .where("most - least > 1 OR last > later")
        .select(*BUCKET_KEYS, "later")
    )


def disordered(numbers: DataFrame, suspects: DataFrame) -> DataFrame:
    """Return the records of suspect buckets that come after a higher number of their partition.

    Only the first copy of a number counts: later ones are duplicates, not disorder. Columns as of
    `numbers`.
    """
    bucket = Window.partitionBy(*BUCKET_KEYS).orderBy("offset")
    seen = bucket.rowsBetween(Window.unboundedPreceding, -1)
    copy = Window.partitionBy(*BUCKET_KEYS, "sequence").orderBy("offset")
    return (
        numbers.withColumn("bucket", sql.expr("sequence >> 6"))
        .join(sql.broadcast(suspects), list(BUCKET_KEYS))
        .withColumn("copy", sql.row_number().over(copy))
        .where("copy = 1")
        .withColumn("higher", sql.max("sequence").over(seen))
        .where("sequence < higher OR offset > later")
        .select(*numbers.columns)
    )
