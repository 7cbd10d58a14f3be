"""topic-topic with `ordered`: records of one key are in the same order on both sides.

What is missing or extra is the compare's own finding; here only what is on both sides counts.
Records without a key have no order, and neither have keys in several partitions: a run that finds
such records cannot agree.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import DataFrame

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares import key_order
from pyconnect_reconcile.compares.key_order import Identities
from pyconnect_reconcile.compares.places import places_in_topic
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows
from pyconnect_reconcile.findings import Finding, Place, Severity, count_of


def known(bench: Bench, left: Rows, right: Rows) -> Identities:
    """Return the identities of both sides, which `check` and the compare itself use."""
    bench.events.step(f"comparing {left.name} with {right.name}, and the order of each key")
    return key_order.identities(*(_certain(bench, side) for side in (left, right)))


def check(bench: Bench, left: Rows, right: Rows, known: Identities) -> tuple[list[Finding], int]:
    """Return findings, up to the spec's limit, and how many records are late."""
    rows = known.rows
    pairs = key_order.first_copies(rows)
    if known.repeated:
        origin, copy = (_certain(bench, side) for side in (left, right))
        later = key_order.later_copies(origin, copy, key_order.repeated(rows))
        pairs = pairs.unionByName(later)
    unordered = list(_keyless(known.keyless))
    if key_order.is_proven(pairs):
        # Equal records in several partitions are in no pair.
        keys = key_order.unpaired(rows).select(*KEY_HASHES).distinct()
        return [*_spread(keys.count() if known.unpaired else 0), *unordered], 0
    found, total = _one_by_one(bench, (left, right), rows, pairs)
    return [*found, *unordered], total


def _certain(bench: Bench, side: Rows) -> DataFrame:
    return key_order.with_order_keys(side.rows.where("NOT tail"), bench.spec.key)


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
        places_in_topic(bench, side.side, rows, name)
        for side, name in zip(sides, ("left", "right"), strict=True)
    )
    findings = [_late(sides, *each) for each in zip(before, after, strict=True)]
    return [*findings, *_spread(several)], total


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
            message=f"{count_of(count, 'key is')} in several partitions of a side: such"
            " records have no order, so it was not checked",
            count=count,
        )


def _keyless(count: int) -> Iterator[Finding]:
    if count:
        yield Finding(
            kind="keyless",
            severity=Severity.UNKNOWN,
            message=f"{count_of(count, 'record has')} no key: no order was checked",
            count=count,
        )
