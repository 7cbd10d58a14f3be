"""topic-topic with `ordered`: records of one key are in the same order on both sides.

What is missing or extra is the compare's own finding; here only what is on both sides counts.
Records without a key have no order, and neither have keys in several partitions: a run that finds
such records cannot agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares import key_order
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows
from pyconnect_reconcile.findings import Finding, Place, Severity
from pyconnect_reconcile.lookup import AT, places
from pyconnect_reconcile.spec import TopicSide
from pyconnect_reconcile.values.extract import text_of
from pyconnect_reconcile.values.hashes import hashes


def check(bench: Bench, left: Rows, right: Rows) -> tuple[list[Finding], int]:
    """Return findings, up to the spec's limit, and how many records are late."""
    bench.events.step("checking the order of each key")
    origin, copy = _lanes(bench, left), _lanes(bench, right)
    known = key_order.identities(origin, copy).persist()
    try:
        pairs = key_order.first_copies(known)
        wanted = key_order.repeated(known)
        if not wanted.isEmpty():
            pairs = pairs.unionByName(key_order.later_copies(origin, copy, wanted))
        unordered = list(_keyless(known))
        if key_order.is_proven(pairs):
            # Equal records in several partitions are in no pair.
            several = key_order.unpaired(known).select(*KEY_HASHES).distinct().count()
            return [*_spread(several), *unordered], 0
        found, total = _one_by_one(bench, (left, right), known, pairs)
        return [*found, *unordered], total
    finally:
        known.unpersist()


def _lanes(bench: Bench, rows: Rows) -> DataFrame:
    assert isinstance(rows.side, TopicSide)
    where = bench.spec.key
    key = sql.col("key") if where == "key" else text_of(where)
    columns = [sql.when(key.isNotNull(), each) for each in hashes([key.cast("binary")])]
    hashed = rows.rows.where(~sql.col("tail"))
    return key_order.with_lanes(
        hashed.withColumns(dict(zip(KEY_HASHES, columns, strict=True))), rows.side.topics
    )


def _one_by_one(
    bench: Bench, sides: tuple[Rows, Rows], known: DataFrame, pairs: DataFrame
) -> tuple[list[Finding], int]:
    bench.events.step("checking single keys whose order is not proven yet")
    spread = key_order.spread_keys(known).persist()
    late = key_order.late(pairs, spread).persist()
    try:
        several, total = spread.count(), late.count()
        rows = late.orderBy("right_lane", "right_offset").limit(bench.spec.findings).collect()
    finally:
        late.unpersist()
        spread.unpersist()
    before, after = (
        _places(bench, side, [_at(row, name, side) for row in rows])
        for side, name in zip(sides, ("left", "right"), strict=True)
    )
    findings = [
        _late(sides, before[_at(row, "left", sides[0])], after[_at(row, "right", sides[1])])
        for row in rows
    ]
    return [*findings, *_spread(several)], total


def _at(row: Row, name: str, side: Rows) -> tuple[str, int, int]:
    """Return topic, partition and offset of a pair's copy on one side."""
    assert isinstance(side.side, TopicSide)
    topic, partition = key_order.place_in(row[f"{name}_lane"], side.side.topics)
    return topic, partition, row[f"{name}_offset"]


def _places(
    bench: Bench, side: Rows, wanted: list[tuple[str, int, int]]
) -> Mapping[tuple[object, ...], Place]:
    """Look up keys and times of records; places without them where there is nothing to look up."""
    if not wanted:
        return {}
    frame = bench.spark.createDataFrame(wanted, "topic string, partition int, offset bigint")
    found = places(side.rows, frame, AT)
    return {at: copies[0] for at, copies in found.items()}


def _late(sides: tuple[Rows, Rows], before: Place, after: Place) -> Finding:
    return Finding(
        kind="disorder",
        severity=Severity.ERROR,
        message=f"a record comes after another record of its key in {sides[1].name},"
        f" and before that record in {sides[0].name}",
        topic=after.topic,
        partition=after.partition,
        copies=(before, after),
    )


def _spread(count: int) -> Iterator[Finding]:
    if count:
        yield Finding(
            kind="unordered-keys",
            severity=Severity.UNKNOWN,
            message=f"{count:,} keys are in several partitions of a side: their records have no"
            " order, so it was not checked",
            count=count,
        )


def _keyless(known: DataFrame) -> Iterator[Finding]:
    copies = "coalesce(greatest(left_copies, right_copies), 0)"
    [row] = known.where("key_first IS NULL").selectExpr(f"sum({copies}) AS count").collect()
    if row["count"]:
        yield Finding(
            kind="keyless",
            severity=Severity.UNKNOWN,
            message=f"{row['count']:,} records have no key: their order was not checked",
            count=row["count"],
        )
