"""The last pass of a check: the places and keys of the few records that matter.

A broadcast join keeps them while the topic is read again, so keys pass through no exchange.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.findings import Place

# So many copies of one thing are named; all are counted.
COPIES_KEPT = 20
PLACE_COLUMNS = ("topic", "partition", "offset", "timestamp_ms", "CAST(key AS STRING) AS key")


def places(
    records: DataFrame, wanted: DataFrame, on: Sequence[str], *, limit: int
) -> dict[tuple[object, ...], list[Place]]:
    """Return where the records are whose columns `on` are wanted, by these columns' values."""
    rows = (
        records.join(sql.broadcast(wanted.select(*on).distinct()), list(on), "left_semi")
        .selectExpr(*(f"`{name}`" for name in on), *PLACE_COLUMNS)
        .limit(limit * COPIES_KEPT)
        .collect()
    )
    found: dict[tuple[object, ...], list[Place]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in on), []).append(place_of(row))
    for each in found.values():
        each.sort(key=lambda place: (place.topic or "", place.partition or 0, place.offset or 0))
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
