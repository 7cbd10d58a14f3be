"""The last pass of a check: the places and keys of the few records that matter.

A broadcast join keeps them while the topic is read again. Only the kept places of a record pass
through an exchange, however often the record is repeated.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as sql

from pyconnect_reconcile.findings import Place

# So many copies of one thing are named, the first ones; all are counted. Spark keeps that many
# rows of each group before it exchanges them (`WindowGroupLimit`).
COPIES_KEPT = 10
AT = ("topic", "partition", "offset")
PLACE_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "CAST(key AS STRING) AS key")


def places(
    records: DataFrame, wanted: DataFrame, on: Sequence[str], *, last: bool = False
) -> dict[tuple[object, ...], list[Place]]:
    """Return where the records are whose columns `on` are wanted, by these columns' values.

    The first COPIES_KEPT of each, or the last one by its offset.
    """
    chosen = records.join(sql.broadcast(wanted.select(*on).distinct()), list(on), "left_semi")
    order = [sql.desc("offset"), sql.desc("partition")] if last else list(map(sql.col, AT))
    place = sql.row_number().over(Window.partitionBy(*on).orderBy(*order))
    others = [f"`{name}`" for name in on if name not in AT]
    rows = (
        chosen.selectExpr(*others, *PLACE_COLUMNS)
        .withColumn("place", place)
        .where(sql.col("place") <= (1 if last else COPIES_KEPT))
        .collect()
    )
    found: dict[tuple[object, ...], list[Place]] = {}
    for row in sorted(rows, key=lambda row: int(row.place)):
        found.setdefault(tuple(row[name] for name in on), []).append(place_of(row))
    return found


def place_of(row: Row) -> Place:
    """Return the place in a row of PLACE_COLUMNS."""
    return Place(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        timestamp_ms=row.timestamp_ms,
        key=row.key,
    )
