"""Completeness, and compares of other sides, on a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from tests.support.audits import Audit
from tests.support.seeding import Record, seed_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

HOUR_MS = 3_600_000
START_MS = 1_760_000_400_000


def test_spans_with_fewer_rows_are_found(audit: Audit, tmp_path: Path) -> None:
    """The second tier lacks two rows of the second hour; what is newest may be under way."""
    first = seed_topic(audit.bootstrap)
    times = [START_MS + hour * HOUR_MS + n * 1000 for hour in range(3) for n in range(10)]
    first.write([Record(b"x", timestamp_ms=time) for time in times])
    second = tmp_path / "tier.jsonl"
    kept = [time for time in times if time not in {times[12], times[13], times[29]}]
    second.write_text("".join(json.dumps({"at": time}) + "\n" for time in kept))
    files = {"kind": "files", "paths": [str(second)], "format": "json"}
    tiers = [
        {"name": "topic", "side": {"kind": "topic", "topics": [first.topic]}},
        {"name": "lake", "side": files, "event_time": "json:at"},
    ]
    answer = audit.run("completeness", tiers=tiers, bucket_minutes=60)
    found = {(each.count, each.severity.value) for each in answer.of("difference")}
    assert found == {(2, "error"), (1, "note")}
    assert answer.verdict is Verdict.DIFFER
    assert answer.outcome.counts["rows_lake"] == 27
    with pytest.raises(ReconcileError, match="no timestamp of their own"):
        audit.run("completeness", tiers=[tiers[0], {"name": "lake", "side": files}])


def test_topics_of_two_clusters_are_compared(audit: Audit) -> None:
    """Each side is read from the cluster that it names, never from another; keys count too."""
    clusters = {
        "main": {"bootstrap": "127.0.0.1:1"},
        "near": {"bootstrap": audit.bootstrap},
        "far": {"bootstrap": audit.bootstrap},
    }
    origin, mirror = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    keys = [f"k{n}".encode() for n in range(40)]
    origin.write([Record(b"same", key=key) for key in keys])
    mirror.write([Record(b"same", key=key) for key in keys if key not in {b"k7", b"k30"}])
    again = mirror.write([Record(b"same", key=b"k3")])
    answer = audit.run(
        "topic-topic",
        clusters=clusters,
        left={"kind": "topic", "topics": [origin.topic], "cluster": "near"},
        right={"kind": "topic", "topics": [mirror.topic], "cluster": "far"},
    )
    assert answer.places("missing") == {frozenset({(0, 7)}), frozenset({(0, 30)})}
    assert answer.places("repeated") == {frozenset({(0, 3), *again})}
    assert answer.kinds() == {"missing", "repeated"}


def test_a_table_is_compared_over_jdbc(audit: Audit, spark: SparkSession) -> None:
    """An upserting sink: the last version of each key, in the columns of the table."""
    url, driver = "jdbc:derby:memory:sinks;create=true", "org.apache.derby.jdbc.EmbeddedDriver"
    rows = [(n, None if n == 3 else f"v{n}") for n in range(50) if n != 20]
    rows[7] = (7, "stale")
    frame = spark.createDataFrame(rows, "id bigint, note string")
    frame.write.jdbc(url, "SINKS", mode="overwrite", properties={"driver": driver})
    seed = seed_topic(audit.bootstrap)
    versions = [{"id": n, "note": "old"} for n in range(50)]
    versions += [{"id": n, "note": None if n == 3 else f"v{n}"} for n in range(50)]
    seed.write([Record(json.dumps(version).encode()) for version in versions])
    answer = audit.run(
        "topic-sink",
        left={"kind": "topic", "topics": [seed.topic], "value": "json"},
        right={"kind": "table", "url": url, "table": "SINKS", "options": {"driver": driver}},
        mode="upsert",
        key="json:id",
    )
    assert answer.places("missing") == {frozenset({(0, 70)})}
    assert answer.places("different") == {frozenset({(0, 57)})}
    assert answer.kinds() == {"missing", "different"}
