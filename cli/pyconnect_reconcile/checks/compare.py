"""source-topic, topic-topic, topic-sink: whether each row of the left is on the right, once.

append: rows are a multiset. upsert: the last version of each key counts, tombstones remove keys.

Rows of a tail are optional: a row that a running connector has read or written beyond its
committed offsets is neither missing nor extra.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from pyspark.sql import DataFrame, Observation, Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.compares import key_order, stages
from pyconnect_reconcile.compares.columns import (
    columns_of_records,
    columns_without_values,
    compared_columns,
    with_values,
)
from pyconnect_reconcile.compares.key_order import Identities
from pyconnect_reconcile.compares.places import (
    SAMPLES,
    UNHELD,
    Places,
    copies_of,
    identity_of,
    places_of,
    places_of_strange,
    unheld_findings,
    unparsable_finding,
)
from pyconnect_reconcile.compares.sides import KEY_HASHES, Rows, plan_of, rows_of
from pyconnect_reconcile.data_sides import LINE_FORMATS, VALUE, FileSide, TableSide
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.files import with_unread_marks
from pyconnect_reconcile.findings import (
    COPIES,
    CheckOutcome,
    Finding,
    Severity,
    Verdict,
    count_of,
    error,
    unknown,
    verdict_of,
)
from pyconnect_reconcile.spec import Spec, TopicSide
from pyconnect_reconcile.topics.range_findings import (
    open_tails,
    refuse_compacted,
    removed_beginnings,
    unknown_policies,
    without_commits,
)
from pyconnect_reconcile.values.canonical import HASHES
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
KEY_TEXTS = {
    "missing": "the key is in {left}, not in {right}",
    "extra": "the key is in {right}, not in {left}",
    "different": "the last version in {right} is not that of {left}",
}
# In most topics that differ much, both kinds of differing rows lie close together.
LOOKED_AT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _First:
    """The first stage: the sides, their compared rows, and the checksums.

    `absent` are columns that no record has, but that have a value in some row. `known` are the
    identities of an ordered compare, which can prove equal sides without another stage.
    """

    left: Rows
    right: Rows
    compared: tuple[DataFrame, DataFrame]
    sums: stages.Checksums
    has_tail: bool
    absent: tuple[str, ...] = ()
    known: Identities | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The second stage: findings up to the limit, and the totals of every kind.

    `ahead` counts rows of the left's tail that are on the right already.
    """

    findings: tuple[Finding, ...] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
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
    return columns_without_values(bench, first.left, first.right, columns)


def _first(bench: Bench, columns: Columns, plan: RowPlan | None) -> _First:
    spec = bench.spec
    assert spec.left is not None
    assert spec.right is not None
    origin = rows_of(bench, spec.left, columns=columns, plan=plan, with_tail=True)
    copy = rows_of(bench, spec.right, columns=columns, plan=plan, with_tail=True)
    left, right = origin.rows, copy.rows
    if spec.arrived is not None:
        arrived = rows_of(bench, spec.arrived, columns=columns, plan=plan)
        right = right.select(*stages.APPENDED).unionByName(arrived.rows.select(*stages.APPENDED))
    if spec.mode == "upsert":
        left, right = (stages.last_versions(rows.where("NOT tail")) for rows in (left, right))
        if isinstance(spec.left, TableSide) and spec.left.position is not None:
            # A source's table keeps last versions only: it may have lost one that the topic has.
            changed = origin.rows.where("tail").select(*KEY_HASHES).distinct()
            right = right.join(changed, list(KEY_HASHES), "left_anti")
    known = key_order.known(bench, origin, copy) if spec.ordered else None
    has_tail = _may_have_tail(bench, origin) or _may_have_tail(bench, copy)
    sums = known.sums if known is not None and not has_tail else None
    if sums is None:
        bench.events.step(f"comparing {origin.name} with {copy.name}")
        sums = stages.checksums(left, right, stages.bucket_count(origin.length or copy.length))
    return _First(
        left=origin, right=copy, compared=(left, right), sums=sums, has_tail=has_tail, known=known
    )


def _may_have_tail(bench: Bench, rows: Rows) -> bool:
    match rows.side:
        case TopicSide(topics=topics, cluster=cluster):
            parts = bench.snapshot(topics, cluster).partitions
            return any(part.beyond_end.length or part.open_offsets.length for part in parts)
        case FileSide():
            return bool(rows.files.uncommitted or rows.files.unfinished or rows.files.beyond)
        case TableSide(position=position):
            return position is not None


def _outcome(bench: Bench, first: _First, not_compared: tuple[str, ...]) -> CheckOutcome:
    spec, sums = bench.spec, first.sums
    findings = [*_beginning(bench, first), *_unparsable(bench, first)]
    looked = _Looked(ahead=sums.right - sums.left)
    if sums.bad:
        bench.events.step(f"examining {len(sums.bad)} of {sums.buckets} buckets that differ")
        looked = _keys(bench, first) if spec.mode == "upsert" else _rows(bench, first)
        findings += stages.doubted(bench, first.left, first.right, looked.findings)
    differing = len(sums.bad) if any(looked.totals.values()) else 0
    findings += stages.under_way(spec, first.left, first.right, sums, ahead=looked.ahead)
    if sums.tail_right:
        missing = looked.totals.get("missing", 0)
        findings += stages.unfinished(first.right, sums, first.compared, missing=missing)
    totals = dict(looked.totals)
    if unheld := [each.count for each in looked.findings if each.kind == UNHELD]:
        totals[UNHELD] = sum(unheld)
    if spec.mode == "upsert":
        doubled = list(_doubled(first))
        findings += doubled
        totals |= {each.kind: each.count for each in doubled}
    if first.known is not None:
        more, late = key_order.check(bench, first.left, first.right, first.known)
        first.known.rows.unpersist()
        findings += more
        totals = {**totals, "disorder": late}
    for rows in (first.left, first.right):
        if isinstance(rows.side, FileSide):
            # A file may grow after it was copied.
            findings += rows.files.changes(rows.side.paths)
    if sums.left == 0 and verdict_of(findings) is not Verdict.DIFFER:
        message = f"there is nothing to compare: {first.left.name} has no row in the range"
        findings.append(unknown(kind="empty-range", message=message))
    return CheckOutcome(
        findings=tuple(findings),
        totals=totals,
        counts={
            "rows_left": sums.left,
            "rows_right": sums.right,
            "buckets": sums.buckets,
            "rows_under_way": sums.tail_left,
            "buckets_differing": differing,
            **{kind: totals.get(kind, 0) for kind in ("missing", "extra", "different")},
            **({"disorder": totals["disorder"]} if spec.ordered else {}),
        },
        not_compared=not_compared,
    )


def _doubled(first: _First) -> Iterator[Finding]:
    """Yield keys with several rows on a side where each key has one row."""
    further = (first.sums.further_left, first.sums.further_right)
    severities = (Severity.UNKNOWN, Severity.ERROR)
    sides = zip((first.left, first.right), first.compared, further, severities, strict=True)
    for rows, versions, count, severity in sides:
        if isinstance(rows.side, TopicSide) or not count:
            continue
        counted = Observation()
        several = versions.where("copies > 1 AND NOT keyless")
        several = several.observe(counted, sql.count("*").alias("keys"))
        chosen = several.orderBy(*KEY_HASHES).limit(SAMPLES).collect()
        found = places_of(rows, [identity_of(row, KEY_HASHES) for row in chosen], KEY_HASHES)
        yield Finding(
            kind="repeated",
            severity=severity,
            message=f"{count_of(counted.get['keys'], 'key has')} {count_of(count, 'row')} in"
            f" {rows.name} more than one for each key",
            count=count,
            copies=tuple(place for places in found.values() for place in places)[:SAMPLES],
        )


def _not_compared(spec: Spec, plan: RowPlan | None) -> tuple[str, ...]:
    """Return which differences the compare does not see."""
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
    """Yield the findings of the first stage."""
    for rows in (first.left, first.right):
        if isinstance(rows.side, TopicSide):
            snapshot = bench.snapshot(rows.side.topics, rows.side.cluster)
            yield from open_tails(snapshot)
            yield from without_commits(snapshot, bench.spec.until)
            untold = "records among them were not compared"
            # A chain of reports begins with the records that exist; `continued` adds later gaps.
            severity = Severity.NOTE if bench.spec.since_last else Severity.UNKNOWN
            yield from removed_beginnings(snapshot, severity, untold)
            if bench.spec.mode == "append":
                yield from unknown_policies(snapshot)
            yield from stages.keyless_tombstones(bench.spec, rows, rows.side)
    absent, keyless, tied = first.absent, first.sums.keyless, first.sums.tied
    messages = {
        "not-compared": f"the columns {', '.join(absent)} have values that were not compared, as no"
        " record has them in this form: name the columns that are compared",
        "keyless": f"{count_of(keyless, 'row has')} no key (`{bench.spec.key}`): all different ones"
        " were compared, but not how often each is there",
        "unordered-keys": f"{count_of(tied, 'key has')} last records of the same time in several"
        " partitions: either version was taken for the last one",
    }
    for (kind, message), count in zip(messages.items(), (len(absent), keyless, tied), strict=True):
        if count:
            yield unknown(kind=kind, message=message, count=count)


def _unparsable(bench: Bench, first: _First) -> Iterator[Finding]:
    """Yield the compared rows that do not parse: only their bytes are compared."""
    upsert = bench.spec.mode == "upsert"
    sums = first.sums
    counted = ((sums.left, sums.unparsable_left), (sums.right, sums.unparsable_right))
    sides = zip((first.left, first.right), first.compared, counted, strict=True)
    for rows, last, (total, wrong) in sides:
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


def _rows(bench: Bench, first: _First) -> _Looked:
    """Compare the rows of bad buckets in append mode: count them all, name the first ones."""
    limit, left, right = bench.spec.findings, first.left, first.right
    counted = Observation()
    different = stages.differing_rows(*first.compared, first.sums)
    observed = different.observe(counted, *map(sql.expr, TOTALS))
    place = (sql.expr(f"IF(missing > 0, left_{of}, right_{of})") for of in ("lane", "offset"))
    # Repetitions come last: they may be allowed, and would hide rows that are on the right only.
    last = sql.expr(f"missing = 0 AND {KNOWN}")
    some = observed.where("missing > 0 OR surplus > 0").orderBy(last, *place, *HASHES)
    rows = some.limit(LOOKED_AT * limit).collect()
    total = counted.get
    chosen = {}
    for kind, side in (("missing", "left"), ("surplus", "right")):
        chosen[kind] = [row for row in rows if row[kind]][:limit]
        if len(chosen[kind]) < min(limit, total[f"rows_{kind}"]):
            of_kind = different.where(f"{kind} > 0")
            of_kind = of_kind.orderBy(last, f"{side}_lane", f"{side}_offset", *HASHES)
            chosen[kind] = of_kind.limit(limit).collect()
    missing, surplus = chosen["missing"], chosen["surplus"]
    lost = copies_of(bench, left, missing, "left")
    found = copies_of(bench, right, surplus, "right")
    if isinstance(right.side, TableSide) or not found:
        # Rows without a key or a line are located by a record that they are copies of.
        known = copies_of(bench, left, [row for row in surplus if row.committed], "left")
        found = {row: (*known.get(row, ())[:1], *found.get(row, ())) for row in {**known, **found}}
    findings = [_row_finding(bench, row, lost, first) for row in missing]
    if missing and not isinstance(right.side, TopicSide):
        certain = left.rows.where("NOT tail")
        if bench.spec.arrived is not None:
            certain = certain.join(different.where("missing > 0"), list(HASHES), "left_semi")
        findings += unheld_findings(certain, right.name)
    findings += [_row_finding(bench, row, found, first) for row in surplus]
    totals = {kind: total[kind] for kind in ("missing", "extra", "repeated")}
    ahead = first.sums.right - first.sums.left + total["absent"]
    return _Looked(
        findings=tuple(findings), totals=totals, ahead=ahead - total["extra"] - total["repeated"]
    )


def _row_finding(bench: Bench, row: Row, places: Places, first: _First) -> Finding:
    here, there = first.left.name, first.right.name
    copies = tuple(places.get(identity_of(row, HASHES), ()))
    known, present = row.committed + row.uncommitted, row.committed - row.missing
    if row.missing and not present:
        return error(
            kind="missing", message=f"in {here}, not in {there}", count=row.missing, copies=copies
        )
    if known == 0:
        return error(
            kind="extra", message=f"in {there}, not in {here}", count=row.there, copies=copies
        )
    allowed = bench.spec.duplicates_allowed and not row.missing
    said = f"{count_of(row.there, 'time')} in {there}, {count_of(known, 'time')} in {here}"
    if row.missing:
        said = f"in {here}, not in {there} ({present} of {row.committed} copies are there)"
    return Finding(
        kind="missing" if row.missing else "repeated",
        severity=Severity.NOTE if allowed else Severity.ERROR,
        message=said,
        of=COPIES,
        first=row.committed if row.missing else known,
        last=present if row.missing else row.there,
        count=row.missing or row.surplus,
        copies=copies,
    )


def _keys(bench: Bench, first: _First) -> _Looked:
    """Compare the keys of bad buckets in upsert mode."""
    left, right, sums = first.left, first.right, first.sums
    different = every = stages.differing_keys(*first.compared, sums).persist()
    under_way, is_open = 0, False
    try:
        if first.has_tail or sums.tied:
            possible = [stages.tail_versions(rows.rows) for rows in (left, right)]
            unfinished = possible[1]
            if sums.tied:
                tied = map(stages.tied_versions, first.compared)
                possible = [
                    one.unionByName(other) for one, other in zip(possible, tied, strict=True)
                ]
            different = stages.without_versions_under_way(every, *possible).persist()
            under_way = every.count() - different.count()
            is_open = under_way > 0 and not unfinished.isEmpty()
        counted = Observation()
        kinds = (sql.expr(f"sum(IF(kind = '{kind}', 1, 0)) AS {kind}") for kind in KEY_TEXTS)
        observed = different.observe(counted, *kinds).orderBy(*KEY_HASHES)
        rows = observed.limit(bench.spec.findings).collect()
        totals = {kind: count for kind, count in counted.get.items() if count}
        wanted = [identity_of(row, KEY_HASHES) for row in rows]
        places = [places_of(side, wanted, KEY_HASHES) for side in (left, right)]
        findings = [
            error(
                kind=row.kind,
                message=KEY_TEXTS[row.kind].format(left=left.name, right=right.name),
                # The places of a key are those of its last version on each side.
                copies=tuple(place for each in places for place in each.get(key, ())[-1:]),
            )
            for row, key in zip(rows, wanted, strict=True)
        ]
        if totals.keys() & {"missing", "different"} and not isinstance(right.side, TopicSide):
            versions = different.where("before IS NOT NULL").withColumnRenamed("before", "second")
            lost = stages.last_records(left.rows.where("NOT tail"), versions)
            findings += unheld_findings(lost, right.name)
    finally:
        different.unpersist()
        every.unpersist()
    if under_way:
        message = (
            f"{count_of(under_way, 'key has')} a version in {right.name} that may"
            f" count in {left.name}, or the reverse: it is beyond the compared offsets,"
            " or of the time of the last one in another partition"
        )
        # An open transaction may still be aborted.
        severity = Severity.UNKNOWN if is_open else Severity.NOTE
        findings.append(
            Finding(kind="under-way", severity=severity, message=message, count=under_way)
        )
    return _Looked(findings=tuple(findings), totals=totals)
