"""Reports: verdicts, arrangement, the page, and secrets that must not get into them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pyconnect_reconcile
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    PartitionCounts,
    Place,
    Severity,
    Verdict,
    count_of,
    most_severe,
    verdict_of,
)
from pyconnect_reconcile.report.contents import Report, arranged
from pyconnect_reconcile.report.page import MEANINGS, event_time_buckets, page, partition_ranges
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics.snapshot import PartitionRange, TopicSnapshot, TopicsSnapshot

SNAPSHOT = TopicsSnapshot(
    cluster_id="c",
    taken_ms=5,
    topics=(
        TopicSnapshot(
            topic="t<script>",
            topic_id="id",
            cleanup_policy="delete",
            partitions=(
                PartitionRange(
                    topic="t<script>", partition=0, start=10, end=90, earliest=10,
                    last_stable=90, high_watermark=95,
                ),
            ),
        ),
    ),
)  # fmt: skip


def finding(kind: str, severity: Severity, **members: object) -> Finding:
    return Finding(kind=kind, severity=severity, message=f"{kind} <b>", **members)  # type: ignore[arg-type]


def report(*findings: Finding, hide_keys: bool = False) -> Report:
    spec = read_spec(
        {
            "job": "sequence",
            "target": "t<script>",
            "topics": ["t<script>"],
            "sequence": "json:n",
            "clusters": {"main": {"bootstrap": "b:9092", "properties": "/secret/place"}},
            "spark": {"conf": {"spark.secret": "hunter2"}},
        }
    )
    outcome = CheckOutcome(
        findings=findings,
        totals={"missing": 3, "repeated": 0},
        counts={"rows": 80},
        partitions=(
            PartitionCounts(
                topic="t<script>", partition=0, rows_committed=70, rows_uncommitted=75, markers=5,
                aborted=5,
            ),
        ),
        series={
            "groups": [
                {"group": "g", "lowest": 1, "highest": 100, "rows": 97, "missing": 3}
            ]
        },
    )  # fmt: skip
    return Report(
        spec=spec,
        snapshots={"main": SNAPSHOT},
        outcome=arranged(outcome, hide_keys=hide_keys),
        started_ms=1,
        duration_ms=2,
        spark_version="4.0.0",
    )


def test_a_difference_outweighs_an_undecided_check() -> None:
    """An error decides the verdict over an unknown finding, and notes do not change it."""
    note, unknown = finding("n", Severity.NOTE), finding("u", Severity.UNKNOWN)
    assert verdict_of([]) is Verdict.AGREE
    assert verdict_of([note]) is Verdict.AGREE
    assert verdict_of([note, unknown]) is Verdict.UNKNOWN
    assert verdict_of([unknown, finding("e", Severity.ERROR)]) is Verdict.DIFFER
    assert [verdict.value for verdict in Verdict] == [0, 1, 11]


def test_severe_findings_come_first() -> None:
    """Findings are arranged by severity, kind and place, in whatever order Spark returns them."""
    late = finding("missing", Severity.ERROR, group="g", first=9, last=9)
    early = finding("missing", Severity.ERROR, group="g", first=4, last=5)
    made = report(finding("n", Severity.NOTE), late, early)
    assert [each.first for each in made.outcome.findings] == [4, 9, None]


def test_keys_are_hidden_on_demand() -> None:
    """With hide_keys a report has hashes of keys, and equal keys have equal hashes."""
    copies = (Place(topic="t", partition=0, offset=1, key="alice"),) * 2
    made = report(finding("repeated", Severity.ERROR, copies=copies), hide_keys=True)
    text = json.dumps(made.to_json())
    assert "alice" not in text
    keys = {copy.key for copy in made.outcome.findings[0].copies}
    assert len(keys) == 1
    assert re.fullmatch(r"sha256:[0-9a-f]{16}", keys.pop() or "")


def test_reports_hold_neither_files_of_secrets_nor_settings_of_spark() -> None:
    """The report names the request without parts that may hold credentials."""
    text = json.dumps(report().to_json())
    assert "hunter2" not in text
    assert "/secret/place" not in text
    document = report(finding("missing", Severity.ERROR)).to_json()
    assert (document["verdict"], document["exit_code"], document["schema_version"]) == (
        "differ",
        1,
        1,
    )


def test_the_page_is_self_contained_and_escapes_names() -> None:
    """The page loads no resource and runs no script, and names cannot become markup."""
    missing = finding("missing", Severity.ERROR, group="g", first=4, last=6, of="sequence", count=3)
    text = page(report(missing).to_json())
    assert "<script" not in text
    assert "t&lt;script&gt;" in text
    assert "http" not in text
    assert text.count("<svg") == 3
    assert 'class="missing"' in text
    assert 'class="open"' in text
    assert 'class="aborted"' in text


def test_no_kind_of_finding_hides_another() -> None:
    """The report shows the first findings of each kind, however many there are of one kind."""
    holes = [finding("missing", Severity.ERROR, first=n, last=n) for n in range(1000)]
    rare = finding("repeated", Severity.ERROR, first=7, last=7)
    document = report(*holes, rare, finding("n", Severity.NOTE)).to_json()
    shown = document["findings"]
    assert isinstance(shown, list)
    assert [each["kind"] for each in shown] == ["missing"] * 48 + ["repeated", "n"]
    assert [each.get("first") for each in shown[:49]] == [*range(48), 7]
    assert document["findings_kept"] == 1002
    assert "and 952 more in findings/findings.ndjson" in page(document)


def test_no_note_takes_the_place_of_a_difference() -> None:
    """A limit keeps the findings that decide the verdict, before notes."""
    notes = [finding("difference", Severity.NOTE) for _ in range(5)]
    fault, doubt = finding("difference", Severity.ERROR), finding("difference", Severity.UNKNOWN)
    assert most_severe([*notes, doubt, fault], 2) == [fault, doubt]


def test_equal_findings_are_one_with_their_sum() -> None:
    """The page has one row for equal findings, which have no place that tells them apart."""
    same = [finding("extra", Severity.ERROR, count=2) for _ in range(50)]
    other = finding("extra", Severity.ERROR, copies=(Place(file="/in", row=7),))
    document = report(*same, other).to_json()
    assert document["findings_by_kind"] == {"extra": 2}
    shown = document["findings"]
    assert isinstance(shown, list)
    assert sorted(each["count"] for each in shown) == [1, 100]
    text = page(document)
    assert text.count("<tr>") == 1
    assert '<td class="count">101</td>' in text
    assert "<li>/in line 7</li>" in text
    assert "<li>no place is known</li>" in page(report(*same).to_json())


def test_findings_of_the_same_words_are_one_row_with_keys_and_places() -> None:
    """The page has one row for findings with the same message, and shows their first places."""

    def repeated(key: str, times: int) -> Finding:
        copies = tuple(Place(topic="t", partition=0, offset=n, key=key) for n in range(times))
        said = finding("duplicate", Severity.ERROR, key=key, count=times, copies=copies)
        return replace(said, message=f"{times} times")

    text = page(report(repeated("hot", 10), *(repeated(f"k{n}", 2) for n in range(40))).to_json())
    assert text.count("<tr>") == 2
    assert "<li>key k7: t:0 offset&nbsp;0, t:0 offset&nbsp;1</li>" in text
    assert "key hot: t:0 offset&nbsp;0" in text
    assert "<li>and 30 more</li>" in text
    hidden = report(repeated("alice", 2), hide_keys=True).to_json()
    assert "alice" not in page(hidden)
    assert "key sha256:" in page(hidden)


def test_every_kind_has_a_meaning() -> None:
    """Each kind of finding has a sentence that explains it, and possibly a pyconnect command."""
    source = Path(pyconnect_reconcile.__file__).parent
    kinds = {
        kind
        for file in source.rglob("*.py")
        for kind in re.findall(r'Finding\(\s*kind="([a-z-]+)"', file.read_text())
    }
    assert kinds <= MEANINGS.keys()
    for meaning in MEANINGS.values():
        assert meaning.sentence.endswith(".")
        assert meaning.next == "" or meaning.next.startswith("pyconnect ")


def test_the_page_says_what_was_asked_for() -> None:
    """The page names each limit of the request, because the verdict covers only that range."""
    asked = replace(
        report().spec, stable_only=True, since_ms=1_700_000_000_000, until={"t": {0: 1234}}
    )
    text = page(replace(report(), spec=asked).to_json())
    assert "open transactions are out of scope" in text
    assert "since 2023-11-14 22:13:20 UTC" in text
    assert "t:0 before 1,234" in text


def test_charts_name_omitted_parts() -> None:
    """A chart names both clusters, shortens names at their start, and is empty without data."""
    topic = SNAPSHOT.topics[0]
    many = tuple(replace(topic.partitions[0], topic="x" * 99, partition=n) for n in range(70))
    document = replace(SNAPSHOT, topics=(replace(topic, partitions=many),)).to_json()
    chart = partition_ranges({"main": document})
    assert ("xxx:59" in chart, "xxx:60" in chart, "and 10 more" in chart) == (True, False, True)
    both = partition_ranges({"near": SNAPSHOT.to_json(), "far": SNAPSHOT.to_json()})
    assert ("t&lt;script&gt;:0 (near)" in both, "t&lt;script&gt;:0 (far)" in both) == (True, True)
    empty = replace(many[0], start=0, end=0, earliest=0, last_stable=0, high_watermark=0)
    nothing = replace(SNAPSHOT, topics=(replace(topic, partitions=(empty,)),))
    assert partition_ranges({"main": nothing.to_json()}) == ""


def test_a_year_of_event_time_is_drawn_in_few_columns() -> None:
    """A chart merges buckets, but shows a difference of one bucket and both ends of the time."""
    buckets = [{"time": f"t{n}", "rows": [5, 5]} for n in range(52_560)]
    buckets[17] = {"time": "t17", "rows": [5, 4]}
    chart = event_time_buckets({"tiers": ["a", "b"], "buckets": buckets})
    assert chart.count("<rect") <= 2 * 300
    assert chart.count('class="missing"') == 2
    assert (">t0</text>" in chart, ">t52559</text>" in chart) == (True, True)


def test_counts_agree_with_their_nouns_and_verbs() -> None:
    """`count_of` makes the first word plural, and the last one if it is a verb."""
    assert count_of(1, "row of t has") == "1 row of t has"
    assert count_of(2000, "row of t has") == "2,000 rows of t have"
    assert [count_of(n, "time") for n in (0, 1, 2)] == ["0 times", "1 time", "2 times"]
