"""topic-topic with `ordered`: records of one key are in the same order on both sides.

What is missing or extra is the compare's own finding; here only what is on both sides counts.
Records without a key have no order.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares import key_order
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows
from pyconnect_reconcile.findings import Finding, Place, Severity
from pyconnect_reconcile.lookup import places
from pyconnect_reconcile.spec import TopicSide
from pyconnect_reconcile.values.extract import text_of
from pyconnect_reconcile.values.hashes import hashes

AT = ("topic", "partition", "offset")


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
        pairs = pairs.persist()
        try:
            if key_order.is_proven(pairs):
                return [], 0
            return _one_by_one(bench, (left, right), known, pairs)
        finally:
            pairs.unpersist()
    finally:
        known.unpersist()


def _lanes(bench: Bench, rows: Rows) -> DataFrame:
    assert isinstance(rows.side, TopicSide)
    where = bench.spec.key
    key = sql.col("key") if where == "key" else text_of(where)
    keyed = rows.rows.where(key.isNotNull() & ~sql.col("tail"))
    columns = hashes([key.cast("binary")])
    return key_order.with_lanes(
        keyed.withColumns(dict(zip(KEY_HASHES, columns, strict=True))), rows.side.topics
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
    return [*findings, *([_spread(several)] if several else [])], total


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
    found = places(side.rows, frame, AT, limit=len(wanted))
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


def _spread(count: int) -> Finding:
    return Finding(
        kind="unordered-keys",
        severity=Severity.NOTE,
        message=f"{count:,} keys are in several partitions of a side: their records have no"
        " order, so it was not checked",
        count=count,
    )
