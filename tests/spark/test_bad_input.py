"""Input that a job cannot read or compare: a finding or an error, never a trace or agreement."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pyconnect_reconcile.capture import capture
from pyconnect_reconcile.compares.places import SAMPLES
from pyconnect_reconcile.findings import Verdict
from pyconnect_reconcile.spec import read_spec
from pyconnect_reconcile.topics.snapshot import UNKNOWN_POLICY
from tests.support.audits.audits import Audit, no_table
from tests.support.audits.seeding import Record, Seed, seed_topic
from tests.support.commands.reconcile_command import Reconcile
from tests.support.servers.kafka import SharedBroker

pytestmark = [pytest.mark.spark, pytest.mark.timeout(800)]

LINES = [f"n={n}" for n in range(50)]


@pytest.fixture
def reconcile(kafka_broker: SharedBroker, tmp_path: Path) -> Reconcile:
    return Reconcile(tmp_path, PYCONNECT_KAFKA_BOOTSTRAP=kafka_broker.bootstrap_servers)


@pytest.fixture
def seed(kafka_broker: SharedBroker) -> Seed:
    seed = seed_topic(kafka_broker.bootstrap_servers)
    seed.write([Record(line.encode(), key=b"k") for line in LINES])
    return seed


def topic_side(seed: Seed) -> dict[str, object]:
    return {"kind": "topic", "topics": [seed.topic]}


def test_a_topic_that_is_not_there_leaves_the_audit_undecided(reconcile: Reconcile) -> None:
    """The error and the report name the missing topic, and the audit does not create it."""
    for _ in range(2):
        ended = reconcile("duplicates", "audited-nowhere")
        assert ended.code == 11
        assert ended.found == [("failed", [])]
        assert "topic audited-nowhere: the topic does not exist" in ended.err


def test_an_unknown_key_of_a_spec_file_ends_the_command_with_2(
    reconcile: Reconcile, seed: Seed, tmp_path: Path
) -> None:
    """An unknown member is a usage error that suggests the similar member."""
    spec = tmp_path / "spec.yaml"
    spec.write_text("identiy: key\n")
    ended = reconcile("duplicates", seed.topic, "--spec", str(spec))
    assert (ended.code, ended.report) == (2, None)
    assert "`identiy` is not a known member" in ended.err
    assert "did you mean `identity`?" in ended.err


def while_comparing(change: Callable[[], object]) -> Callable[[str], None]:
    """Return a callback that changes something between the capture of files and their reading."""

    def began(step: str) -> None:
        if step.startswith("comparing"):
            change()

    return began


def test_a_sink_file_that_is_being_written_prevents_a_match(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """A line that the sink writes during the run is reported, whether it is read or not."""
    sink = tmp_path / "sink.txt"
    sink.write_text("".join(f"{line}\n" for line in LINES))
    files = {"kind": "files", "paths": [str(sink)], "format": "text"}

    def append() -> None:
        with sink.open("a") as stream:
            stream.write("n=1\n")

    answer = audit.run(
        "topic-sink", left=topic_side(seed), right=files, began=while_comparing(append)
    )
    assert answer.verdict in {Verdict.DIFFER, Verdict.UNKNOWN}
    assert "file-changed" in answer.kinds()


def test_a_source_may_be_appended_to_while_it_is_compared(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """Lines beyond the committed offset do not count; a changed line before it is reported."""
    file, content = tmp_path / "source.txt", "".join(f"{line}\n" for line in LINES)
    file.write_text(content)
    files = {"kind": "files", "paths": [str(file)], "format": "text", "limit_bytes": len(content)}
    sides = {"left": files, "right": topic_side(seed)}

    def append() -> None:
        with file.open("a") as stream:
            stream.write("n=1\nlater")

    def change() -> None:
        file.write_text(content.replace("n=7", "n=0"))

    appended = audit.run("source-topic", began=while_comparing(append), **sides)
    assert (appended.verdict, appended.kinds()) == (Verdict.AGREE, set())
    changed = audit.run("source-topic", began=while_comparing(change), **sides)
    assert (changed.verdict, changed.kinds()) == (Verdict.UNKNOWN, {"file-changed"})


def test_an_unknown_cleanup_policy_prevents_a_match(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """A topic that may be compacted prevents agreement, but a difference is still reported."""
    spec = {
        "job": "ranges",
        "topics": [seed.topic],
        "clusters": {"main": {"bootstrap": audit.bootstrap}},
    }
    known = capture(read_spec(spec), tmp_path, no_table).snapshots["main"]
    topics = tuple(replace(topic, cleanup_policy=UNKNOWN_POLICY) for topic in known.topics)
    saved = tmp_path / "ranges.json"
    saved.write_text(json.dumps(replace(known, topics=topics).to_json()))
    file = tmp_path / "sink.txt"
    file.write_text("".join(f"{line}\n" for line in LINES))
    files = {"kind": "files", "paths": [str(file)], "format": "text"}
    sides = {"left": topic_side(seed), "right": files}
    tiers = [{"name": each, "side": topic_side(seed)} for each in ("one", "other")]
    scanned: dict[str, object] = {"topics": [seed.topic], "ranges": str(saved)}
    asked: dict[str, dict[str, object]] = {
        "duplicates": scanned,
        "sequence": {**scanned, "sequence": r"regex:n=(\d+)"},
        "topic-sink": {**sides, "ranges": str(saved)},
        "completeness": {"tiers": tiers, "ranges": str(saved)},
    }
    for job, members in asked.items():
        answer = audit.run(job, **members)
        # The records are new: the only span of `completeness` has not ended.
        open_span = {"under-way"} if job == "completeness" else set()
        expected = (Verdict.UNKNOWN, {"unknown-policy"} | open_span)
        assert (answer.verdict, answer.kinds()) == expected, job
    assert audit.run("transactions", **scanned).verdict is Verdict.AGREE
    file.write_text("")
    assert audit.run("topic-sink", **asked["topic-sink"]).verdict is Verdict.DIFFER


def test_a_last_version_that_does_not_parse_is_compared_by_its_bytes(audit: Audit) -> None:
    """Last versions that do not parse are equal if their bytes are; earlier ones do not count."""
    good, other, bad = b'{"v":1}', b'{"v":2}', b"no json"
    histories: dict[bytes, tuple[list[bytes], list[bytes]]] = {
        b"same": ([good], [good]),
        b"once bad": ([bad, good], [good]),
        b"once bad, changed": ([bad, good], [bad, other]),
        b"bad": ([good, bad], [good]),
        b"bad, dropped": ([bad], []),
        b"bad on both": ([bad], [bad]),
        b"bad on the right": ([good], [bad]),
        b"bad, foreign": ([], [bad]),
        b"changed": ([good], [other]),
    }
    seeds = [seed_topic(audit.bootstrap) for _ in range(2)]
    for side, topic in enumerate(seeds):
        records = [Record(v, key=key) for key, both in histories.items() for v in both[side]]
        topic.write(records)
    left, right = ({**topic_side(topic), "value": "json"} for topic in seeds)
    answer = audit.run("topic-topic", left=left, right=right, mode="upsert")
    found = {each.copies[0].key for each in answer.of("different")}
    assert found == {"bad", "once bad, changed", "bad on the right", "changed"}
    assert answer.outcome.totals == {"different": len(found), "missing": 1, "extra": 1}
    strange = [{copy.key for copy in each.copies} for each in answer.of("unparsable")]
    assert sorted(strange, key=lambda keys: "bad, foreign" in keys) == [
        {"bad", "bad, dropped", "bad on both"},
        {"bad on both", "bad on the right", "bad, foreign"},
    ]
    asked = audit.run("topic-topic", left=left, right=left, mode="upsert", fail_unparsable=True)
    assert asked.kinds() == {"unparsable"}


def test_append_compares_and_counts_refuse_compacted_topics(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """A compacted topic on either side is refused, because removed records are unknown."""
    compacted = seed_topic(audit.bootstrap, config={"cleanup.policy": "compact,delete"})
    compacted.write([Record(line.encode(), key=b"k") for line in LINES])
    refused = [
        audit.run("topic-topic", left=topic_side(left), right=topic_side(right))
        for left, right in ((seed, compacted), (compacted, seed))
    ]
    tiers = [{"name": each.topic, "side": topic_side(each)} for each in (seed, compacted)]
    refused.append(audit.run("completeness", tiers=tiers))
    for answer in refused:
        [finding] = answer.outcome.findings
        assert (answer.verdict, finding.kind) == (Verdict.UNKNOWN, "not-audited")
        assert f"compacted topics: {compacted.topic}" in finding.message


def test_an_empty_comparison_is_not_a_match(audit: Audit, seed: Seed, tmp_path: Path) -> None:
    """A compare without rows or a committed offset is unknown, even if the sink has all rows."""
    empty, other = seed_topic(audit.bootstrap), seed_topic(audit.bootstrap)
    file = tmp_path / "empty.txt"
    file.touch()
    files = {"kind": "files", "paths": [str(file)], "format": "text"}
    topics = audit.run("topic-topic", left=topic_side(empty), right=topic_side(other))
    sink = audit.run("topic-sink", left=topic_side(empty), right=files)
    tiers = [{"name": each.topic, "side": topic_side(each)} for each in (empty, other)]
    completeness = audit.run("completeness", tiers=tiers)
    for answer in (topics, sink, completeness):
        assert answer.verdict is Verdict.UNKNOWN
        assert answer.kinds() == {"empty-range"}
    file.write_text("".join(f"{line}\n" for line in LINES))
    # A range whose requested end is its beginning, and a group without an offset.
    for until, kinds in (({"0": 0}, set()), ({}, {"not-audited"})):
        nothing = audit.run(
            "topic-sink", left=topic_side(seed), right=files, until={seed.topic: until}
        )
        assert (nothing.verdict, nothing.kinds()) == (Verdict.UNKNOWN, {"empty-range", *kinds})


def test_values_that_do_not_parse_are_counted_and_never_agree_by_themselves(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """Values that do not parse into columns are counted with places, and prove no agreement."""
    file = tmp_path / "sink.jsonl"
    file.write_text("".join(f"{line}\n" for line in LINES))
    files = {"kind": "files", "paths": [str(file)], "format": "json"}
    members = {
        "left": {**topic_side(seed), "value": "json"}, "right": files, "columns": ["id:bigint"],
    }  # fmt: skip
    answer = audit.run("topic-sink", **members)
    assert answer.verdict is Verdict.UNKNOWN
    assert {finding.count for finding in answer.of("unparsable")} == {len(LINES)}
    assert answer.rows("unparsable") <= set(range(1, len(LINES) + 1))
    assert [len(finding.copies) for finding in answer.of("unparsable")] == [SAMPLES, SAMPLES]
    assert audit.run("topic-sink", fail_unparsable=True, **members).verdict is Verdict.DIFFER
