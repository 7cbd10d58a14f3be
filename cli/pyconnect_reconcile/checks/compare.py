"""source-topic, topic-topic, topic-sink: is what was there on the left there on the right, once.

append: rows are a multiset. upsert: the last version of each key counts, tombstones remove keys.

Rows of a tail may be there or not: what a running connector has read or written beyond its
committed offsets is neither missing nor extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.checks import key_order
from pyconnect_reconcile.compares import stages, uncertain
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows, inferred_columns, plan_of, rows_of
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.file_side import FileSide
from pyconnect_reconcile.files import local_files, rows_of_lines
from pyconnect_reconcile.findings import CheckOutcome, Finding, Place, Severity
from pyconnect_reconcile.lookup import places
from pyconnect_reconcile.spec import Side, TopicSide
from pyconnect_reconcile.table_side import TableSide
from pyconnect_reconcile.topics.range_findings import open_tails, refuse_compacted, unknown_policies
from pyconnect_reconcile.unparsable import SAMPLES, places_of_records, unparsable_finding
from pyconnect_reconcile.values.hashes import HASHES
from pyconnect_reconcile.values.rows import RowPlan

KNOWN = "committed + uncommitted > 0"
DIFFERENT = "missing > 0 OR surplus > 0"
TOTALS = (
    "coalesce(sum(missing), 0) AS missing",
    f"coalesce(sum(surplus) FILTER (WHERE NOT {KNOWN}), 0) AS extra",
    f"coalesce(sum(surplus) FILTER (WHERE {KNOWN}), 0) AS repeated",
    "coalesce(sum(greatest(committed - there, 0)), 0) AS absent",
    f"count(DISTINCT bucket) FILTER (WHERE {DIFFERENT}) AS buckets",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    left: Rows
    right: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The second stage: findings up to the limit, all of them by kind, how many buckets differ.

    `ahead` counts rows of the left's tail that the right has.
    """

    findings: tuple[Finding, ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    buckets: int = 0
    ahead: int = 0


def check(bench: Bench) -> CheckOutcome:
    """Compare the two sides of the spec."""
    spec = bench.spec
    assert spec.left is not None
    assert spec.right is not None
    columns = spec.columns or inferred_columns(bench, spec.left, spec.right)
    if spec.mode == "append":
        for side in (spec.left, spec.right, spec.arrived):
            _refuse_compacted(bench, side)
    plan = plan_of(bench, columns)
    sides = _Sides(
        left=rows_of(bench, spec.left, columns=columns, plan=plan, with_tail=True),
        right=rows_of(bench, spec.right, columns=columns, plan=plan, with_tail=True),
    )
    left, right = sides.left.rows, sides.right.rows
    if spec.arrived is not None:
        arrived = rows_of(bench, spec.arrived, columns=columns, plan=plan)
        right = right.select(*stages.APPENDED).unionByName(arrived.rows.select(*stages.APPENDED))
    if spec.mode == "upsert":
        changed = _changed_since(sides.left)
        left, right = (stages.last_versions(rows.where("NOT tail")) for rows in (left, right))
        if changed is not None:
            right = right.join(changed, list(KEY_HASHES), "left_anti")
    buckets = stages.bucket_count(sides.left.length or sides.right.length)
    bench.events.step(f"comparing {sides.left.name} with {sides.right.name}")
    sums = stages.checksums(left, right, buckets)
    findings = [*_beginning(bench, sides, sums), *_unparsable(bench, sides, (left, right), sums)]
    looked = _Looked(ahead=sums.right - sums.left)
    if sums.bad:
        bench.events.step(f"examining {len(sums.bad)} of {buckets} buckets that differ")
        look = _keys if spec.mode == "upsert" else _rows
        looked = look(bench, sides, left, right, sums)
        found = looked.findings
        findings += uncertain.doubted(
            found, uncertain.doubts(bench, sides.left, sides.right, found)
        )
    findings += _under_way(sides, sums, looked)
    totals = dict(looked.totals)
    if spec.ordered:
        more, late = key_order.check(bench, sides.left, sides.right)
        findings += more
        totals = {**totals, "disorder": late}
    findings += [*_changed(sides.left), *_changed(sides.right)]
    return CheckOutcome(
        findings=tuple(findings),
        totals=totals,
        counts={
            "rows_left": sums.left,
            "rows_right": sums.right,
            "buckets": sums.buckets,
            "rows_under_way": sums.tail_left,
            "buckets_differing": looked.buckets,
            **{kind: totals.get(kind, 0) for kind in ("missing", "extra", "different")},
            **({"disorder": totals["disorder"]} if spec.ordered else {}),
        },
        not_compared=_not_compared(bench, plan),
    )


def _changed_since(left: Rows) -> DataFrame | None:
    """Return the keys of rows that a source's table has in another version than was read.

    The version that the topic has is gone from the table, which keeps the last one only.
    """
    if not isinstance(left.side, TableSide) or left.side.position is None:
        return None
    return left.rows.where("tail").select(*KEY_HASHES).distinct()


def _not_compared(bench: Bench, plan: RowPlan | None) -> tuple[str, ...]:
    """Return what may differ although both sides agree."""
    if plan is not None and plan.left_out:
        return (*_not_compared(bench, None), f"columns of no record: {', '.join(plan.left_out)}")
    spec = bench.spec
    if spec.mode == "upsert":
        return ("earlier versions of a key", "the order of keys", "headers and timestamps")
    both = isinstance(spec.left, TopicSide) and isinstance(spec.right, TopicSide)
    order = "the order of records of different keys" if spec.ordered else "the order of rows"
    return (order, "headers and timestamps" if both else "keys, headers and timestamps")


def _refuse_compacted(bench: Bench, side: Side | None) -> None:
    if isinstance(side, TopicSide):
        refuse_compacted(bench.snapshot(side.topics, side.cluster), f"{bench.spec.job} (append)")


def _beginning(bench: Bench, sides: _Sides, sums: stages.Checksums) -> Iterator[Finding]:
    """Yield what is known after the first stage."""
    for rows in (sides.left, sides.right):
        if isinstance(rows.side, TopicSide):
            snapshot = bench.snapshot(rows.side.topics, rows.side.cluster)
            yield from open_tails(snapshot)
            if bench.spec.mode == "append":
                yield from unknown_policies(snapshot)
    if sums.left == 0 and sums.right == 0:
        yield Finding(
            kind="empty-range",
            severity=Severity.UNKNOWN,
            message="there is nothing to compare: both sides are empty",
        )


def _unparsable(
    bench: Bench,
    sides: _Sides,
    compared: tuple[DataFrame, DataFrame],
    sums: stages.Checksums,
) -> Iterator[Finding]:
    """Yield what does not parse among the rows that are compared."""
    upsert = bench.spec.mode == "upsert"
    counted = ((sums.left, sums.unparsable_left), (sums.right, sums.unparsable_right))
    for rows, last, (total, wrong) in zip(
        (sides.left, sides.right), compared, counted, strict=True
    ):
        strange = rows.rows.where("NOT tail")
        if upsert:
            strange = stages.unparsable_versions(strange, last, SAMPLES)
        yield from unparsable_finding(
            strange,
            sql.lit(True) if upsert else sql.col("unparsable"),
            count=wrong,
            rows=total,
            what=f"{'last version' if upsert else 'value'} that parses ({rows.name})",
            fatal=bench.spec.fail_unparsable,
            of="keys" if upsert else "records",
            places=partial(_places_of_strange, rows),
        )


def _places_of_strange(rows: Rows, strange: DataFrame) -> list[Place]:
    match rows.side:
        case TopicSide():
            return places_of_records(strange)
        case FileSide(format="text" | "json") as side:
            lines = strange.selectExpr("CAST(value AS BINARY) AS line").distinct().collect()
            found = _places_of_lines(rows, side, {bytes(row.line) for row in lines})
            return [place for places in found.values() for place in places][:SAMPLES]
        case FileSide() | TableSide():
            return []
    raise ReconcileError(f"a side of an unknown kind: {rows.side}")


def _changed(rows: Rows) -> list[Finding]:
    """Return a finding when files changed; what was copied may be appended to."""
    return rows.files.changes(rows.side.paths) if isinstance(rows.side, FileSide) else []


def _under_way(sides: _Sides, sums: stages.Checksums, looked: _Looked) -> Iterator[Finding]:
    """Explain the rows of the tails: without them the counts of both sides do not add up."""
    if sums.tail_left:
        yield Finding(
            kind="under-way",
            severity=Severity.NOTE,
            message=f"{sums.tail_left:,} rows of {sides.left.name} are beyond the compared"
            f" offsets; {looked.ahead:,} of them are already in {sides.right.name}",
            count=sums.tail_left,
        )
    if sums.tail_right:
        yield Finding(
            kind="unfinished",
            severity=Severity.NOTE,
            message=f"{sums.tail_right:,} rows of {sides.right.name} are not finished (a last"
            " line without an end, or an open transaction): they count as present if they"
            " are expected, and never as extra",
            count=sums.tail_right,
        )


def _rows(
    bench: Bench, sides: _Sides, left: DataFrame, right: DataFrame, sums: stages.Checksums
) -> _Looked:
    """Look at the rows of bad buckets, append mode."""
    limit = bench.spec.findings
    different = stages.differing_rows(bench, left, right, sums).persist()
    try:
        total = different.selectExpr(*TOTALS).collect()[0]
        missing = different.where("missing > 0").orderBy(*HASHES).limit(limit).persist()
        surplus = different.where("surplus > 0").orderBy(*HASHES).limit(limit).persist()
        gone = _places(sides.left, missing, HASHES, limit) if total.missing else {}
        many = _places(sides.right, surplus, HASHES, limit) if total.extra + total.repeated else {}
        findings = [_missing(row, gone, sides) for row in missing.collect()]
        findings += [_surplus(row, many, sides, bench) for row in surplus.collect()]
        missing.unpersist()
        surplus.unpersist()
    finally:
        different.unpersist()
    totals = {"missing": total.missing, "extra": total.extra, "repeated": total.repeated}
    parsed_left, parsed_right = (
        sums.left - sums.unparsable_left,
        sums.right - sums.unparsable_right,
    )
    return _Looked(
        findings=tuple(findings),
        totals=totals,
        buckets=total.buckets,
        ahead=parsed_right - parsed_left + total.absent - total.extra - total.repeated,
    )


Places = Mapping[tuple[object, ...], Sequence[Place]]


def _identity(row: Row, names: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def _missing(row: Row, found: Places, sides: _Sides) -> Finding:
    present = row.committed - row.missing
    there = f" ({present} of {row.committed} copies are there)" if present else ""
    return Finding(
        kind="missing",
        severity=Severity.ERROR,
        message=f"in {sides.left.name}, not in {sides.right.name}{there}",
        count=row.missing,
        copies=tuple(found.get(_identity(row, HASHES), ())),
    )


def _surplus(row: Row, found: Places, sides: _Sides, bench: Bench) -> Finding:
    known = row.committed + row.uncommitted
    copies = tuple(found.get(_identity(row, HASHES), ()))
    if known == 0:
        return Finding(
            kind="extra",
            severity=Severity.ERROR,
            message=f"in {sides.right.name}, not in {sides.left.name}",
            count=row.there,
            copies=copies,
        )
    return Finding(
        kind="repeated",
        severity=Severity.NOTE if bench.spec.duplicates_allowed else Severity.ERROR,
        message=f"{row.there} times in {sides.right.name}, {known} times in {sides.left.name}",
        count=row.surplus,
        copies=copies,
    )


def _keys(
    bench: Bench, sides: _Sides, left: DataFrame, right: DataFrame, sums: stages.Checksums
) -> _Looked:
    """Look at the keys of bad buckets, upsert mode."""
    limit = bench.spec.findings
    every = stages.differing_keys(bench, left, right, sums).persist()
    tails = [stages.tail_versions(rows.rows) for rows in (sides.left, sides.right)]
    different = stages.without_versions_under_way(every, *tails).persist()
    try:
        totals = {row.kind: row["count"] for row in different.groupBy("kind").count().collect()}
        buckets = different.select("bucket").distinct().count()
        under_way = every.count() - sum(totals.values())
        chosen = different.orderBy(*KEY_HASHES).limit(limit).persist()
        before = _places(sides.left, chosen, KEY_HASHES, limit)
        after = _places(sides.right, chosen, KEY_HASHES, limit)
        findings = [
            _key_finding(row.kind, _identity(row, KEY_HASHES), before, after, sides)
            for row in chosen.collect()
        ]
        chosen.unpersist()
    finally:
        different.unpersist()
        every.unpersist()
    if under_way:
        findings.append(_keys_under_way(under_way, sides))
    return _Looked(findings=tuple(findings), totals=totals, buckets=buckets)


def _keys_under_way(count: int, sides: _Sides) -> Finding:
    return Finding(
        kind="under-way",
        severity=Severity.NOTE,
        message=f"{count:,} keys have a version in {sides.right.name} that is beyond the"
        f" compared offsets in {sides.left.name}, or the reverse",
        count=count,
    )


def _key_finding(
    kind: str, identity: tuple[object, ...], before: Places, after: Places, sides: _Sides
) -> Finding:
    texts = {
        "missing": f"the key is in {sides.left.name}, not in {sides.right.name}",
        "extra": f"the key is in {sides.right.name}, not in {sides.left.name}",
        "different": f"the last version in {sides.right.name} is not that of {sides.left.name}",
    }
    return Finding(
        kind=kind,
        severity=Severity.ERROR,
        message=texts[kind],
        # The last version of each side stands for it.
        copies=(*before.get(identity, ())[-1:], *after.get(identity, ())[-1:]),
    )


def _places(rows: Rows, wanted: DataFrame, on: Sequence[str], limit: int) -> Places:
    match rows.side:
        case TopicSide():
            return places(rows.rows, wanted, on, last=on is KEY_HASHES)
        case FileSide(format="text" | "json") as side:
            return _lines(rows, side, wanted, on, limit)
        case FileSide() | TableSide():
            return {}
    raise ReconcileError(f"a side of an unknown kind: {rows.side}")


def _lines(rows: Rows, side: FileSide, wanted: DataFrame, on: Sequence[str], limit: int) -> Places:
    """Find lines again in local files; their text stays here."""
    found = (
        rows.rows.join(sql.broadcast(wanted.select(*on).distinct()), list(on), "left_semi")
        .selectExpr(*on, "CAST(value AS BINARY) AS line")
        .distinct()
        .limit(limit)
        .collect()
    )
    places = _places_of_lines(rows, side, {bytes(row.line) for row in found})
    return {_identity(row, on): places[bytes(row.line)] for row in found}


def _places_of_lines(rows: Rows, side: FileSide, lines: set[bytes]) -> Mapping[bytes, list[Place]]:
    """Find lines in the files; what follows a committed part is not looked at."""
    copies = {str(copy): name for copy, name in rows.files.copies.items()}
    found = rows_of_lines(
        list(rows.files.copies) or local_files(rows.files.listed or side.paths), lines
    )
    return {
        line: [Place(file=copies.get(file, file), row=row) for file, row in where]
        for line, where in found.items()
    }
