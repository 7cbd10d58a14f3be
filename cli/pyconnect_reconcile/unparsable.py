"""Records whose value is not where it was said to be: counted, sampled, fatal only when asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame

from pyconnect_reconcile.findings import Finding, Place, Severity
from pyconnect_reconcile.lookup import PLACE_COLUMNS, place_of

SAMPLES = 10


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
    of: str = "records",
    fate: str = "they were left out",
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
            message=f"{count} of {rows} {of} have no {what}; {fate}",
            count=count,
            copies=tuple(places(records.where(wrong).limit(SAMPLES))),
        )
    ]
