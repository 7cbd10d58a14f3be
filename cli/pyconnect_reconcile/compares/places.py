"""The places of a compare's rows in topics.

A lane is a partition of one of a side's topics, as a number that Spark aggregates quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.findings import Place
from pyconnect_reconcile.lookup import AT, places
from pyconnect_reconcile.spec import Side, TopicSide

LANE_BITS = 32


def lane_of(topics: Sequence[str]) -> Column:
    """Return the lane of a record: the index of its topic, then its partition in LANE_BITS."""
    number = sql.lit(None).cast("bigint")
    for index, topic in enumerate(topics):
        number = sql.when(sql.col("topic") == topic, sql.lit(index << LANE_BITS)).otherwise(number)
    return (number + sql.col("partition")).cast("bigint")


def places_of_rows(bench: Bench, side: Side, rows: Sequence[Row], name: str) -> list[Place]:
    """Return the places in the columns NAME_lane and NAME_offset, with keys and times.

    Reads only the offsets from the first to the last place of each partition.
    """
    assert isinstance(side, TopicSide)
    wanted = [
        (
            side.topics[row[f"{name}_lane"] >> LANE_BITS],
            row[f"{name}_lane"] & (1 << LANE_BITS) - 1,
            row[f"{name}_offset"],
        )
        for row in rows
    ]
    if not wanted:
        return []
    offsets: dict[tuple[str, int], list[int]] = {}
    for topic, partition, offset in wanted:
        offsets.setdefault((topic, partition), []).append(offset)
    ranges = [
        replace(part, start=min(among), end=max(among) + 1)
        for part in bench.snapshot(side.topics, side.cluster).partitions
        if (among := offsets.get((part.topic, part.partition)))
    ]
    records = bench.records(ranges, isolation=side.isolation, cluster=side.cluster)
    frame = bench.spark.createDataFrame(wanted, "topic string, partition int, offset bigint")
    found = places(records, frame, AT)
    return [found[at][0] for at in wanted]
