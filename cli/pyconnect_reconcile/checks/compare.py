"""source-topic, topic-topic, topic-sink: is what was there on the left there on the right, once.

append: rows are a multiset. upsert: the last version of each key counts, tombstones remove keys.

Rows of a tail may be there or not: what a running connector has read or written beyond its
committed offsets is neither missing nor extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.checks import key_order
from pyconnect_reconcile.compares import stages, uncertain
from pyconnect_reconcile.compares.columns import (
    columns_of_records,
    columns_without_values,
    compared_columns,
    with_values,
)
from pyconnect_reconcile.compares.key_order import Identities
from pyconnect_reconcile.compares.places import (
    Places,
    copies_of,
    identity_of,
    places_of,
    places_of_strange,
)
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows, plan_of, rows_of
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.file_side import LINE_FORMATS, FileSide
from pyconnect_reconcile.files import with_unread_marks
from pyconnect_reconcile.findings import (
    COPIES,
    CheckOutcome,
    Finding,
    Severity,
    Verdict,
    count_of,
    verdict_of,
)
from pyconnect_reconcile.spec import Spec, TopicSide
from pyconnect_reconcile.table_side import VALUE, TableSide
from pyconnect_reconcile.topics.range_findings import (
    open_tails,
    refuse_compacted,
    removed_beginnings,
    unknown_policies,
    without_commits,
)
from pyconnect_reconcile.unparsable import SAMPLES, UNHELD, unheld_findings, unparsable_finding
from pyconnect_reconcile.values.hashes import HASHES
from pyconnect_reconcile.values.normal import Columns
from pyconnect_reconcile.values.rows import RowPlan

KNOWN = "committed + uncommitted > 0"
TOTALS = (
    "coalesce(sum(missing), 0) AS missing",
    # Observed metrics take no FILTER.
    f"coalesce(sum(IF({KNOWN}, 0, surplus)), 0) AS extra",
    f"coalesce(sum(IF({KNOWN}, surplus, 0)), 0) AS repeated",
    "coalesce(sum(greatest(committed - there, 0)), 0) AS absent",
    "coalesce(sum(IF(missing > 0, 1, 0)), 0) AS rows_missing",
    "coalesce(sum(IF(surplus > 0, 1, 0)), 0) AS rows_surplus",
)
# Both kinds of rows that differ lie side by side in most topics that differ much.
LOOKED_AT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    left: Rows
    right: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _First:
    """The first stage: what was compared, in rows of both sides, and their checksums.

    `absent` are columns that no record has, of which some row has a value. `known` are the
    identities of an ordered compare, which prove equal sides without another stage.
    """

    sides: _Sides
    left: DataFrame
    right: DataFrame
    sums: stages.Checksums
    absent: tuple[str, ...] = ()
    known: Identities | None = None


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
    columns = compared_columns(bench)
    if spec.mode == "append":
        for side in (spec.left, spec.right, spec.arrived):
            if isinstance(side, TopicSide):
                snapshot = bench.snapshot(side.topics, side.cluster)
                refuse_compacted(snapshot, f"{spec.job} (append)")
    plan = plan_of(bench, columns)
    first = _first(bench, columns, plan)
    if plan is None and columns.all and (first.sums.bad or _unread(bench, first, columns)):
        fitted, absent = columns_of_records(bench, columns)
        if fitted != columns:
            first = replace(_first(bench, fitted, plan), absent=absent)
        if unread := _unread(bench, first, fitted):
            raise NotAuditable(
                f"no record has the columns that are compared: {', '.join(unread)}",
                hint="correct the names or paths: --column",
            )
    elif plan is not None:
        # A sink's table may have columns that its connector does not write.
        fields = plan.contents[VALUE].fields
        names = [n for n in plan.left_out if spec.job != "topic-sink" or n in fields]
        first = replace(first, absent=with_values(bench, names))
    return _outcome(bench, first, _not_compared(spec, plan))


def _unread(bench: Bench, first: _First, columns: Columns) -> tuple[str, ...]:
    sums = first.sums
    if not bench.spec.columns or sums.bad or sums.unparsable_left == sums.left:
        return ()
    return columns_without_values(bench, first.sides.left, first.sides.right, columns)


def _first(bench: Bench, columns: Columns, plan: RowPlan | None) -> _First:
    spec = bench.spec
    assert spec.left is not None
    assert spec.right is not None
    sides = _Sides(
        left=rows_of(bench, spec.left, columns=columns, plan=plan, with_tail=True),
        right=rows_of(bench, spec.right, columns=columns, plan=plan, with_tail=True),
    )
    left, right = sides.left.rows, sides.right.rows
    if spec.arrived is not None:
        arrived = rows_of(bench, spec.arrived, columns=columns, plan=plan)
        right = right.select(*stages.APPENDED).unionByName(arrived.rows.select(*stages.APPENDED))
    if spec.mode == "upsert":
        left, right = (stages.last_versions(rows.where("NOT tail")) for rows in (left, right))
        if isinstance(spec.left, TableSide) and spec.left.position is not None:
            # A source's table keeps last versions only: one that the topic has may be gone from it.
            changed = sides.left.rows.where("tail").select(*KEY_HASHES).distinct()
            right = right.join(changed, list(KEY_HASHES), "left_anti")
    buckets = stages.bucket_count(sides.left.length or sides.right.length)
    known = key_order.known(bench, sides.left, sides.right) if spec.ordered else None
    sums = known.sums if known is not None and not _has_tail(bench, spec) else None
    if sums is None:
        bench.events.step(f"comparing {sides.left.name} with {sides.right.name}")
        sums = stages.checksums(left, right, buckets)
    return _First(sides=sides, left=left, right=right, sums=sums, known=known)


def _has_tail(bench: Bench, spec: Spec) -> bool:
    return any(
        part.beyond_end.length or part.open_offsets.length
        for side in (spec.left, spec.right)
        if isinstance(side, TopicSide)
        for part in bench.snapshot(side.topics, side.cluster).partitions
    )


def _outcome(bench: Bench, first: _First, not_compared: tuple[str, ...]) -> CheckOutcome:
    spec, sides, sums = bench.spec, first.sides, first.sums
    findings = [*_beginning(bench, first), *_unparsable(bench, first)]
    looked = _Looked(ahead=sums.right - sums.left)
    if sums.bad:
        bench.events.step(f"examining {len(sums.bad)} of {sums.buckets} buckets that differ")
        look = _keys if spec.mode == "upsert" else _rows
        looked = look(bench, sides, first.left, first.right, sums)
        found = looked.findings
        doubts = uncertain.doubts(bench, sides.left, sides.right, found)
        findings += uncertain.doubted(found, doubts)
    findings += uncertain.under_way(spec, sides.left, sides.right, sums, ahead=looked.ahead)
    if sums.tail_right:
        both, missing = (first.left, first.right), looked.totals.get("missing", 0)
        findings += uncertain.unfinished(bench, sides.right, sums, both, missing=missing)
    totals = dict(looked.totals)
    if unheld := [each.count for each in looked.findings if each.kind == UNHELD]:
        totals[UNHELD] = sum(unheld)
    if spec.mode == "upsert":
        doubled = list(_doubled(first))
        findings += doubled
        totals |= {each.kind: each.count for each in doubled}
    if spec.ordered:
        assert first.known is not None
        more, late = key_order.check(bench, sides.left, sides.right, first.known)
        first.known.rows.unpersist()
        findings += more
        totals = {**totals, "disorder": late}
    for rows in (sides.left, sides.right):
        if isinstance(rows.side, FileSide):
            # What was copied may be appended to.
            findings += rows.files.changes(rows.side.paths)
    if sums.left == 0 and verdict_of(findings) is not Verdict.DIFFER:
        message = f"there is nothing to compare: {sides.left.name} has no row in the range"
        findings.append(Finding(kind="empty-range", severity=Severity.UNKNOWN, message=message))
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
        not_compared=not_compared,
    )


def _doubled(first: _First) -> Iterator[Finding]:
    """Yield keys with several rows where a key has one row: nothing orders these rows."""
    counted = (
        (first.sides.left, first.left, first.sums.further_left, Severity.UNKNOWN),
        (first.sides.right, first.right, first.sums.further_right, Severity.ERROR),
    )
    for rows, versions, further, severity in counted:
        if isinstance(rows.side, TopicSide) or not further:
            continue
        several = versions.where("copies > 1 AND NOT keyless")
        chosen = several.orderBy(*KEY_HASHES).limit(SAMPLES)
        found = places_of(rows, chosen, KEY_HASHES, SAMPLES)
        yield Finding(
            kind="repeated",
            severity=severity,
            message=f"{count_of(several.count(), 'key has')} {count_of(further, 'row')} in"
            f" {rows.name} more than one for each key",
            count=further,
            copies=tuple(place for places in found.values() for place in places)[:SAMPLES],
        )


def _not_compared(spec: Spec, plan: RowPlan | None) -> tuple[str, ...]:
    """Return what may differ although both sides agree."""
    sides = (spec.left, spec.right)
    topics = [side for side in sides if isinstance(side, TopicSide)]
    if spec.mode == "upsert":
        found = ["earlier versions of a key", "the order of keys", "headers and timestamps"]
    else:
        order = "the order of records of different keys" if spec.ordered else "the order of rows"
        found = [order, "headers and timestamps"]
        if len(topics) < 2:
            found[1] = f"keys, {found[1]}"
    if any(side.value == "connect-json" and side.row is None for side in topics):
        found.append("the schemas beside the values")
    for side in sides:
        if isinstance(side, FileSide) and side.format in LINE_FORMATS and side.store is None:
            unread = with_unread_marks(side.paths)
            found += (f"a byte order mark at the beginning of {path}" for path in unread)
    if spec.columns:
        named = ", ".join(rule.name for rule in spec.columns)
        found.append(f"anything but the columns that the spec names: {named}")
    elif plan is not None and plan.left_out:
        found.append(f"columns of no record: {', '.join(plan.left_out)}")
    return tuple(found)


def _beginning(bench: Bench, first: _First) -> Iterator[Finding]:
    """Yield what is known after the first stage."""
    for rows in (first.sides.left, first.sides.right):
        if isinstance(rows.side, TopicSide):
            snapshot = bench.snapshot(rows.side.topics, rows.side.cluster)
            yield from open_tails(snapshot)
            yield from without_commits(snapshot, bench.spec.until)
            untold = "records among them were not compared"
            # A chain of reports begins with what is there; `chain` adds what a later one lacks.
            severity = Severity.NOTE if bench.spec.since_last else Severity.UNKNOWN
            yield from removed_beginnings(snapshot, severity, untold)
            if bench.spec.mode == "append":
                yield from unknown_policies(snapshot)
            yield from uncertain.keyless_tombstones(bench.spec, rows, rows.side)
    if first.absent:
        yield Finding(
            kind="not-compared",
            severity=Severity.UNKNOWN,
            message=f"the columns {', '.join(first.absent)} have values that were not compared, as"
            " no record has them in this form: name the columns that are compared",
            count=len(first.absent),
        )
    if first.sums.keyless:
        yield Finding(
            kind="keyless",
            severity=Severity.UNKNOWN,
            message=f"{count_of(first.sums.keyless, 'row has')} no key (`{bench.spec.key}`): all"
            " different ones were compared, but not how often each is there",
            count=first.sums.keyless,
        )
    if first.sums.tied:
        yield Finding(
            kind="unordered-keys",
            severity=Severity.UNKNOWN,
            message=f"{count_of(first.sums.tied, 'key has')} last records of the same time in"
            " several partitions: either version was taken for the last one",
            count=first.sums.tied,
        )


def _unparsable(bench: Bench, first: _First) -> Iterator[Finding]:
    """Yield what does not parse among the rows that are compared: their bytes are."""
    upsert = bench.spec.mode == "upsert"
    sides, sums, compared = first.sides, first.sums, (first.left, first.right)
    counted = ((sums.left, sums.unparsable_left), (sums.right, sums.unparsable_right))
    for rows, last, (total, wrong) in zip(
        (sides.left, sides.right), compared, counted, strict=True
    ):
        strange = rows.rows.where("NOT tail AND unparsable")
        if upsert and wrong:
            strange = stages.last_records(strange, last)
        yield from unparsable_finding(
            strange,
            sql.lit(True),
            count=wrong,
            rows=total,
            what=f"{'last version' if upsert else 'value'} that parses ({rows.name})",
            fatal=bench.spec.fail_unparsable,
            of="key" if upsert else "record",
            fate="their bytes were compared",
            places=partial(places_of_strange, rows),
        )


def _rows(
    bench: Bench, sides: _Sides, left: DataFrame, right: DataFrame, sums: stages.Checksums
) -> _Looked:
    """Look at the rows of bad buckets, append mode: all are counted, the first ones are named."""
    limit = bench.spec.findings
    counted = Observation()
    different = stages.differing_rows(bench, left, right, sums)
    observed = different.observe(counted, *map(sql.expr, TOTALS))
    place = (sql.expr(f"IF(missing > 0, left_{of}, right_{of})") for of in ("lane", "offset"))
    # Repetitions come last: they may be allowed, and would hide rows that are on the right only.
    last = sql.expr(f"missing = 0 AND {KNOWN}")
    first = observed.where("missing > 0 OR surplus > 0").orderBy(last, *place, *HASHES)
    rows = first.limit(LOOKED_AT * limit).collect()
    total = counted.get
    chosen = {}
    for kind, side in (("missing", "left"), ("surplus", "right")):
        chosen[kind] = [row for row in rows if row[kind]][:limit]
        if len(chosen[kind]) < min(limit, total[f"rows_{kind}"]):
            of_kind = different.where(f"{kind} > 0")
            of_kind = of_kind.orderBy(last, f"{side}_lane", f"{side}_offset", *HASHES)
            chosen[kind] = of_kind.limit(limit).collect()
    missing, surplus = chosen["missing"], chosen["surplus"]
    lost = copies_of(bench, sides.left, missing, "left")
    found = copies_of(bench, sides.right, surplus, "right")
    if isinstance(sides.right.side, TableSide) or not found:
        # Rows without a key or a line are known by a record that they are copies of.
        known = copies_of(bench, sides.left, [row for row in surplus if row.committed], "left")
        found = {row: (*known.get(row, ())[:1], *found.get(row, ())) for row in {**known, **found}}
    findings = [_missing(row, lost, sides) for row in missing]
    if missing and not isinstance(sides.right.side, TopicSide):
        certain = sides.left.rows.where("NOT tail")
        if bench.spec.arrived is not None:
            certain = certain.join(different.where("missing > 0"), list(HASHES), "left_semi")
        findings += unheld_findings(certain, sides.right.name)
    findings += [_surplus(row, found, sides, bench) for row in surplus]
    totals = {"missing": total["missing"], "extra": total["extra"], "repeated": total["repeated"]}
    return _Looked(
        findings=tuple(findings),
        totals=totals,
        buckets=len(sums.bad) if any(totals.values()) else 0,
        ahead=sums.right - sums.left + total["absent"] - total["extra"] - total["repeated"],
    )


def _missing(row: Row, found: Places, sides: _Sides) -> Finding:
    present = row.committed - row.missing
    there = f" ({present} of {row.committed} copies are there)" if present else ""
    return Finding(
        kind="missing",
        severity=Severity.ERROR,
        message=f"in {sides.left.name}, not in {sides.right.name}{there}",
        of=COPIES if present else None,
        first=row.committed if present else None,
        last=present or None,
        count=row.missing,
        copies=tuple(found.get(identity_of(row, HASHES), ())),
    )


def _surplus(row: Row, found: Places, sides: _Sides, bench: Bench) -> Finding:
    known = row.committed + row.uncommitted
    copies = tuple(found.get(identity_of(row, HASHES), ()))
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
        message=f"{count_of(row.there, 'time')} in {sides.right.name},"
        f" {count_of(known, 'time')} in {sides.left.name}",
        of=COPIES,
        first=known,
        last=row.there,
        count=row.surplus,
        copies=copies,
    )


def _keys(
    bench: Bench, sides: _Sides, left: DataFrame, right: DataFrame, sums: stages.Checksums
) -> _Looked:
    """Look at the keys of bad buckets, upsert mode."""
    limit = bench.spec.findings
    every = stages.differing_keys(bench, left, right, sums).persist()
    possible = [stages.tail_versions(rows.rows) for rows in (sides.left, sides.right)]
    unfinished = possible[1]
    if sums.tied:
        tied = (stages.tied_versions(versions) for versions in (left, right))
        possible = [one.unionByName(other) for one, other in zip(possible, tied, strict=True)]
    different = stages.without_versions_under_way(every, *possible).persist()
    try:
        totals = {row.kind: row["count"] for row in different.groupBy("kind").count().collect()}
        under_way = every.count() - sum(totals.values())
        is_open = under_way > 0 and not unfinished.isEmpty()
        chosen = different.orderBy(*KEY_HASHES).limit(limit).persist()
        before = places_of(sides.left, chosen, KEY_HASHES, limit)
        after = places_of(sides.right, chosen, KEY_HASHES, limit)
        findings = [
            _key_finding(row.kind, identity_of(row, KEY_HASHES), before, after, sides)
            for row in chosen.collect()
        ]
        chosen.unpersist()
        is_topic = isinstance(sides.right.side, TopicSide)
        if totals.keys() & {"missing", "different"} and not is_topic:
            versions = different.where("before IS NOT NULL").withColumnRenamed("before", "second")
            lost = stages.last_records(sides.left.rows.where("NOT tail"), versions)
            findings += unheld_findings(lost, sides.right.name)
    finally:
        different.unpersist()
        every.unpersist()
    if under_way:
        message = (
            f"{count_of(under_way, 'key has')} a version in {sides.right.name} that may"
            f" count in {sides.left.name}, or the reverse: it is beyond the compared offsets,"
            " or of the time of the last one in another partition"
        )
        # An open transaction may still be aborted.
        severity = Severity.UNKNOWN if is_open else Severity.NOTE
        findings.append(
            Finding(kind="under-way", severity=severity, message=message, count=under_way)
        )
    buckets = len(sums.bad) if totals else 0
    return _Looked(findings=tuple(findings), totals=totals, buckets=buckets)


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
