"""Records that the sink's columns cannot hold: which fields, how many, and some of them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.findings import Finding, Severity
from pyconnect_reconcile.unparsable import SAMPLES, places_of_records

KIND = "not-representable"
MOST_FIELDS = 50


def findings(lost: DataFrame, sink: str) -> list[Finding]:
    """Return one finding for each field whose value in `lost` rows the sink's columns cannot hold.

    `lost` are rows of `compares.sides` that are not in the sink.
    """
    each = lost.withColumn("field", sql.explode("unheld"))
    counted = each.groupBy("field").count().orderBy(sql.desc("count"), "field")
    return [
        Finding(
            kind=KIND,
            severity=Severity.ERROR,
            message=f"{row['count']:,} values of `{row.field}` have no place in {sink}: its columns"
            " cannot hold them",
            of="field",
            group=row.field,
            count=row["count"],
            copies=tuple(
                places_of_records(each.where(sql.col("field") == row.field).limit(SAMPLES))
            ),
        )
        for row in counted.limit(MOST_FIELDS).collect()
    ]
