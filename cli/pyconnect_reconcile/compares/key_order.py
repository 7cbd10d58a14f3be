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

from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.compares.sides import KEY_HASHES
from pyconnect_reconcile.compares.stages import Checksums
from pyconnect_reconcile.values.extract import with_text
from pyconnect_reconcile.values.hashes import HASHES, hashes

CHUNK_BITS = 18
SINGLE = "key_first IS NOT NULL AND left_low = left_high AND right_low = right_high"
REPEATED = f"{SINGLE} AND left_copies = right_copies AND left_copies > 1"
KEYLESS = "key_first IS NULL"
UNPAIRED = "key_first IS NOT NULL AND (left_low <> left_high OR right_low <> right_high)"
EARLIER = (Window.unboundedPreceding, -1)
OF_SIDES = {
    "copies": "count(*)",
    "unparsable": "sum(CAST(unparsable AS BIGINT))",
    "low": "min(lane)",
    "high": "max(lane)",
    "offset": "min(offset)",
}


def with_order_keys(rows: DataFrame, key: str) -> DataFrame:
    """Return rows with the KEY_HASHES of what orders them; null: no key, no order."""
    text = sql.col("key")
    if key != "key":
        rows, text = with_text(rows, "order_key", key), sql.col("order_key")
    hashed = zip(KEY_HASHES, hashes([text.cast("binary")]), strict=True)
    return rows.withColumns({name: sql.when(text.isNotNull(), each) for name, each in hashed})


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """A row for each HASHES of both sides, kept in Spark's cache, and what was counted of them.

    Columns: HASHES, KEY_HASHES, per side copies, unparsable, low, high and offset. Low and high are
    lanes; the offset is the first one, which counts within one lane only. A side's columns are null
    when it lacks the row. `sums` are the first stage of a compare, None if the sides differ.
    `repeated` and `unpaired` count identities, `keyless` records.
    """

    rows: DataFrame
    sums: Checksums | None
    repeated: int
    unpaired: int
    keyless: int


def identities(left: DataFrame, right: DataFrame) -> Identities:
    """Group the rows of both sides by their hashes, with lanes; the caller unpersists them."""
    sides = (left.withColumn("is_left", sql.lit(True)), right.withColumn("is_left", sql.lit(False)))
    used = [*HASHES, *KEY_HASHES, "is_left", "unparsable", "lane", "offset"]
    both = sides[0].select(*used).unionByName(sides[1].select(*used))
    # One exchange of both sides and no join, for which each side would be sorted.
    counted = [
        sql.expr(f"{what} FILTER (WHERE {where}) AS {name}_{of}")
        for name, where in (("left", "is_left"), ("right", "NOT is_left"))
        for of, what in OF_SIDES.items()
    ]
    keys = (sql.first(key).alias(key) for key in KEY_HASHES)
    found = both.groupBy(*HASHES).agg(*keys, *counted)
    rows = found.withColumns(
        {name: sql.expr(f"nullif({name}, 0)") for name in ("left_copies", "right_copies")}
    ).persist()
    [row] = rows.selectExpr(
        *(
            f"coalesce(sum({side}_{name}), 0) AS {side}_{name}"
            for side in ("left", "right")
            for name in ("copies", "unparsable")
        ),
        "count_if(NOT left_copies <=> right_copies) AS differing",
        f"count_if({REPEATED}) AS repeated",
        f"count_if({UNPAIRED}) AS unpaired",
        f"coalesce(sum(greatest(left_copies, right_copies)) FILTER (WHERE {KEYLESS}), 0)"
        " AS keyless",
    ).collect()
    sums = Checksums(
        left=row.left_copies,
        right=row.right_copies,
        unparsable_left=row.left_unparsable,
        unparsable_right=row.right_unparsable,
    )
    return Identities(
        rows=rows,
        sums=None if row.differing else sums,
        repeated=row.repeated,
        unpaired=row.unpaired,
        keyless=row.keyless,
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
    return known.where(REPEATED).select(*HASHES)


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
        "chunk", sql.expr(f"shiftright(offset, {CHUNK_BITS})")
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
    return known.where(UNPAIRED)


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
        "chunk", sql.expr(f"shiftright(right_offset, {CHUNK_BITS})")
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
