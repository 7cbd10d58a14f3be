"""What cannot be told or asked: a finding or an error, never a stack trace, never agreement."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from tests.support.audits import Audit
from tests.support.kafka import SharedBroker
from tests.support.reconcile_command import QUICK, Reconcile
from tests.support.seeding import Record, Seed, seed_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

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


def test_a_topic_that_is_not_there_ends_the_command_with_2(reconcile: Reconcile) -> None:
    """Its name is told, no report is left and nobody creates it."""
    for _ in range(2):
        ended = reconcile("duplicates", "audited-nowhere")
        assert (ended.code, ended.report) == (2, None)
        assert "topic audited-nowhere: there is no such topic" in ended.err


def test_an_unknown_key_of_a_spec_file_ends_the_command_with_2(
    reconcile: Reconcile, seed: Seed, tmp_path: Path
) -> None:
    """A misspelt member would silently change the question: the near one is told."""
    spec = tmp_path / "spec.yaml"
    spec.write_text("identiy: key\n")
    ended = reconcile("duplicates", seed.topic, "--spec", str(spec))
    assert (ended.code, ended.report) == (2, None)
    assert "`identiy` is not known here" in ended.err
    assert "did you mean `identity`?" in ended.err


def test_a_sink_file_that_is_being_written_is_no_agreement(
    reconcile: Reconcile, seed: Seed, tmp_path: Path
) -> None:
    """The file agreed when the run began: whether the new line is read or not, it is told."""
    sink = tmp_path / "sink.txt"
    sink.write_text("".join(f"{line}\n" for line in LINES))
    command = ("topic-sink", "--topic", seed.topic, "--files", str(sink), *QUICK)
    process = reconcile.start(*command)
    assert process.stderr is not None
    assert any("comparing" in line for line in iter(process.stderr.readline, ""))
    with sink.open("a") as stream:
        stream.write("n=1\n")
    ended = reconcile.end(process)
    assert ended.code in {1, 2}
    assert "file-changed" in [kind for kind, _ in ended.found]


def test_append_compares_refuse_compacted_topics(audit: Audit, seed: Seed, tmp_path: Path) -> None:
    """On either side: what is gone was there once."""
    compacted = seed_topic(audit.bootstrap, config={"cleanup.policy": "compact,delete"})
    compacted.write([Record(line.encode(), key=b"k") for line in LINES])
    for left, right in ((seed, compacted), (compacted, seed)):
        with pytest.raises(ReconcileError, match=rf"compacted topics: {compacted.topic}"):
            audit.run("topic-topic", left=topic_side(left), right=topic_side(right))


def test_nothing_to_compare_is_no_agreement(audit: Audit, tmp_path: Path) -> None:
    """Two empty topics, an empty topic and an empty file, tiers without a row."""
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


def test_values_that_do_not_parse_are_counted_and_never_agree_by_themselves(
    audit: Audit, seed: Seed, tmp_path: Path
) -> None:
    """Compared by columns, text that is no JSON is on both sides, and tells nothing."""
    file = tmp_path / "sink.jsonl"
    file.write_text("".join(f"{line}\n" for line in LINES))
    files = {"kind": "files", "paths": [str(file)], "format": "json"}
    members = {
        "left": {**topic_side(seed), "value": "json"}, "right": files, "columns": ["id:bigint"],
    }  # fmt: skip
    answer = audit.run("topic-sink", **members)
    assert answer.verdict is Verdict.UNKNOWN
    assert {finding.count for finding in answer.of("unparsable")} == {len(LINES)}
    assert audit.run("topic-sink", fail_unparsable=True, **members).verdict is Verdict.DIFFER
