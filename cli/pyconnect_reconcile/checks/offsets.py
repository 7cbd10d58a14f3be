"""offsets: what the offsets topics tell of each source partition.

Spark reads the topics and keeps what is about source offsets; these topics are compacted and small,
so the history itself is looked at in one place (`offset_history`).
"""

from __future__ import annotations

import json

from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import Bench
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Finding, Outcome
from pyconnect_reconcile.offset_history import (
    Commit,
    disagreements,
    findings_of,
    histories,
    orphans,
    read_commit,
)
from pyconnect_reconcile.range_findings import open_tails
from pyconnect_reconcile.reading import COMMITTED
from pyconnect_reconcile.spec import OffsetsTopics

MOST_RECORDS = 2_000_000
CONNECTOR_KEY = "connector-"


def check(bench: Bench) -> Outcome:
    """Read the histories and judge them."""
    topics = bench.spec.offsets
    assert topics is not None
    names = tuple(dict.fromkeys([topics.worker, *topics.connectors.values()]))
    snapshot = bench.snapshot(names)
    bench.events.step("reading the offsets topics")
    records = bench.records(snapshot.partitions, isolation=COMMITTED)
    rows = records.limit(MOST_RECORDS + 1).collect()
    if len(rows) > MOST_RECORDS:
        raise ReconcileError(
            f"the offsets topics hold more than {MOST_RECORDS:,} records: are they compacted?"
        )
    commits: list[Commit] = []
    strange = 0
    for row in rows:
        place = (row.topic, row.partition, row.offset, row.timestamp_ms)
        commit = read_commit(place, _bytes(row.key), _bytes(row.value))
        if commit is None:
            strange += 1
        else:
            commits.append(commit)
    known = frozenset(topics.known) | _configured(bench, topics)
    findings: list[Finding] = [*open_tails(snapshot)]
    by_source = histories(commits)
    for history in by_source.values():
        findings += findings_of(history)
    findings += orphans(commits, known)
    findings += disagreements(commits, topics.worker, topics.connectors)
    kinds = ("regression", "two-writers", "reset", "orphan", "topics-disagree")
    return Outcome(
        findings=tuple(findings[: bench.spec.findings]),
        totals={kind: sum(each.kind == kind for each in findings) for kind in kinds},
        counts={"records": len(rows), "source_partitions": len(by_source), "unparsable": strange},
    )


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


def _configured(bench: Bench, topics: OffsetsTopics) -> frozenset[str]:
    """Return the connectors whose last record on the config topic is no tombstone."""
    if topics.config is None:
        return frozenset()
    ranges = bench.snapshot((topics.config,)).partitions
    records = bench.records(ranges, isolation=COMMITTED)
    rows = (
        records.where(sql.col("key").cast("string").startswith(CONNECTOR_KEY))
        .groupBy(sql.col("key").cast("string").alias("name"))
        .agg(sql.max_by(sql.col("value").cast("string"), "offset").alias("value"))
        .collect()
    )
    return frozenset(
        row.name.removeprefix(CONNECTOR_KEY)
        for row in rows
        if row.value is not None and json.loads(row.value) is not None
    )
