"""Faults on a real broker are found at their exact offsets, and nothing else is."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Severity, Verdict
from pyconnect_reconcile.report.contents import Report, write_report
from pyconnect_reconcile.spec import read_spec
from tests.support.audits.audits import Audit, no_table
from tests.support.audits.seeding import DEADLINE_S, Record, delete_before, seed_topic
from tests.support.eventually import eventually
from tests.support.servers.topics import recreate_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

NUMBERS = {"sequence": "json:n", "group": "json:s"}


def numbered(number: int, *, source: str = "a", partition: int = 0) -> Record:
    value = json.dumps({"s": source, "n": number, "pad": "x" * 20}).encode()
    return Record(value, key=f"{source}{number}".encode(), partition=partition)


def lines(texts: list[str]) -> list[Record]:
    return [Record(text.encode()) for text in texts]


def test_a_clean_topic_agrees_in_every_job(audit: Audit) -> None:
    """Transactions, their markers and two partitions are not reported."""
    seed = seed_topic(audit.bootstrap, partitions=2)
    seed.write([numbered(n) for n in range(1, 201)], outcome="commit")
    seed.write([numbered(n) for n in range(201, 300)], outcome="commit")
    seed.write([numbered(n, source="b", partition=1) for n in range(-70, 90)])
    topics = [seed.topic]
    for job, members in {"sequence": NUMBERS, "duplicates": {}, "transactions": {}}.items():
        answer = audit.run(job, topics=topics, **members)
        assert answer.outcome.findings == (), job
    counts = answer.outcome.partitions
    assert [(each.rows_committed, each.markers, each.aborted) for each in counts] == [
        (299, 2, 0),
        (160, 0, 0),
    ]


def test_faults_of_a_sequence_are_found_at_their_offsets(audit: Audit) -> None:
    """Holes, also wide ones, and repeated, late and strange numbers are found for each source."""
    seed = seed_topic(audit.bootstrap, partitions=2)
    present = [n for n in range(1, 400) if n not in {64, 65, 130, 257}]
    seed.write([numbered(n) for n in present], outcome="commit")
    [repeated] = seed.write([numbered(77)], outcome="commit")
    seed.write([numbered(401)])
    [late] = seed.write([numbered(400)])
    [strange] = seed.write([Record(b"no json")])
    seed.write([numbered(n, source="b", partition=1) for n in range(10, 300)])
    apart = [1, 2, 3, 262_143, 262_144, 262_145, 5_000_000]
    seed.write([numbered(n, source="c", partition=1) for n in apart])
    answer = audit.run("sequence", topics=[seed.topic], **NUMBERS)
    assert answer.verdict is Verdict.DIFFER
    narrow = {("a", 64, 65), ("a", 130, 130), ("a", 257, 257)}
    wide = {("c", 4, 262_142), ("c", 262_146, 4_999_999)}
    assert answer.intervals("missing") == narrow | wide
    assert answer.intervals("repeated") == {("a", 77, 77)}
    assert answer.places("repeated") == {frozenset({(0, 74), repeated})}
    assert answer.places("disorder") == {frozenset({late})}
    assert answer.places("unparsable") == {frozenset({strange})}
    assert answer.kinds() == {"missing", "repeated", "disorder", "unparsable"}
    assert {copy.key for each in answer.of("disorder") for copy in each.copies} == {"a400"}


def test_numbers_are_numbers_however_they_are_written_up_to_the_edge_of_64_bits(
    audit: Audit, spark: SparkSession, tmp_path: Path
) -> None:
    """Numbers count in texts and decimals, too, up to 2^62, and the report holds the widest gap."""
    most = 2**62 - 1
    seed = seed_topic(audit.bootstrap)
    seed.write([numbered(number) for number in (-most, most, 5)])
    strange = seed.write([numbered(n) for n in (most + 1, -most - 1, 2**63 - 1, -(2**63), 2**63)])
    strange += seed.write(lines(['{"s":"a","n":1.5}']))
    written = ["1", '"2"', "3.0", '"4"', "5", "7"]
    seed.write(lines([f'{{"s":8,"n":{number}}}' for number in written]))
    strange += seed.write(lines(['{"s":8,"n":1180591620717411303424}', '{"n":6}']))
    answer = audit.run("sequence", topics=[seed.topic], **NUMBERS)
    wide = {("a", 1 - most, 4), ("a", 6, most - 1)}
    assert answer.intervals("missing") == {*wide, ("8", 6, 6)}
    assert answer.places("disorder") == {frozenset({(0, 2)})}
    assert answer.places("unparsable") == {frozenset(strange)}
    assert answer.outcome.totals["missing"] == 2 * most - 2 + 1
    cluster = {"main": {"bootstrap": audit.bootstrap}}
    asked = {"job": "sequence", "topics": [seed.topic], "clusters": cluster, **NUMBERS}
    report = Report(
        spec=read_spec(asked),
        snapshots={},
        outcome=answer.outcome,
        started_ms=0,
        duration_ms=0,
        spark_version="",
    )
    write_report(report, tmp_path, parquet=True)
    kept = spark.read.parquet(str(tmp_path / "findings" / "findings.parquet")).collect()
    assert {row["count"] for row in kept if row["kind"] == "missing"} == {most + 4, most - 6, 1}


def test_aborted_records_are_distinguished_from_duplicates(audit: Audit) -> None:
    """A record that was repeated after an abort is benign, a second committed copy is an error."""
    seed = seed_topic(audit.bootstrap)
    seed.write([numbered(n) for n in range(10)], outcome="commit")
    aborted = seed.write([numbered(n) for n in range(10, 14)], outcome="abort")
    again = seed.write([numbered(n) for n in range(10, 20)], outcome="commit")
    copy = seed.write([numbered(3)], outcome="commit")
    answer = audit.run("duplicates", topics=[seed.topic])
    assert answer.verdict is Verdict.DIFFER
    assert answer.places("duplicate") == {frozenset({(0, 3), copy[0]})}
    benign = {frozenset(pair) for pair in zip(aborted, again, strict=False)}
    assert answer.places("benign-duplicate") == benign
    visible = {
        copy.offset: copy.visible
        for finding in answer.of("benign-duplicate")
        for copy in finding.copies
    }
    assert visible == {**{at[1]: False for at in aborted}, **{at[1]: True for at in again[:4]}}
    found = audit.run("transactions", topics=[seed.topic])
    assert found.verdict is Verdict.AGREE
    assert found.intervals("aborted") == {(None, aborted[0][1], aborted[-1][1])}
    [counts] = found.outcome.partitions
    assert (counts.rows_committed, counts.aborted, counts.markers) == (21, 4, 4)


def test_provenance_headers_find_duplicates_that_values_hide(audit: Audit) -> None:
    """Duplicates have equal source offsets, not equal values, and holes are within one start."""
    seed = seed_topic(audit.bootstrap)

    def stamped(at: int, epoch: int, number: int) -> Record:
        texts = {"partition": "p", "offset": f'{{"position":{at}}}', "seq": number, "epoch": epoch}
        headers = [(f"pyconnect.source.{name}", str(text).encode()) for name, text in texts.items()]
        return Record(b"same value", headers=headers)

    first = seed.write([stamped(10 * n, 1, n) for n in range(1, 6)])
    second = seed.write([stamped(40, 2, 1), stamped(50, 2, 2), stamped(60, 2, 4)])
    duplicates = audit.run("duplicates", topics=[seed.topic], identity="provenance")
    assert duplicates.places("duplicate") == {
        frozenset({first[3], second[0]}),
        frozenset({first[4], second[1]}),
    }
    holes = audit.run("sequence", topics=[seed.topic], sequence="provenance")
    assert holes.intervals("missing") == {("p/2", 3, 3)}
    assert holes.kinds() == {"missing"}


def test_an_open_transaction_is_reported_with_its_producer(audit: Audit) -> None:
    """The audit ends at the last stable offset and names the producer of the open transaction."""
    seed = seed_topic(audit.bootstrap)
    seed.write([numbered(n) for n in range(1, 6)])
    producer, opened = seed.open([numbered(6), numbered(7)])
    eventually(lambda: audit.run("ranges", topics=[seed.topic]).of("open-transaction"), DEADLINE_S)
    answer = audit.run("sequence", topics=[seed.topic], **NUMBERS)
    [finding] = answer.outcome.findings
    assert (finding.kind, finding.first, finding.last) == ("open-transaction", 5, opened[-1][1])
    assert "producer" in finding.message
    assert "since offset 5" in finding.message
    tiers = [
        {"name": name, "side": {"kind": "topic", "topics": [seed.topic]}, "event_time": "timestamp"}
        for name in ("one", "other")
    ]
    asked: dict[str, dict[str, object]] = {
        "sequence": {"topics": [seed.topic], **NUMBERS},
        "duplicates": {"topics": [seed.topic]},
        "transactions": {"topics": [seed.topic]},
        "completeness": {"tiers": tiers},
    }
    for job, members in asked.items():
        cut = audit.run(job, **members)
        assert cut.verdict is Verdict.UNKNOWN, job
        assert cut.of("open-transaction")[0].severity is Severity.UNKNOWN, job
    scoped = audit.run("sequence", topics=[seed.topic], stable_only=True, **NUMBERS)
    assert (scoped.verdict, scoped.of("open-transaction")[0].severity) == (
        Verdict.AGREE,
        Severity.NOTE,
    )
    complete = seed_topic(audit.bootstrap)
    complete.write([numbered(n) for n in range(1, 8)])
    sides = {
        name: {"kind": "topic", "topics": [each.topic]}
        for name, each in (("left", complete), ("right", seed))
    }
    for mode, kind in (("append", "unfinished"), ("upsert", "under-way")):
        lent = audit.run("topic-topic", mode=mode, stable_only=True, **sides)
        assert (lent.verdict, lent.kinds()) == (Verdict.UNKNOWN, {kind})
    bounded = audit.run("sequence", topics=[seed.topic], until={seed.topic: {0: 4}}, **NUMBERS)
    assert (bounded.verdict, bounded.outcome.findings) == (Verdict.AGREE, ())
    producer.abort_transaction(DEADLINE_S)


def test_source_and_topic_are_compared_up_to_the_committed_offset(
    audit: Audit, tmp_path: Path
) -> None:
    """Missing, changed and repeated lines have a place, and uncommitted lines are no loss."""
    texts = [f"line {n}" for n in range(3000)]
    file = tmp_path / "source.txt"
    committed = "".join(f"{text}\n" for text in texts)
    file.write_text(committed + "later 1\nlater 2\n")
    seed = seed_topic(audit.bootstrap)
    written = list(texts)
    written[77] = "changed"
    del written[1234]
    written.insert(2000, "line 5")
    seed.write(lines([*written, "later 1"]), outcome="commit")
    source = {
        "kind": "files",
        "paths": [str(file)],
        "format": "text",
        "limit_bytes": len(committed),
    }
    answer = audit.run("source-topic", left=source, right={"kind": "topic", "topics": [seed.topic]})
    assert answer.rows("missing") == {78, 1235}
    assert answer.places("extra") == {frozenset({(0, 77)})}
    assert answer.places("repeated") == {frozenset({(0, 5), (0, 2000)})}
    assert answer.kinds() == {"missing", "extra", "repeated"}


def test_last_versions_are_compared_by_key(audit: Audit) -> None:
    """Only the last version of each key counts, and tombstones remove keys, compacted or not."""
    seeds = [seed_topic(audit.bootstrap, config={"cleanup.policy": "compact"}) for _ in range(2)]
    for seed in seeds:
        seed.write([Record(f"v{n}".encode(), key=f"k{n}".encode()) for n in range(500)])
    seeds[0].write([Record(b"old", key=b"k7"), Record(b"v7", key=b"k7"), Record(None, key=b"k8")])
    [changed] = seeds[1].write([Record(b"other", key=b"k9")])
    seeds[1].write([Record(None, key=b"k10")])
    sides = [{"kind": "topic", "topics": [seed.topic]} for seed in seeds]
    answer = audit.run("topic-topic", left=sides[0], right=sides[1], mode="upsert")
    assert answer.places("different") == {frozenset({(0, 9), changed})}
    assert {copy.key for finding in answer.of("missing") for copy in finding.copies} == {"k10"}
    assert {copy.key for finding in answer.of("extra") for copy in finding.copies} == {"k8"}
    assert answer.kinds() == {"different", "missing", "extra"}


def test_a_sink_is_compared_up_to_its_group_s_offsets(audit: Audit, tmp_path: Path) -> None:
    """Uncommitted records and dead letters are not missing, but a lost line is."""
    seed, letters = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    texts = [f"row {n}" for n in range(1000)]
    seed.write(lines(texts))
    letters.write(lines(["row 10", "row 11"]))
    gone = {10, 11, 500, *range(900, 1000)}
    sink = tmp_path / "sink.txt"
    sink.write_text("".join(f"{text}\n" for n, text in enumerate(texts) if n not in gone))
    answer = audit.run(
        "topic-sink",
        left={"kind": "topic", "topics": [seed.topic]},
        right={"kind": "files", "paths": [str(sink)], "format": "text"},
        arrived={"kind": "topic", "topics": [letters.topic]},
        until={seed.topic: {0: 900}},
    )
    assert answer.places("missing") == {frozenset({(0, 500)})}
    assert answer.kinds() == {"missing"}


def test_columns_of_files_are_compared_with_json_values(audit: Audit, tmp_path: Path) -> None:
    """Texts of CSV are compared as numbers, as decimals of their scale, and as the given null."""
    seed = seed_topic(audit.bootstrap)
    rows = [
        {"id": n if n % 7 else f"{n}", "price": n / 4, "note": None if n % 3 else "x"}
        for n in range(300)
    ]
    seed.write([Record(json.dumps(row).encode()) for row in rows])
    file = tmp_path / "sink.csv"
    content = [f"{r['id']},{r['price']:.3f},{r['note'] or 'NULL'}" for r in rows]
    content[200] = "200,50.010,NULL"
    file.write_text("\n".join(["id,price,note", *content]) + "\n")
    answer = audit.run(
        "topic-sink",
        left={"kind": "topic", "topics": [seed.topic], "value": "json"},
        right={"kind": "files", "paths": [str(file)], "format": "csv"},
        columns=["id:bigint", "price:decimal(12,3)", {"name": "note", "null": "NULL"}],
    )
    assert answer.places("missing") == {frozenset({(0, 200)})}
    assert len(answer.of("extra")) == 1
    assert answer.kinds() == {"missing", "extra"}


def test_retention_and_a_recreated_topic_are_found_against_the_last_run(
    audit: Audit, tmp_path: Path
) -> None:
    """Expired offsets that no run has read, and a topic that was created again, are errors."""
    from pyconnect_reconcile.capture import capture

    seed = seed_topic(audit.bootstrap)
    seed.write([numbered(n) for n in range(20)])
    clusters = {"main": {"bootstrap": audit.bootstrap}}
    spec = read_spec({"job": "ranges", "topics": [seed.topic], "clusters": clusters})
    saved = tmp_path / "ranges.json"
    saved.write_text(json.dumps(capture(spec, tmp_path, no_table).snapshots["main"].to_json()))
    seed.write([numbered(n) for n in range(20, 40)])
    delete_before(seed, 0, 25)
    answer = audit.run("ranges", topics=[seed.topic], previous=str(saved))
    assert answer.intervals("retention-loss") == {(None, 0, 24)}
    assert answer.verdict is Verdict.DIFFER
    gone = audit.run("sequence", topics=[seed.topic], ranges=str(saved), **NUMBERS)
    assert gone.verdict is Verdict.UNKNOWN
    assert gone.kinds() == {"removed-while-read"}
    started = list[str]()

    def recreate(step: str) -> None:
        if not started:
            recreate_topic(seed.bootstrap, seed.topic)
            seed.write([numbered(n) for n in range(50)])
        started.append(step)

    replaced = audit.run("duplicates", topics=[seed.topic], began=recreate)
    assert (replaced.verdict, replaced.kinds()) == (Verdict.UNKNOWN, {"removed-while-read"})
    answer = audit.run("ranges", topics=[seed.topic], previous=str(saved))
    assert answer.kinds() == {"recreated-topic"}


def test_an_undecided_check_is_never_a_match(audit: Audit, tmp_path: Path) -> None:
    """Empty ranges, compacted topics and missing topics never agree."""
    empty = seed_topic(audit.bootstrap)
    for job, members in {"sequence": NUMBERS, "duplicates": {}, "transactions": {}}.items():
        assert audit.run(job, topics=[empty.topic], **members).verdict is Verdict.UNKNOWN
    compacted = seed_topic(audit.bootstrap, config={"cleanup.policy": "compact"})
    compacted.write([numbered(1)])
    for job in ("sequence", "duplicates"):
        members = NUMBERS if job == "sequence" else {}
        refused = audit.run(job, topics=[compacted.topic], **members)
        assert (refused.verdict, refused.kinds()) == (Verdict.UNKNOWN, {"not-audited"})
        assert "compacted topics" in refused.of("not-audited")[0].message
    # Without a gap in the offsets nothing was removed.
    assert audit.run("transactions", topics=[compacted.topic]).verdict is Verdict.AGREE
    compacted.write([numbered(2)], outcome="commit")
    gapped = audit.run("transactions", topics=[compacted.topic])
    assert (gapped.verdict, gapped.kinds()) == (Verdict.UNKNOWN, {"compacted"})
    with pytest.raises(ReconcileError, match="the topic does not exist"):
        audit.run("duplicates", topics=["audited-nowhere"])
    strange = seed_topic(audit.bootstrap)
    strange.write(lines(["x", "y"]))
    assert audit.run("sequence", topics=[strange.topic], **NUMBERS).verdict is Verdict.UNKNOWN
    asked = audit.run("sequence", topics=[strange.topic], fail_unparsable=True, **NUMBERS)
    assert asked.verdict is Verdict.DIFFER
    with pytest.raises(ReconcileError, match="the file does not exist"):
        audit.run(
            "topic-sink",
            left={"kind": "topic", "topics": [strange.topic]},
            right={"kind": "files", "paths": [str(tmp_path / "none")], "format": "text"},
        )
