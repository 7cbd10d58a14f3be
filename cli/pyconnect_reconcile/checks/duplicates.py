"""duplicates: records that exist more than once, in both isolation levels.

Copies that only read_uncommitted shows are benign: an aborted transaction was repeated. Copies that
read_committed shows are a violation of exactly-once. The committed records are a subset of the
uncommitted ones, so the committed level is read only when the first pass found something.
"""

from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import COMMITTED, UNCOMMITTED, Bench
from pyconnect_reconcile.compares.places import places, unparsable_finding
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, count_of, undecided
from pyconnect_reconcile.spec import PROVENANCE
from pyconnect_reconcile.topics.range_findings import empty_ranges, of_ranges, refuse_compacted
from pyconnect_reconcile.values.canonical import HASHES, hashes, with_marked
from pyconnect_reconcile.values.extract import (
    JSON_IN,
    OFFSET_HEADER,
    PARTITION_HEADER,
    member_token,
    needs_headers,
    text_of,
    without_mark,
)
from pyconnect_reconcile.values.normal import MARKED

RECORD, IDENTITY = "record", "identity"
OUTSIDE = "copies of records that are outside of the range"
SINGLE, REPEATED, UNIDENTIFIED = "single", "repeated", "unidentified"


def check(bench: Bench) -> CheckOutcome:
    """Look for records whose identity occurs more than once."""
    spec = bench.spec
    snapshot = bench.snapshot(spec.topics)
    refuse_compacted(snapshot, "duplicates")
    uncommitted = _records(bench, UNCOMMITTED)
    bench.events.step("counting identities in uncommitted reads")
    kind = (
        sql.when(sql.col(HASHES[0]).isNull(), UNIDENTIFIED)
        .when(sql.col("count") > 1, REPEATED)
        .otherwise(SINGLE)
    )
    is_repeated = sql.col("kind") == REPEATED
    kept = [sql.when(is_repeated, sql.col(name)).alias(name) for name in HASHES]
    # The cache is small: one row for each repeated identity, and one for all single records.
    counts = (
        uncommitted.groupBy(*HASHES)
        .count()
        .withColumn("kind", kind)
        .select("kind", *kept, "count")
        .groupBy("kind", *HASHES)
        .agg(sql.sum("count").alias("count"))
        .persist()
    )
    try:
        of_kind = counts.groupBy("kind").agg(sql.count("*"), sql.sum("count")).collect()
        kinds = {name: (identities, rows) for name, identities, rows in of_kind}
        identities, copies = kinds.get(REPEATED, (0, 0))
        violations, findings = 0, list[Finding]()
        if identities:
            repeated = counts.where(is_repeated).select(*HASHES, "count")
            violations, findings = _classified(bench, repeated, identities, uncommitted)
    finally:
        counts.unpersist()
    is_part = any(part.begins_late or part.ends_early for part in snapshot.partitions)
    _, without = kinds.get(UNIDENTIFIED, (0, 0))
    total = sum(rows for _, rows in kinds.values())
    unidentified = sql.col(HASHES[0]).isNull()
    strange = unparsable_finding(
        uncommitted,
        unidentified,
        count=without,
        rows=total,
        what=f"identity ({spec.identity})",
        fatal=spec.fail_unparsable,
    )
    # A reader of committed records never sees an aborted record without an identity.
    if strange and not _records(bench, COMMITTED).where(unidentified).isEmpty():
        strange = [*undecided(strange)]
    return CheckOutcome(
        findings=(
            *empty_ranges(snapshot),
            *of_ranges(
                snapshot, Severity.NOTE, "a copy among them is not there for readers any more"
            ),
            *strange,
            *findings,
        ),
        totals={
            "duplicate": violations,
            "benign-duplicate": identities - violations,
            "unparsable": without,
        },
        counts={
            "offsets": snapshot.length,
            "rows_uncommitted": total,
            "identities_repeated": identities,
            "surplus_uncommitted": copies - identities,
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
        kind, _, path = spec.identity.partition(":")
        identity, text = text_of(spec.identity), text_of(spec.identity)
        # Members have a type: 1 equals 1.0, but not "1". The text shows the type.
        if kind == "avro":
            identity = sql.col(f"`{spec.identity}`")
        elif kind in JSON_IN:
            records = with_marked(records, sql.col(JSON_IN[kind]), MARKED)
            identity = member_token(sql.col(MARKED), path)
            text = without_mark(identity)
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


def _classified(
    bench: Bench, repeated: DataFrame, identities: int, uncommitted: DataFrame
) -> tuple[int, list[Finding]]:
    """Return the number of violations, and findings of violations and of benign repetitions.

    Each kind has its own limit of findings. `repeated` has HASHES and `count` of the identities.
    """
    limit, keys = bench.spec.findings, list(HASHES)
    order = (sql.desc("count"), *keys)
    bench.events.step("looking for repeated records in committed reads")
    committed = _records(bench, COMMITTED)
    violating = (
        committed.join(repeated.select(*keys), keys, "left_semi")
        .groupBy(*keys)
        .count()
        .where("count > 1")
        .persist()
    )
    counted = Observation()
    try:
        observed = violating.observe(counted, sql.count("*").alias("all"))
        seen = observed.orderBy(*order).limit(limit).collect()
        violations: int = counted.get["all"]
        hidden = []
        if violations < identities:
            rest = repeated.join(violating, keys, "left_anti")
            hidden = rest.orderBy(*order).limit(limit).collect()
    finally:
        violating.unpersist()
    # Only the offsets of committed records are needed: the identity takes the place of the key.
    named = committed.withColumn("key", sql.col(IDENTITY).cast("binary"))
    both = named.withColumn("shown", sql.lit(True)).unionByName(
        uncommitted.withColumn("shown", sql.lit(False))
    )
    wanted = [(*row[:2], shown) for row in (*seen, *hidden) for shown in (True, False)]
    found = places(both, wanted, (*keys, "shown"))
    benign = "a record was repeated after its transaction was aborted: no consumer of committed"
    findings = []
    for number, (first, second, count) in enumerate((*seen, *hidden)):
        shown, every = (found.get((first, second, which), []) for which in (True, False))
        visible = {(place.topic, place.partition, place.offset) for place in shown}
        copies = tuple(
            replace(place, visible=(place.topic, place.partition, place.offset) in visible)
            for place in every
        )
        kind, severity = "duplicate", Severity.ERROR
        message = f"consumers of committed records see a record {count_of(count, 'time')}"
        if number >= len(seen):
            kind, severity = "benign-duplicate", Severity.NOTE
            message = f"{benign} records sees it twice"
        keys_of = (place.key for place in (*shown, *copies))
        findings.append(
            Finding(
                kind=kind,
                severity=severity,
                message=message,
                key=next((key for key in keys_of if key is not None), None),
                count=count,
                copies=copies,
            )
        )
    return violations, findings
