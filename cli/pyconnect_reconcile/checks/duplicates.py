"""duplicates: what is there more than once, in both isolation levels.

Copies that only read_uncommitted shows are benign: an aborted transaction was repeated. Copies that
read_committed shows are a violation of exactly-once. The committed records are a subset of the
uncommitted ones, so the committed level is read only when the first pass found something.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, count_of, undecided
from pyconnect_reconcile.lookup import places
from pyconnect_reconcile.spec import PROVENANCE
from pyconnect_reconcile.topics.range_findings import (
    empty_ranges,
    open_tails,
    refuse_compacted,
    removed_beginnings,
    unknown_policies,
)
from pyconnect_reconcile.topics.reading import COMMITTED, UNCOMMITTED
from pyconnect_reconcile.unparsable import unparsable_finding
from pyconnect_reconcile.values.canonical import with_marked
from pyconnect_reconcile.values.extract import (
    JSON_IN,
    OFFSET_HEADER,
    PARTITION_HEADER,
    needs_headers,
    text_of,
)
from pyconnect_reconcile.values.hashes import HASHES, hashes
from pyconnect_reconcile.values.members import member_token, without_mark
from pyconnect_reconcile.values.normal import MARKED

RECORD, IDENTITY = "record", "identity"
OUTSIDE = "copies of records that are outside of the range"
SINGLE, REPEATED, UNIDENTIFIED = "single", "repeated", "unidentified"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """The counts of one pass; `repeated` has the HASHES and `count` of repeated records."""

    rows: int
    unidentified: int
    identities: int
    surplus: int
    repeated: DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class _Classified:
    """`violations` counts all of them; `findings` are the kept ones."""

    violations: int = 0
    findings: tuple[Finding, ...] = ()


def check(bench: Bench) -> CheckOutcome:
    """Look for records whose identity occurs more than once."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    refuse_compacted(snapshot, "duplicates")
    uncommitted = _records(bench, UNCOMMITTED)
    bench.events.step("counting identities in uncommitted reads")
    counts = _sorted_out(uncommitted).persist()
    try:
        counted = _counted(counts)
        found = _classified(bench, counted, uncommitted) if counted.identities else _Classified()
    finally:
        counts.unpersist()
    is_part = any(part.begins_late or part.ends_early for part in snapshot.partitions)
    unidentified = sql.col(HASHES[0]).isNull()
    strange = unparsable_finding(
        uncommitted,
        unidentified,
        count=counted.unidentified,
        rows=counted.rows,
        what=f"identity ({spec.identity})",
        fatal=spec.fail_unparsable,
    )
    # An aborted record without an identity is a copy for no reader of committed records.
    if strange and not _records(bench, COMMITTED).where(unidentified).isEmpty():
        strange = [*undecided(strange)]
    return CheckOutcome(
        findings=(
            *empty_ranges(snapshot),
            *open_tails(snapshot),
            *removed_beginnings(
                snapshot, Severity.NOTE, "a copy among them is not there for readers any more"
            ),
            *unknown_policies(snapshot),
            *strange,
            *found.findings,
        ),
        totals={
            "duplicate": found.violations,
            "benign-duplicate": counted.identities - found.violations,
            "unparsable": counted.unidentified,
        },
        counts={
            "offsets": snapshot.length,
            "rows_uncommitted": counted.rows,
            "identities_repeated": counted.identities,
            "surplus_uncommitted": counted.surplus,
        },
        not_compared=(OUTSIDE,) if is_part else (),
    )


def _records(bench: Bench, isolation: str) -> DataFrame:
    """Return the records with HASHES and text of their identity; null where they have none."""
    spec = bench.spec
    provenance = spec.identity == PROVENANCE
    records = bench.records(
        bench.snapshot(spec.topics).partitions,
        isolation=isolation,
        headers=provenance or needs_headers(spec.identity),
    )
    required: list[Column] = []
    text = sql.col("key")
    if provenance:
        required = [text_of(f"header:{name}") for name in (PARTITION_HEADER, OFFSET_HEADER)]
        text = sql.concat_ws(" ", *required)
    elif spec.identity != RECORD:
        records, identity, text = _identity(records, spec.identity)
        required = [identity]
    parts = required or [sql.col("key"), sql.col("value")]
    if len(spec.topics) > 1:
        parts = [sql.col("topic"), *parts]
    known = hashes(parts)
    if required:
        identified = reduce(lambda one, other: one & other, (each.isNotNull() for each in required))
        known = [sql.when(identified, each) for each in known]
    columns = dict(zip(HASHES, known, strict=True))
    return records.withColumns({**columns, IDENTITY: text})


def _identity(records: DataFrame, extraction: str) -> tuple[DataFrame, Column, Column]:
    """Return the identity with its type, if it has one: 1 is 1.0, and "1" is another one.

    It comes with the text that shows it.
    """
    kind, _, path = extraction.partition(":")
    if kind == "avro":
        return records, sql.col(f"`{extraction}`"), text_of(extraction)
    if kind not in JSON_IN:
        return records, text_of(extraction), text_of(extraction)
    records = with_marked(records, sql.col(JSON_IN[kind]), MARKED)
    identity = member_token(sql.col(MARKED), path)
    return records, identity, without_mark(identity)


def _sorted_out(records: DataFrame) -> DataFrame:
    """Return what is repeated, one row each, and one row for all single records: small."""
    counted = records.groupBy(*HASHES).count()
    kind = (
        sql.when(sql.col(HASHES[0]).isNull(), UNIDENTIFIED)
        .when(sql.col("count") > 1, REPEATED)
        .otherwise(SINGLE)
    )
    kept = [sql.when(sql.col("kind") == REPEATED, sql.col(name)).alias(name) for name in HASHES]
    return (
        counted.withColumn("kind", kind)
        .select("kind", *kept, "count")
        .groupBy("kind", *HASHES)
        .agg(sql.sum("count").alias("count"))
    )


def _counted(counts: DataFrame) -> _Counted:
    kinds = {
        row.kind: row
        for row in counts.groupBy("kind")
        .agg(sql.count("*").alias("identities"), sql.sum("count").alias("rows"))
        .collect()
    }
    repeated = kinds.get(REPEATED)
    identities, copies = (repeated.identities, repeated.rows) if repeated else (0, 0)
    return _Counted(
        rows=sum(row.rows for row in kinds.values()),
        unidentified=kinds[UNIDENTIFIED].rows if UNIDENTIFIED in kinds else 0,
        identities=identities,
        surplus=copies - identities,
        repeated=counts.where(sql.col("kind") == REPEATED).select(*HASHES, "count"),
    )


def _classified(bench: Bench, counted: _Counted, uncommitted: DataFrame) -> _Classified:
    """Tell violations from benign repetitions; each kind keeps the limit of findings."""
    limit = bench.spec.findings
    keys = list(HASHES)
    bench.events.step("looking for repeated records in committed reads")
    committed = _records(bench, COMMITTED)
    violating = (
        committed.join(counted.repeated.select(*keys), keys, "left_semi")
        .groupBy(*keys)
        .count()
        .where("count > 1")
        .persist()
    )
    try:
        violations = violating.count()
        chosen = violating.orderBy(sql.desc("count"), *keys).limit(limit)
        findings = list(_findings(chosen, committed, uncommitted, committed_copies=True))
        if violations < counted.identities:
            rest = counted.repeated.join(violating, keys, "left_anti")
            chosen = rest.orderBy(sql.desc("count"), *keys).limit(limit)
            findings += _findings(chosen, committed, uncommitted, committed_copies=False)
    finally:
        violating.unpersist()
    return _Classified(violations=violations, findings=tuple(findings))


def _findings(
    chosen: DataFrame,
    committed: DataFrame,
    uncommitted: DataFrame,
    *,
    committed_copies: bool,
) -> Iterator[Finding]:
    wanted = chosen.persist()
    try:
        counts = {tuple(row[name] for name in HASHES): row["count"] for row in wanted.collect()}
        if not counts:
            return
        # Of these only the offsets are wanted: the identity takes the place of the key.
        shown = places(committed.withColumn("key", sql.col(IDENTITY)), wanted, HASHES)
        everywhere = places(uncommitted, wanted, HASHES)
    finally:
        wanted.unpersist()
    visible = {
        (place.topic, place.partition, place.offset)
        for copies in shown.values()
        for place in copies
    }
    for identity, count in counts.items():
        copies = tuple(
            replace(place, visible=(place.topic, place.partition, place.offset) in visible)
            for place in everywhere.get(identity, [])
        )
        if committed_copies:
            message = f"consumers of committed records see a record {count_of(count, 'time')}"
            kind, severity = "duplicate", Severity.ERROR
        else:
            message = "a record was repeated after its transaction was aborted: no"
            message += " consumer of committed records sees it twice"
            kind, severity = "benign-duplicate", Severity.NOTE
        keys = (place.key for place in (*shown.get(identity, []), *copies))
        yield Finding(
            kind=kind,
            severity=severity,
            message=message,
            key=next((key for key in keys if key is not None), None),
            count=count,
            copies=copies,
        )
