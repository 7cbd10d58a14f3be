"""Records whose value is not where it was said to be: counted, sampled, fatal only when asked."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame

from pyconnect_reconcile.findings import Finding, Severity
from pyconnect_reconcile.lookup import PLACE_COLUMNS, place_of

SAMPLES = 10


def unparsable_finding(
    records: DataFrame, wrong: Column, *, count: int, rows: int, what: str, fatal: bool
) -> list[Finding]:
    """Return one finding with samples of the `count` records for which `wrong` holds.

    `rows` is how many records were read: when none could be used the run cannot tell anything.
    """
    if count == 0:
        return []
    samples = records.where(wrong).selectExpr(*PLACE_COLUMNS).limit(SAMPLES).collect()
    severity = Severity.NOTE
    if fatal:
        severity = Severity.ERROR
    elif count >= rows:
        severity = Severity.UNKNOWN
    return [
        Finding(
            kind="unparsable",
            severity=severity,
            message=f"{count} of {rows} records have no {what}; they were left out",
            count=count,
            copies=tuple(map(place_of, samples)),
        )
    ]
