"""Sequence numbers folded to masks: 64 numbers of a source in one row.

`masks` and `sorted_masks` have one row per group, topic, partition and bucket of 64 numbers,
from which `sequence` answers everything. `masks` folds before any exchange, and proves the order
of a bucket whose records follow each other. `sorted_masks` exchanges and sorts the numbers once,
and proves the order of sources whose records alternate with those of others.

Windows over masks are cut into chunks of CHUNK_BITS: gaps between buckets are looked for within
chunks, gaps between chunks over the chunks' ends only. Windows over records are cut into chunks of
SORTED_BITS offsets.
"""

from pyspark.sql import DataFrame, Window, WindowSpec
from pyspark.sql import functions as sql

# A chunk is 4,096 masks, 262,144 sequence numbers.
CHUNK_BITS = 12
# A Spark task sorts at most 4 million records of a source at once.
SORTED_BITS = 22
LANE = ("group", "topic", "partition")
BUCKET_KEYS = (*LANE, "bucket")
EARLIER = (Window.unboundedPreceding, -1)
# Bit i stands for number i of the bucket.
MASK = "bit_or(shiftleft(1L, CAST(sequence & 63 AS INT))) AS mask"
# Computed from the mask, once for 64 records: its lowest bit and its number of digits.
FROM_MASK = (
    f"shiftright(bucket, {CHUNK_BITS}) AS chunk",
    "shiftleft(bucket, 6) + bit_count((mask & -mask) - 1) AS lowest",
    "shiftleft(bucket, 6) + length(bin(mask)) - 1 AS highest",
)


def masks(numbers: DataFrame) -> DataFrame:
    """Fold rows of group, topic, partition, offset and sequence.

    Columns: BUCKET_KEYS, chunk; mask, copies (rows), lowest and highest (numbers), first and last
    (offsets), `doubtful` (whether the order within the bucket is not proven). An offset - sequence
    that varies by one at most proves it: two numbers in the wrong order would need the same offset.
    """
    folded = numbers.groupBy(*LANE, sql.expr("shiftright(sequence, 6) AS bucket")).agg(
        sql.expr(MASK),
        sql.count("*").alias("copies"),
        sql.min("offset").alias("first"),
        sql.max("offset").alias("last"),
        sql.expr("max(offset - sequence) - min(offset - sequence) > 1 AS doubtful"),
    )
    return folded.selectExpr("*", *FROM_MASK)


def sorted_masks(numbers: DataFrame, *, several_chunks: bool) -> DataFrame:
    """Return the columns of `masks`; `doubtful` means that a record comes after a higher number.

    `several_chunks`: whether a partition has more than 2^SORTED_BITS offsets.
    """
    block = f"shiftright(offset, {SORTED_BITS})" if several_chunks else "0L"
    # Records without a number have no order: blocks keep them from being all in one task.
    block = (
        f"CASE WHEN sequence IS NULL THEN -1 - shiftright(offset, {CHUNK_BITS}) ELSE {block} END"
    )
    # A hash sorts faster than texts; equal hashes make more records doubtful, never fewer.
    run = sql.xxhash64(*LANE, sql.expr(block))
    blocks = numbers.withColumns({"block": sql.expr(block), "run": run})
    seen = Window.partitionBy("run").orderBy("offset").rowsBetween(*EARLIER)
    columns = [
        sql.expr(MASK),
        sql.count("*").alias("copies"),
        sql.min("offset").alias("first"),
        sql.max("offset").alias("last"),
        sql.expr("coalesce(bool_or(sequence < higher), false) AS doubtful"),
    ]
    folded = (
        blocks.withColumn("higher", sql.max("sequence").over(seen))
        .groupBy(*LANE, "block", sql.expr("shiftright(sequence, 6) AS bucket"))
        .agg(*columns)
    )
    if not several_chunks:
        return folded.drop("block").selectExpr("*", *FROM_MASK)
    # A bucket that lies in two blocks is checked record by record.
    merged = folded.groupBy(*BUCKET_KEYS).agg(
        sql.bit_or("mask").alias("mask"),
        sql.sum("copies").alias("copies"),
        sql.min("first").alias("first"),
        sql.max("last").alias("last"),
        sql.expr("bool_or(doubtful) OR count(*) > 1 AS doubtful"),
    )
    return merged.selectExpr("*", *FROM_MASK)


def over_partitions(folded: DataFrame) -> DataFrame:
    """Return one row per group and bucket, which merges the masks of all partitions."""
    return folded.groupBy("group", "chunk", "bucket").agg(
        sql.bit_or("mask").alias("mask"),
        sql.sum("copies").alias("copies"),
        sql.min("lowest").alias("lowest"),
        sql.max("highest").alias("highest"),
        sql.bool_or("doubtful").alias("doubtful"),
    )


def groups(buckets: DataFrame, bounds: DataFrame | None, *, from_one: bool) -> DataFrame:
    """Return per group: lowest, highest, copies, distinct, doubtful, missing, `perhaps`, `wrong`.

    `wrong` counts the records without a number; if a group has only such records, the rest is null.
    `perhaps` of the missing numbers may be outside of the range, by `bounds` of `known_between`.
    With `from_one` each source begins to count at 1.
    """
    if bounds is None:
        nothing = (f"CAST(NULL AS BIGINT) AS {name}" for name in ("low", "high"))
        buckets = buckets.selectExpr("*", *nothing)
    else:
        buckets = buckets.join(bounds, "group", "left")
    found = buckets.groupBy("group").agg(
        sql.min("lowest").alias("lowest"),
        sql.max("highest").alias("highest"),
        sql.expr("sum(copies) FILTER (WHERE bucket IS NOT NULL) AS copies"),
        sql.sum(sql.bit_count("mask")).alias("distinct"),
        sql.expr("coalesce(sum(copies) FILTER (WHERE bucket IS NULL), 0) AS wrong"),
        sql.expr("coalesce(bool_or(doubtful), false) AS doubtful"),
        sql.expr("first(low) AS low"),
        sql.expr("first(high) AS high"),
        sql.expr(f"sum({_BELOW}) AS below"),
        sql.expr(f"sum({_ABOVE}) AS above"),
    )
    begin = "least(lowest, 1)" if from_one else "lowest"
    return found.selectExpr(
        "*", f"{begin} AS begin", f"highest - {begin} + 1 - distinct AS missing"
    ).withColumn(
        "perhaps",
        sql.expr(
            "CASE WHEN low >= high THEN missing ELSE"
            " coalesce(greatest(low - begin - below, 0), 0)"
            " + coalesce(greatest(highest - high - above, 0), 0) END"
        ),
    )


# How many numbers of a mask lie below `low`, and above `high`; null without such a bound.
_BELOW = (
    "CASE WHEN bucket < shiftright(low, 6) THEN bit_count(mask)"
    " WHEN bucket = shiftright(low, 6) THEN"
    " bit_count(mask & (shiftleft(1L, CAST(low & 63 AS INT)) - 1)) END"
)
_ABOVE = (
    "CASE WHEN bucket > shiftright(high, 6) THEN bit_count(mask)"
    " WHEN bucket = shiftright(high, 6) THEN"
    " bit_count(mask & ~(shiftleft(2L, CAST(high & 63 AS INT)) - 1)) END"
)


def known_between(folded: DataFrame, cut: DataFrame) -> DataFrame:
    """Return per group `low` and `high`: numbers beyond them may be outside of the range.

    `cut` has topic and partition of ranges that begin after other records (`late`) or end before
    some (`early`). A source writes its numbers in order to each partition: numbers before the range
    are lower than the first one within it, numbers behind it are higher than the last one.
    """
    ends = folded.groupBy(*LANE).agg(
        sql.min_by("lowest", "first").alias("low"), sql.max_by("highest", "last").alias("high")
    )
    return (
        ends.join(sql.broadcast(cut), ["topic", "partition"])
        .groupBy("group")
        .agg(
            sql.expr("max(low) FILTER (WHERE late) AS low"),
            sql.expr("min(high) FILTER (WHERE early) AS high"),
        )
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


def beginnings(found: DataFrame) -> DataFrame:
    """Return the numbers that are missing below the lowest one of `groups`: group, first, last."""
    return found.where("begin < lowest").selectExpr(
        "`group`", "begin AS first", "lowest - 1 AS last"
    )


def unproven(folded: DataFrame) -> DataFrame:
    """Return the buckets whose order in their partition is not proven: BUCKET_KEYS and `later`.

    Within a bucket the order is proven if it is not `doubtful`. Between buckets, the last offset
    must lie before `later`, the first offset of any bucket with higher numbers, null without one.
    """
    # In descending order the frames grow, at one step a row; shrinking frames are recomputed.
    within = Window.partitionBy(*LANE, "chunk").orderBy(sql.desc("bucket"))
    across = Window.partitionBy(*LANE).orderBy(sql.desc("chunk"))
    chunks = (
        folded.groupBy(*LANE, "chunk")
        .agg(sql.min("first").alias("first"))
        .withColumn("beyond", sql.min("first").over(across.rowsBetween(*EARLIER)))
        .drop("first")
    )
    return (
        folded.withColumn("near", sql.min("first").over(within.rowsBetween(*EARLIER)))
        .join(chunks, [*LANE, "chunk"])
        # `least` skips the null at the end of a chunk, and the one at the end of all.
        .withColumn("later", sql.least("near", "beyond"))
        .where("doubtful OR last > later")
        .select(*BUCKET_KEYS, "later")
    )


def disordered(numbers: DataFrame, suspects: DataFrame) -> DataFrame:
    """Return the records of suspect buckets that come after a higher number of their partition.

    Only the first copy of a number counts: later ones are duplicates, not disorder. The columns are
    those of `numbers`.
    """
    seen = Window.partitionBy(*BUCKET_KEYS).orderBy("offset").rowsBetween(*EARLIER)
    return (
        numbers.withColumn("bucket", sql.expr("shiftright(sequence, 6)"))
        .join(suspects, list(BUCKET_KEYS))
        # The first copies and their order share one exchange.
        .repartition(*BUCKET_KEYS)
        .groupBy(*BUCKET_KEYS, "sequence")
        .agg(sql.min("offset").alias("offset"), sql.first("later").alias("later"))
        .withColumn("higher", sql.max("sequence").over(seen))
        .where("sequence < higher OR offset > later")
        .select(*numbers.columns)
    )
