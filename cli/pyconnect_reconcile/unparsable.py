"""Records whose value is not where it was said to be, or that a sink cannot hold, with samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.findings import Finding, Place, Severity, count_of
from pyconnect_reconcile.lookup import PLACE_COLUMNS, place_of

SAMPLES = 10
UNHELD, MOST_FIELDS = "not-representable", 50


def places_of_records(records: DataFrame) -> list[Place]:
    """Return where records of topics are."""
    return list(map(place_of, records.selectExpr(*PLACE_COLUMNS).collect()))


def unparsable_finding(
    records: DataFrame,
    wrong: Column,
    *,
    count: int,
    rows: int,
    what: str,
    fatal: bool,
    of: str = "record",
    fate: str = "left out",
    places: Callable[[DataFrame], Sequence[Place]] = places_of_records,
) -> list[Finding]:
    """Return one finding with samples of the `count` records for which `wrong` holds.

    `rows` is how many records (or what `of` says) there are: when none could be used the run cannot
    tell anything. `places` finds the samples.
    """
    if count == 0:
        return []
    severity = Severity.NOTE
    if fatal:
        severity = Severity.ERROR
    elif count >= rows:
        severity = Severity.UNKNOWN
    return [
        Finding(
            kind="unparsable",
            severity=severity,
            message=f"{count:,} of {count_of(rows, of)} {'has' if count == 1 else 'have'} no"
            f" {what}; {fate}",
            count=count,
            copies=tuple(places(records.where(wrong).limit(SAMPLES))),
        )
    ]


def unheld_findings(lost: DataFrame, sink: str) -> list[Finding]:
    """Return one finding for each field whose value in `lost` rows the sink's columns cannot hold.

    `lost` are rows of `compares.sides` that are not in the sink.
    """
    each = lost.withColumn("field", sql.explode("unheld"))
    counted = each.groupBy("field").count().orderBy(sql.desc("count"), "field")
    return [
        Finding(
            kind=UNHELD,
            severity=Severity.ERROR,
            message=f"{count_of(row['count'], f'value of `{row.field}` has')}"
            f" no place in {sink}: its columns cannot hold such values",
            of="field",
            group=row.field,
            count=row["count"],
            copies=tuple(
                places_of_records(each.where(sql.col("field") == row.field).limit(SAMPLES))
            ),
        )
        for row in counted.limit(MOST_FIELDS).collect()
    ]
