"""Completeness, and compares of further kinds of sides, on a real broker."""

import json
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Audit
from tests.support.audits.seeding import Record, seed_topic
from tests.support.servers.mariadb import PASSWORD, USER, running_mariadb

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

HOUR_MS = 3_600_000


def span_starts(*hours: int) -> list[int]:
    """Return the starts of hours in ms since the epoch; 0 is the current hour."""
    now_ms = int(time.time() * 1000)
    return [(now_ms // HOUR_MS + hour) * HOUR_MS for hour in hours]


def test_spans_with_fewer_rows_are_found(audit: Audit, tmp_path: Path) -> None:
    """Missing rows are an error in an hour that has ended, and a note in a later one."""
    first = seed_topic(audit.bootstrap)
    # The broker refuses timestamps that are more than an hour ahead.
    soon = int(time.time() * 1000) + HOUR_MS // 2
    times = [start + n for start in (*span_starts(-3, -2), soon) for n in range(10)]
    first.write([Record(b"x", timestamp_ms=at) for at in times])
    second = tmp_path / "tier.jsonl"
    kept = [at for at in times if at not in {times[12], times[13], times[29]}]
    second.write_text("".join(json.dumps({"at": at}) + "\n" for at in kept))
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


@pytest.mark.parametrize(
    ("hour", "lost", "verdict"),
    [(-2, 50, Verdict.DIFFER), (1, 50, Verdict.UNKNOWN), (-2, 3, Verdict.UNKNOWN)],
    ids=["ended", "to come", "perhaps without a time"],
)
def test_what_may_be_elsewhere_excuses_a_difference(
    audit: Audit, tmp_path: Path, hour: int, lost: int, verdict: Verdict
) -> None:
    """Missing rows are unknown before the span has ended, or if rows without a date may be them."""
    [start] = span_starts(hour)
    tiers = []
    for name, rows in (("all", 100), ("part", 100 - lost)):
        file = tmp_path / f"{name}.jsonl"
        times = [*(start + n for n in range(rows)), 2**63 - 1, -(2**63), 10**30]
        file.write_text("".join(json.dumps({"at": at}) + "\n" for at in times))
        side = {"kind": "files", "paths": [str(file)], "format": "json"}
        tiers.append({"name": name, "side": side, "event_time": "json:at"})
    answer = audit.run("completeness", tiers=tiers)
    assert answer.verdict is verdict
    [found] = answer.of("difference")
    assert found.count == lost
    assert [each.count for each in answer.of("unparsable")] == [6]
    assert bool(answer.of("under-way")) is (hour == 1)


def test_times_of_a_table_are_those_of_its_zone_and_of_the_run(
    audit: Audit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A span is judged at the time when the run began, as copying a table may take longer."""
    file, database = tmp_path / "tier.jsonl", tmp_path / "tier.db"
    file.write_text('{"at":"2026-01-01T00:30:00Z"}\n' * 2)
    tiers = [
        {
            "name": "lines",
            "side": {"kind": "files", "paths": [str(file)], "format": "json"},
            "event_time": "json:at",
        },
        {
            "name": "table",
            "side": {
                "kind": "table", "url": f"jdbc:sqlite:{database}", "table": "t",
                "zone": "Europe/Berlin",
            },
            "event_time": "at",
        },
    ]  # fmt: skip
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE t (at TIMESTAMP)")
        connection.execute("INSERT INTO t VALUES ('2026-01-01 01:30:00'), ('2026-01-01 01:30:00')")
    assert audit.run("completeness", tiers=tiers).verdict is Verdict.AGREE
    file.write_text('{"at":"2026-01-01T00:30:00Z"}\n')
    begun = SimpleNamespace(time=datetime(2026, 1, 1, 0, 35, tzinfo=UTC).timestamp)
    monkeypatch.setattr("pyconnect_reconcile.capture.time", begun)
    assert audit.run("completeness", tiers=tiers).kinds() == {"under-way"}


def test_lines_and_dead_letters_are_those_of_the_records(audit: Audit, tmp_path: Path) -> None:
    """A carriage return belongs to the value; another connector's dead letter does not count."""
    seed, letters = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    seed.write([Record(value) for value in (b"a\r", b"b", b"c", b"d", b"e\n\rf\n")])
    named = "__connect.errors.connector.name"
    letters.write(
        [
            Record(b"b", headers=[(named, b"own")]),
            Record(b"c", headers=[(named, b"other")]),
            Record(b"d"),
        ]
    )
    file = tmp_path / "sink.txt"
    file.write_bytes(b"a\ne\n\rf\n\n")
    answer = audit.run(
        "topic-sink",
        left={"kind": "topic", "topics": [seed.topic]},
        right={"kind": "files", "paths": [str(file)], "format": "text"},
        arrived={"kind": "topic", "topics": [letters.topic], "connector": "own"},
    )
    assert answer.places("missing") == {frozenset({(0, 0)}), frozenset({(0, 2)})}
    assert (answer.rows("extra"), answer.kinds()) == ({1}, {"missing", "extra"})


def test_topics_of_two_clusters_are_compared(audit: Audit) -> None:
    """Each side is read from its own cluster, and keys are compared."""
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


def test_a_copy_on_the_disks_of_executors_is_refused(
    audit: Audit, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copied table that this machine cannot see is refused, instead of read as empty."""
    url, driver = "jdbc:derby:memory:far;create=true", "org.apache.derby.jdbc.EmbeddedDriver"
    frame = spark.createDataFrame([(1,)], "id bigint")
    frame.write.jdbc(url, "SINKS", mode="overwrite", properties={"driver": driver})
    seed = seed_topic(audit.bootstrap)
    seed.write([Record(b'{"id":1}')])
    monkeypatch.setattr("pyspark.sql.DataFrameWriter.parquet", lambda *_: None)
    with pytest.raises(ReconcileError, match="not the same directory for the driver"):
        audit.run(
            "topic-sink",
            left={"kind": "topic", "topics": [seed.topic], "value": "json"},
            right={"kind": "table", "url": url, "table": "SINKS", "options": {"driver": driver}},
        )


@pytest.mark.long(only=True)
def test_a_table_is_compared_over_jdbc(audit: Audit, spark: SparkSession) -> None:
    """The last version of each key is compared with the columns of a table over JDBC."""
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


def test_a_table_under_the_scheme_of_mariadb_has_its_values(audit: Audit, tmp_path: Path) -> None:
    """A MariaDB address has the right values, although Spark knows only MySQL's quotes."""
    seed = seed_topic(audit.bootstrap)
    seed.write([Record(json.dumps({"id": n, "note": f"v{n}"}).encode()) for n in range(5)])
    properties = tmp_path / "table.properties"
    properties.write_text(f"user={USER}\npassword={PASSWORD}\n")
    with running_mariadb() as server:
        database = server.new_database()
        server.execute(database, "CREATE TABLE sinks (id INT, note VARCHAR(9))")
        server.execute(database, "INSERT INTO sinks VALUES (0,'v0'), (1,'v1'), (3,'v3'), (4,'v4')")
        address = urlsplit(server.settings(database)["connection.url"])
        answer = audit.run(
            "topic-sink",
            left={"kind": "topic", "topics": [seed.topic], "value": "json"},
            right={
                "kind": "table",
                "url": f"jdbc:mariadb://{address.hostname}:{address.port}{address.path}",
                "table": "sinks",
                "properties": str(properties),
            },
        )
    assert answer.places("missing") == {frozenset({(0, 2)})}
    assert answer.kinds() == {"missing"}
