"""topic-topic with `ordered`: records of one key are in the same order on both sides.

The compare itself finds missing and extra records; here only records on both sides count.
Records without a key have no order, and neither have keys in several partitions: a run that finds
such records cannot agree.

The order follows from hashes alone. Rows of both sides are paired by their hashes; a pair is the
offset of one record on either side. A *lane* is a partition of a topic, as one number; records are
ordered within their lane. Repeated rows are paired copy by copy if both sides have as many copies.
If the right has more, the first copies are paired; if it has fewer, it is not known which one is
gone.

The order is proven first: where lanes as a whole are in order, all their keys are (`numbered`
proves it from masks, with the left offset as the number). Otherwise keys are checked one by one.
No window spans more than a chunk of 2^18 offsets, or the ends of a key's chunks.
"""

from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation, Window
from pyspark.sql import functions as sql

from pyconnect_reconcile import numbered
from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares.places import places_in_topic
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows
from pyconnect_reconcile.compares.stages import Checksums
from pyconnect_reconcile.findings import Finding, count_of, error, unknown
from pyconnect_reconcile.numbered import EARLIER
from pyconnect_reconcile.values.canonical import HASHES, hashes
from pyconnect_reconcile.values.extract import with_text

CHUNK_BITS = 18
SINGLE = "key_first IS NOT NULL AND left_low = left_high AND right_low = right_high"
REPEATED = f"{SINGLE} AND left_copies = right_copies AND left_copies > 1"
FIRST_COPIES = f"{SINGLE} AND (left_copies = 1 AND right_copies = 1 OR right_copies > left_copies)"
KEYLESS = "key_first IS NULL"
UNPAIRED = "key_first IS NOT NULL AND (left_low <> left_high OR right_low <> right_high)"
OF_SIDES = {
    "copies": "count(*)",
    "unparsable": "sum(CAST(unparsable AS BIGINT))",
    "low": "min(lane)",
    "high": "max(lane)",
    "offset": "min(offset)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """One row for each HASHES of both sides, kept in Spark's cache, and counts of these rows.

    Columns: HASHES, KEY_HASHES, per side copies, unparsable, low, high and offset. Low and high are
    lanes; offset is the first one, valid if all copies are in one lane. A side's columns are null
    when it lacks the row. `sums` are the first stage of a compare, None if the sides differ.
    `repeated` and `unpaired` count identities, `keyless` records.
    """

    rows: DataFrame
    sums: Checksums | None
    repeated: int
    unpaired: int
    keyless: int


def known(bench: Bench, left: Rows, right: Rows) -> Identities:
    """Return the identities of both sides, which `check` and the compare itself use.

    The caller unpersists their rows.
    """
    bench.events.step(f"comparing {left.name} with {right.name}, and the order of each key")
    used = [*HASHES, *KEY_HASHES, "is_left", "unparsable", "lane", "offset"]
    one, other = (
        _certain(bench, side).withColumn("is_left", sql.lit(side is left)).select(*used)
        for side in (left, right)
    )
    # One exchange of both sides: a join would sort each side.
    counted = [
        sql.expr(f"{what} FILTER (WHERE {where}) AS {name}_{of}")
        for name, where in (("left", "is_left"), ("right", "NOT is_left"))
        for of, what in OF_SIDES.items()
    ]
    keys = (sql.first(key).alias(key) for key in KEY_HASHES)
    found = one.unionByName(other).groupBy(*HASHES).agg(*keys, *counted)
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


def _certain(bench: Bench, side: Rows) -> DataFrame:
    """Return the rows with the KEY_HASHES of the ordering key; null: no key, no order."""
    rows, text = side.rows.where("NOT tail"), sql.col("key")
    if bench.spec.key != "key":
        rows, text = with_text(rows, "order_key", bench.spec.key), sql.col("order_key")
    hashed = zip(KEY_HASHES, hashes([text.cast("binary")]), strict=True)
    return rows.withColumns({name: sql.when(text.isNotNull(), each) for name, each in hashed})


def check(bench: Bench, left: Rows, right: Rows, known: Identities) -> tuple[list[Finding], int]:
    """Return findings, up to the spec's limit, and how many records are late."""
    pairs = known.rows.where(FIRST_COPIES).selectExpr(
        *KEY_HASHES,
        "left_low AS left_lane",
        "left_offset",
        "right_low AS right_lane",
        "right_offset",
    )
    if known.repeated:
        later = _later_copies(bench, left, right, known.rows.where(REPEATED).select(*HASHES))
        pairs = pairs.unionByName(later)
    numbers = pairs.selectExpr(
        "left_lane AS group",
        "right_lane AS topic",
        "0 AS partition",
        "right_offset AS offset",
        "left_offset AS sequence",
    )
    found, late, spread = list[Finding](), 0, 0
    # The order is proven if every pair of lanes is in the same order as a whole.
    if not numbered.unproven(numbered.masks(numbers)).isEmpty():
        found, late, spread = _one_by_one(bench, (left, right), known.rows, pairs)
    elif known.unpaired:
        # Equal records in several partitions are not paired.
        spread = known.rows.where(UNPAIRED).select(*KEY_HASHES).distinct().count()
    messages = {
        "unordered-keys": f"{count_of(spread, 'key is')} in several partitions of a side: such"
        " records have no order, so it was not checked",
        "keyless": f"{count_of(known.keyless, 'record has')} no key: no order was checked",
    }
    found += [
        unknown(kind=kind, message=message, count=count)
        for (kind, message), count in zip(messages.items(), (spread, known.keyless), strict=True)
        if count
    ]
    return found, late


def _later_copies(bench: Bench, left: Rows, right: Rows, wanted: DataFrame) -> DataFrame:
    """Return the pairs of rows that have as many copies on both sides, copy by copy."""

    def ranked(rows: DataFrame) -> DataFrame:
        """Return the wanted rows with `copy`, the number of each row among its equals."""
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

    one, other = (ranked(_certain(bench, side)) for side in (left, right))
    return (
        one.alias("l")
        .join(other.alias("r"), [*HASHES, "copy"])
        .selectExpr(
            *(f"l.{key}" for key in KEY_HASHES),
            "l.lane AS left_lane",
            "l.offset AS left_offset",
            "r.lane AS right_lane",
            "r.offset AS right_offset",
        )
    )


def _one_by_one(
    bench: Bench, sides: tuple[Rows, Rows], known: DataFrame, pairs: DataFrame
) -> tuple[list[Finding], int, int]:
    """Return late records up to the limit, their number, and the number of keys in several lanes.

    A record is late if its right copy comes after a record of its key that follows it on the left.
    """
    bench.events.step("checking single keys whose order is not proven yet")
    keys = list(KEY_HASHES)
    lanes = (
        known.where("key_first IS NOT NULL")
        .groupBy(*keys)
        .agg(
            *(sql.min(f"{side}_low").alias(f"{side}_low") for side in ("left", "right")),
            *(sql.max(f"{side}_high").alias(f"{side}_high") for side in ("left", "right")),
        )
    )
    several = lanes.where("left_low <> left_high OR right_low <> right_high").select(*keys)
    spread = several.persist()
    chunked = pairs.join(spread, keys, "left_anti").withColumn(
        "chunk", sql.expr(f"shiftright(right_offset, {CHUNK_BITS})")
    )
    within = Window.partitionBy(*keys, "chunk").orderBy("right_offset").rowsBetween(*EARLIER)
    across = Window.partitionBy(*keys).orderBy("chunk").rowsBetween(*EARLIER)
    beyond = (
        chunked.groupBy(*keys, "chunk")
        .agg(sql.max("left_offset").alias("highest"))
        .withColumn("beyond", sql.max("highest").over(across))
        .drop("highest")
    )
    counted = Observation()
    late = (
        chunked.withColumn("near", sql.max("left_offset").over(within))
        .join(beyond, [*keys, "chunk"])
        .where("left_offset < near OR left_offset < beyond")
        .observe(counted, sql.count("*").alias("late"))
    )
    try:
        rows = late.orderBy("right_lane", "right_offset").limit(bench.spec.findings).collect()
        total = spread.count()
    finally:
        spread.unpersist()
    before, after = (
        places_in_topic(bench, side.side, rows, name)
        for side, name in zip(sides, ("left", "right"), strict=True)
    )
    findings = [
        error(
            kind="disorder",
            message=f"a record comes after another record of its key in {sides[1].name},"
            f" and before that record in {sides[0].name}",
            topic=there.topic,
            partition=there.partition,
            copies=(here, there),
        )
        for here, there in zip(before, after, strict=True)
    ]
    return findings, counted.get["late"], total
