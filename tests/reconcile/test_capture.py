"""The input of a run, and the chain of reports that it continues; nothing here needs Spark."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyconnect_reconcile.capture import Base, _replayed, base_of, continued, copies_rows
from pyconnect_reconcile.data_sides import TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import CheckOutcome, Finding, Severity, Verdict, verdict_of
from pyconnect_reconcile.report.contents import Report
from pyconnect_reconcile.spec import MAIN, Spec, question_of, read_spec
from pyconnect_reconcile.topics.snapshot import (
    PartitionRange,
    TopicSnapshot,
    TopicsSnapshot,
    narrowed,
)

CLUSTERS = {"main": {"bootstrap": "b:9092"}}
TOPIC = {"kind": "topic", "topics": ["t"], "value": "bytes"}


@pytest.mark.parametrize(
    ("other", "copies"),
    [
        ({"kind": "table", "url": "jdbc:sqlite:/a.db", "table": "t"}, True),
        ({"kind": "files", "paths": ["/a.txt"], "format": "text"}, False),
        (TOPIC, False),
    ],
)
def test_a_table_is_copied_first(other: dict[str, object], copies: bool) -> None:
    """Only a table counts as a slow copy: topics and local files are checked at once."""
    spec = {"job": "topic-sink", "clusters": CLUSTERS, "left": TOPIC, "right": other}
    assert copies_rows(read_spec(spec)) is copies


def test_saved_ranges_are_those_of_the_same_cluster(tmp_path: Path) -> None:
    """Saved ranges of another cluster are refused, even if its topics have the same ids."""
    topic = TopicSnapshot(topic="t", topic_id="i", cleanup_policy="delete", partitions=())
    now = TopicsSnapshot(cluster_id="c", taken_ms=1, topics=(topic,))
    saved = tmp_path / "ranges.json"
    saved.write_text(json.dumps(now.to_json()))
    assert _replayed(str(saved), now) == now
    with pytest.raises(ReconcileError, match="from Kafka cluster c, but this cluster is d"):
        _replayed(str(saved), replace(now, cluster_id="d"))


def test_jobs_without_sides_copy_nothing() -> None:
    """A job without sides reads only the offsets of its topics."""
    assert not copies_rows(read_spec({"job": "ranges", "clusters": CLUSTERS, "topics": ["t"]}))


@pytest.mark.parametrize(
    "other",
    [
        {"properties": "/of-another-user.properties"},
        {"options": {"currentSchema": "b"}},
        {"offsets": {"table": "o", "connector": "c"}},
    ],
)
def test_tables_of_one_name_have_places_of_their_own(other: dict[str, object]) -> None:
    """Tables of one name have different places if user, session options or offsets differ."""
    side = {"kind": "table", "url": "jdbc:postgresql://h/d", "table": "t"}
    tiers = [
        {"name": name, "side": each, "event_time": "column:at"}
        for name, each in (("one", side), ("two", {**side, **other}), ("same", side))
    ]
    spec = read_spec({"job": "completeness", "clusters": CLUSTERS, "tiers": tiers})
    one, two, same = (tier.side for tier in spec.tiers)
    assert isinstance(one, TableSide)
    assert isinstance(two, TableSide)
    assert isinstance(same, TableSide)
    assert one.place == same.place != two.place


EMPTY = Finding(kind="empty-range", severity=Severity.UNKNOWN, message="empty")
LOST = Finding(kind="repeated", severity=Severity.ERROR, message="twice")


def spec(*earlier: Path, **members: object) -> Spec:
    clusters = {"main": {"bootstrap": "b:9092"}}
    asked: dict[str, object] = {"job": "duplicates", "target": "t", "topics": ["t"]}
    asked |= {"clusters": clusters, "since_last": True, "earlier": list(map(str, earlier))}
    return read_spec({"version": 1} | asked | members)


def snapshot(
    end: int, *, earliest: int = 0, topic_id: str = "i", partitions: int = 1
) -> TopicsSnapshot:
    parts = tuple(
        PartitionRange(
            topic="t",
            partition=number,
            start=earliest,
            end=end,
            earliest=earliest,
            last_stable=end,
            high_watermark=end,
        )
        for number in range(partitions)
    )
    topic = TopicSnapshot(topic="t", topic_id=topic_id, cleanup_policy="delete", partitions=parts)
    return TopicsSnapshot(cluster_id="c", taken_ms=1, topics=(topic,))


def report(directory: Path, night: int, asked: Spec, *findings: Finding, **members: Any) -> Path:
    """Write the report of a night, which ends at offset 10 * night."""
    whole = Report(
        spec=asked,
        snapshots={MAIN: snapshot(10 * night)},
        outcome=CheckOutcome(findings=findings),
        started_ms=night,
        duration_ms=1,
        spark_version="",
        base=base_of(asked),
    )
    path = directory / f"night-{night}" / "report.json"
    path.parent.mkdir()
    path.write_text(json.dumps({**whole.to_json(), **members}))
    return path


def known(base: Base | None) -> Base:
    assert base is not None
    return base


def test_a_run_continues_the_last_report_that_agreed(tmp_path: Path) -> None:
    """A report is a base only if it agreed, is of the same job, and is of a chain."""
    first = report(tmp_path, 1, spec())
    second = report(tmp_path, 2, spec(first))
    paths = [first, second]
    paths.append(report(tmp_path, 3, spec(first, second), LOST))
    paths.append(report(tmp_path, 4, spec(first, second), EMPTY))
    paths.append(report(tmp_path, 5, spec(), job="transactions"))
    paths.append(report(tmp_path, 6, spec(), target="other"))
    paths.append(report(tmp_path, 7, spec(since_last=False)))
    damaged = tmp_path / "damaged.json"
    damaged.write_text("{")
    base = known(base_of(spec(damaged, *paths)))
    assert [Path(link.report).name for link in base.links] == ["night-1", "night-2"]
    assert base.bounds(MAIN, snapshot(30)) == {"t": {0: 20}}
    document = json.loads(second.read_text())
    assert [Path(link["report"]).name for link in document["chain"]] == ["night-1"]
    assert base_of(spec()) is None
    assert json.loads(first.read_text())["chain"] == []


def test_another_question_has_no_base(tmp_path: Path) -> None:
    """A report on another question is no base: the chain would prove two different things."""
    first = report(tmp_path, 1, spec())
    with pytest.raises(ReconcileError, match="answers another question"):
        base_of(spec(first, identity="key"))
    assert base_of(spec(first, findings=7, hide_keys=True)) is not None


@pytest.mark.parametrize(
    ("members", "same"),
    [
        ({"url": "jdbc:postgresql://h/d?currentSchema=b&password=p1"}, False),
        ({"url": "jdbc:postgresql://h/d?password=p2&currentSchema=a&sslmode=require"}, True),
        ({"url": "jdbc:postgresql://h/d?currentSchema=users"}, False),
        ({"options": {"sessionInitStatement": "SET search_path = b"}}, False),
        ({"options": {"driver": "d", "password": "p"}}, True),
        ({"properties": "user=a\npassword=other\n"}, True),
        ({"properties": "user=b\npassword=p\n"}, False),
    ],
)
def test_parameters_that_lead_to_another_table_are_another_question(
    members: dict[str, object], same: bool, tmp_path: Path
) -> None:
    """A parameter that can select another table changes the question; one for access does not."""
    (tmp_path / "first").write_text("user=a\npassword=p\n")
    if "properties" in members:
        (tmp_path / "second").write_text(str(members["properties"]))
        members = {"properties": str(tmp_path / "second")}
    left = {"kind": "topic", "topics": ["t"], "row": {"of": "kafka"}}
    url = "jdbc:postgresql://h/d?currentSchema=a&user=u&password=p1"
    right = {"kind": "table", "url": url, "table": "t", "properties": str(tmp_path / "first")}
    asked = [
        spec(job="topic-sink", topics=[], left=left, right={**right, **more})
        for more in ({}, members)
    ]
    assert (question_of(asked[0]) == question_of(asked[1])) is same


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (snapshot(30, topic_id="j"), "deleted and created again"),
        (snapshot(30, partitions=2), "has 2 partitions, and had 1"),
        (replace(snapshot(30), cluster_id="d"), "is not the topic of the last report"),
    ],
)
def test_other_topics_have_no_base(tmp_path: Path, now: TopicsSnapshot, reason: str) -> None:
    """A chain ends if a topic was created again, has more partitions, or is in another cluster."""
    base = known(base_of(spec(report(tmp_path, 1, spec()))))
    with pytest.raises(ReconcileError, match=reason):
        base.bounds(MAIN, now)


def test_records_that_retention_took_between_two_nights_are_unknown(tmp_path: Path) -> None:
    """Records that expired between two nights are unknown; a night without records agrees."""
    base = known(base_of(spec(report(tmp_path, 1, spec()))))
    for earliest, verdict in ((10, Verdict.AGREE), (15, Verdict.UNKNOWN)):
        now = snapshot(20, earliest=earliest)
        night = narrowed(now, since=base.bounds(MAIN, now), until={})
        outcome = continued(CheckOutcome(), base, {MAIN: night})
        assert verdict_of(outcome.findings) is verdict
    # A note of the job on the same records, as from `duplicates`, must not replace the gap.
    note = Finding(kind="expired", severity=Severity.NOTE, message="", topic="t", partition=0)
    outcome = continued(CheckOutcome(findings=(note,)), base, {MAIN: night})
    assert verdict_of(outcome.findings) is Verdict.UNKNOWN
    now = snapshot(10)
    night = narrowed(now, since=base.bounds(MAIN, now), until={})
    outcome = continued(CheckOutcome(findings=(EMPTY,)), base, {MAIN: night})
    assert verdict_of(outcome.findings) is Verdict.AGREE
    # A night whose records were all aborted has an empty range, too.
    night = narrowed(snapshot(30), since=base.bounds(MAIN, now), until={})
    outcome = continued(CheckOutcome(findings=(EMPTY,)), base, {MAIN: night})
    assert verdict_of(outcome.findings) is Verdict.AGREE
    assert continued(CheckOutcome(findings=(EMPTY,)), None, {}).findings == (EMPTY,)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"job": "sequence", "sequence": "key"}, "missing between two nights"),
        ({"job": "ranges"}, "compares with the last run already"),
        ({"since_ms": 5}, "excludes"),
        ({"ranges": "x"}, "excludes"),
        ({"job": "topic-topic", "mode": "upsert"}, "last version of a key"),
        ({"job": "topic-topic", "ordered": True}, "order of a key"),
    ],
)
def test_what_one_night_cannot_prove_is_refused(members: dict[str, object], reason: str) -> None:
    """`since_last` is refused where a chain of reports would not prove the whole."""
    sides = {name: {"kind": "topic", "topics": [name]} for name in ("left", "right")}
    with pytest.raises(ReconcileError, match=reason):
        spec(**({**sides, **members} if members.get("job") == "topic-topic" else members))
