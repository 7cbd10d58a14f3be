"""Whether records of one key come in the same order on two sides, from their hashes alone.

Rows of both sides are paired by their hashes; a pair is the offset of one record on either side.
What orders records is a *lane*, a partition of a topic, as one number (`with_lanes`). Repeated rows
are paired copy by copy where both sides have as many of them; where the right has more, the first
copies are; where it has fewer, it is not known which one is gone.

The order is proven first: where lanes as a whole are in order, all their keys are (`numbered`
proves it from masks, with the left offset as the number). Only else keys are looked at one by one.
No window spans more than a chunk of 2^18 offsets, or the ends of a key's chunks.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.compares.sides import KEY_HASHES
from pyconnect_reconcile.values.hashes import HASHES

CHUNK_BITS = 18
LANE_BITS = 32
SINGLE = "key_first IS NOT NULL AND left_low = left_high AND right_low = right_high"
EARLIER = (Window.unboundedPreceding, -1)


def with_lanes(rows: DataFrame, topics: Sequence[str]) -> DataFrame:
    """Return HASHES, KEY_HASHES (null: no key), lane and offset of rows."""
    number = sql.lit(None).cast("bigint")
    for index, topic in enumerate(topics):
        number = sql.when(sql.col("topic") == topic, sql.lit(index << LANE_BITS)).otherwise(number)
    lane = (number + sql.col("partition")).cast("bigint").alias("lane")
    return rows.select(*HASHES, *KEY_HASHES, lane, "offset")


def place_in(lane: int, topics: Sequence[str]) -> tuple[str, int]:
    return topics[lane >> LANE_BITS], lane & (1 << LANE_BITS) - 1


def identities(left: DataFrame, right: DataFrame) -> DataFrame:
    """Return one row for each HASHES: KEY_HASHES, and per side copies, low, high and offset.

    Low and high are lanes; the offset is the first one, which counts within one lane only. A side's
    columns are null when it lacks the row.
    """
    sides = []
    for rows, name in ((left, "left"), (right, "right")):
        sides.append(
            rows.groupBy(*HASHES).agg(
                *(sql.first(key).alias(f"{name}_{key}") for key in KEY_HASHES),
                sql.count("*").alias(f"{name}_copies"),
                sql.min("lane").alias(f"{name}_low"),
                sql.max("lane").alias(f"{name}_high"),
                sql.min("offset").alias(f"{name}_offset"),
            )
        )
    keys = [sql.coalesce(f"left_{key}", f"right_{key}").alias(key) for key in KEY_HASHES]
    joined = sides[0].join(sides[1], list(HASHES), "full_outer")
    return joined.select("*", *keys).drop(
        *(f"{side}_{key}" for side in ("left", "right") for key in KEY_HASHES)
    )


def first_copies(known: DataFrame) -> DataFrame:
    """Return the pairs of first copies: KEY_HASHES, and lane and offset of each side."""
    return known.where(
        f"{SINGLE} AND (left_copies = 1 AND right_copies = 1 OR right_copies > left_copies)"
    ).selectExpr(
        *KEY_HASHES,
        "left_low AS left_lane",
        "left_offset",
        "right_low AS right_lane",
        "right_offset",
    )


def repeated(known: DataFrame) -> DataFrame:
    """Return the HASHES of rows that both sides have more than once, and as often."""
    return known.where(f"{SINGLE} AND left_copies = right_copies AND left_copies > 1").select(
        *HASHES
    )


def later_copies(left: DataFrame, right: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return the pairs of rows that are repeated as often on both sides, copy by copy."""
    sides = [_ranked(rows, wanted) for rows in (left, right)]
    return (
        sides[0]
        .alias("l")
        .join(sides[1].alias("r"), [*HASHES, "copy"])
        .selectExpr(
            *(f"l.{key}" for key in KEY_HASHES),
            "l.lane AS left_lane",
            "l.offset AS left_offset",
            "r.lane AS right_lane",
            "r.offset AS right_offset",
        )
    )


def _ranked(rows: DataFrame, wanted: DataFrame) -> DataFrame:
    """Return the wanted rows with `copy`, the number of each among its equals."""
    chosen = rows.join(wanted, list(HASHES), "left_semi").withColumn(
        "chunk", sql.expr(f"offset >> {CHUNK_BITS}")
    )
    across = Window.partitionBy(*HASHES).orderBy("chunk").rowsBetween(*EARLIER)
    before = (
        chosen.groupBy(*HASHES, "chunk")
        .count()
        .withColumn("before", sql.coalesce(sql.sum("count").over(across), sql.lit(0)))
    )
    within = sql.row_number().over(Window.partitionBy(*HASHES, "chunk").orderBy("offset"))
    return (
        chosen.withColumn("within", within)
        .join(before.drop("count"), [*HASHES, "chunk"])
        .withColumn("copy", sql.expr("before + within"))
    )


def is_proven(pairs: DataFrame) -> bool:
    """Return whether every pair of lanes is in the same order as a whole."""
    numbers = pairs.selectExpr(
        "left_lane AS group",
        "right_lane AS topic",
        "0 AS partition",
        "right_offset AS offset",
        "left_offset AS sequence",
    )
    proven: bool = numbered.unproven(numbered.masks(numbers)).isEmpty()
    return proven


def unpaired(known: DataFrame) -> DataFrame:
    """Return the rows that a side has in several lanes."""
    return known.where(
        "key_first IS NOT NULL AND (left_low <> left_high OR right_low <> right_high)"
    )


def spread_keys(known: DataFrame) -> DataFrame:
    """Return the keys with records in several lanes of a side: nothing orders them."""
    lanes = (
        known.where("key_first IS NOT NULL")
        .groupBy(*KEY_HASHES)
        .agg(
            *(sql.min(f"{side}_low").alias(f"{side}_low") for side in ("left", "right")),
            *(sql.max(f"{side}_high").alias(f"{side}_high") for side in ("left", "right")),
        )
    )
    return lanes.where("left_low <> left_high OR right_low <> right_high").select(*KEY_HASHES)


def late(pairs: DataFrame, spread: DataFrame) -> DataFrame:
    """Return the pairs whose right copy comes after one of its key that follows it on the left."""
    chunked = pairs.join(spread, list(KEY_HASHES), "left_anti").withColumn(
        "chunk", sql.expr(f"right_offset >> {CHUNK_BITS}")
    )
    within = Window.partitionBy(*KEY_HASHES, "chunk").orderBy("right_offset").rowsBetween(*EARLIER)
    across = Window.partitionBy(*KEY_HASHES).orderBy("chunk").rowsBetween(*EARLIER)
    beyond = (
        chunked.groupBy(*KEY_HASHES, "chunk")
        .agg(sql.max("left_offset").alias("highest"))
        .withColumn("beyond", sql.max("highest").over(across))
        .drop("highest")
    )
    return (
        chunked.withColumn("near", sql.max("left_offset").over(within))
        .join(beyond, [*KEY_HASHES, "chunk"])
        .where("left_offset < near OR left_offset < beyond")
        .select(*pairs.columns)
    )
