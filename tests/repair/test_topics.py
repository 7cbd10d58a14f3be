"""Repairs of a topic by the report of its compare with another one, on a real broker."""

import io
import json
import os
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import CheckOutcome, Finding, Place, Severity
from pyconnect_reconcile.report.contents import Report, write_report
from pyconnect_reconcile.spec import MAIN, read_spec
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_repair import sources
from pyconnect_repair import topics as repaired_topics
from pyconnect_repair.records import Job
from pyconnect_repair.sources import messages_from
from pyconnect_repair.topics import STAYS, carry_out, plan
from tests.support.commands import killed_command
from tests.support.commands.processes import run_python
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics

pytestmark = pytest.mark.kafka

QUIET = Events(machine=True, stream=io.StringIO())
PARTITIONS = 2
WRITTEN_MS = 1_700_000_000_000


class Topics:
    """A topic, and another one that should have its records."""

    def __init__(self, broker: str, directory: Path, mode: str) -> None:
        self.broker, self.directory = broker, directory
        self.left, self.right = unique_name("whole"), unique_name("copy")
        self.spec = read_spec(
            {
                "job": "topic-topic",
                "target": f"{self.left},{self.right}",
                "clusters": {MAIN: {"bootstrap": broker}},
                "left": {"kind": "topic", "topics": [self.left]},
                "right": {"kind": "topic", "topics": [self.right]},
                "mode": mode,
                **({"key": "key"} if mode == "upsert" else {}),
            }
        )

    def write(self, topic: str, *records: tuple[str, str | None]) -> None:
        producer = Producer({"bootstrap.servers": self.broker})
        headers: list[tuple[str, str | bytes | None]] = [("trace", b"\x00\xff"), ("none", None)]
        for key, value in records:
            partition = len(value or "") % PARTITIONS
            producer.produce(
                topic, value, key, partition=partition, headers=headers, timestamp=WRITTEN_MS
            )
        producer.flush(60)

    def read(self, topic: str) -> list[Any]:
        starts = dict.fromkeys(range(PARTITIONS), 0)
        return messages_from(self.spec.clusters[MAIN], topic, starts)

    def values(self, topic: str) -> Counter[tuple[str, str | None]]:
        found: Counter[tuple[str, str | None]] = Counter()
        for each in self.read(topic):
            found[each.key().decode(), each.value() and each.value().decode()] += 1
        return found

    def place(self, topic: str, value: str | None) -> Place:
        expected = None if value is None else value.encode()
        [message] = [each for each in self.read(topic) if each.value() == expected]
        return Place(topic=topic, partition=message.partition(), offset=message.offset())

    def job(self, *findings: Finding, ordered: bool = False, **totals: int) -> Job:
        """Return the job that repairs a report with these findings."""
        report = self.directory / unique_name("report")
        report.mkdir()
        snapshot = ClusterView(self.spec.clusters[MAIN]).snapshot([self.left, self.right])
        found = Counter({each.kind: each.count for each in findings})
        whole = Report(
            spec=self.spec,
            snapshots={MAIN: snapshot},
            outcome=CheckOutcome(
                findings=findings,
                totals={**found, **totals},
                counts={"disorder": 0} if ordered else {},
            ),
            started_ms=0,
            duration_ms=0,
            spark_version="",
        )
        write_report(whole, report, parquet=False)
        rows = self.directory / f"{report.name}.rows"
        return Job(audit=self.spec, config={}, rows=rows, report=report)


@pytest.fixture
def topics(request: pytest.FixtureRequest, kafka_broker: SharedBroker, tmp_path: Path) -> Topics:
    found = Topics(kafka_broker.bootstrap_servers, tmp_path, getattr(request, "param", "append"))
    create_topics(found.broker, [found.left, found.right], partitions=PARTITIONS)
    return found


def fault(kind: str, *copies: Place, count: int = 1) -> Finding:
    return Finding(kind=kind, severity=Severity.ERROR, message="m", count=count, copies=copies)


def test_missing_records_are_written_once_however_often_the_repair_runs(topics: Topics) -> None:
    """A repair writes missing records once, with keys, headers and times; extra ones stay."""
    topics.write(topics.left, ("a", "1"), ("b", "22"), ("b", "22"), ("c", "3333"))
    topics.write(topics.right, ("a", "1"), ("x", "extra"))
    [lost, *_] = [each for each in topics.read(topics.left) if each.value() == b"22"]
    place = Place(topic=topics.left, partition=lost.partition(), offset=lost.offset())
    job = topics.job(
        fault("missing", place, count=2),
        fault("missing", topics.place(topics.left, "3333")),
        fault("extra", topics.place(topics.right, "extra")),
    )
    plan(job, QUIET)
    head, changes = job.read()
    assert (head["counts"], head["undoable"], len(changes)) == ({"missing": 3}, False, 2)
    assert head["refused"] == [f"extra: {STAYS}"]
    assert job.rows.stat().st_mode & 0o777 == 0o600
    for _ in range(2):
        carry_out(job, QUIET, undo=False)
    expected = topics.values(topics.left) + Counter({("x", "extra"): 1})
    assert topics.values(topics.right) == expected
    for message in topics.read(topics.right):
        assert message.headers() == [("trace", b"\x00\xff"), ("none", None)]
        assert message.timestamp()[1] == WRITTEN_MS
    with pytest.raises(ReconcileError, match=STAYS):
        carry_out(job, QUIET, undo=True)


@pytest.mark.parametrize("topics", ["upsert"], indirect=True)
def test_last_versions_are_written_and_taken_back(topics: Topics) -> None:
    """An undo writes the former versions, and a tombstone for a key that had no record."""
    topics.write(topics.left, ("gone", "1"), ("other", "22"))
    topics.write(topics.right, ("other", "wrong"), ("extra", "4444"))
    job = topics.job(
        fault("missing", topics.place(topics.left, "1")),
        fault("different", topics.place(topics.left, "22"), topics.place(topics.right, "wrong")),
        fault("extra", topics.place(topics.right, "4444")),
    )
    plan(job, QUIET)

    def last() -> dict[str, tuple[int, str | None]]:
        # All versions of a key must be in one partition.
        found = {}
        for each in topics.read(topics.right):
            found[each.key().decode()] = (each.partition(), each.value() and each.value().decode())
        return found

    before = last()
    for _ in range(2):
        carry_out(job, QUIET, undo=False)
    assert last() == {"gone": (1, "1"), "other": (1, "22"), "extra": (0, None)}
    for _ in range(2):
        carry_out(job, QUIET, undo=True)
    assert last() == {**before, "gone": (1, None)}


def test_a_topic_that_was_written_to_is_left(topics: Topics) -> None:
    """A record by another writer, before or after the plan, ends a repair and its undo."""
    topics.write(topics.left, ("a", "1"))
    job = topics.job(fault("missing", topics.place(topics.left, "1")))
    plan(job, QUIET)
    topics.write(topics.right, ("b", "2"))
    for undo in (False, True):
        with pytest.raises(ReconcileError, match=r"written to meanwhile|cannot be taken back"):
            carry_out(job, QUIET, undo=undo)
    job.rows.unlink()
    with pytest.raises(ReconcileError, match="written to meanwhile"):
        plan(job, QUIET)
    assert topics.values(topics.right) == Counter({("b", "2"): 1})


def test_a_report_of_an_order_or_of_a_part_is_no_basis(topics: Topics) -> None:
    """A report with a part of its findings, with `--ordered`, or of an older topic is refused."""
    topics.write(topics.left, ("a", "1"))
    found = fault("missing", topics.place(topics.left, "1"))
    part, ordered = topics.job(found, missing=2), topics.job(found, ordered=True)
    for job, reason in ((part, "names 1 of 2"), (ordered, "--ordered")):
        with pytest.raises(ReconcileError, match=reason):
            plan(job, QUIET)
        assert not job.rows.exists()
    job = topics.job(found)
    report = json.loads((job.report / "report.json").read_text())
    report["snapshots"][MAIN]["topics"][0]["topic_id"] = "another"
    (job.report / "report.json").write_text(json.dumps(report))
    with pytest.raises(ReconcileError, match="deleted and created again"):
        plan(job, QUIET)


def test_a_run_that_commits_late_cannot_double_a_record(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late commit of an earlier repair fails, because the next repair fences its transaction."""
    topics.write(topics.left, ("a", "1"))
    job = topics.job(fault("missing", topics.place(topics.left, "1")))
    plan(job, QUIET)
    late = Producer(
        {"bootstrap.servers": topics.broker, "transactional.id": f"pyconnect-repair-{topics.right}"}
    )
    late.init_transactions(60)
    late.begin_transaction()
    late.produce(topics.right, "1", "a")
    late.flush(60)
    committed: list[bool] = []

    def read_then_commit(*place: Any) -> list[Any]:
        found = messages_from(*place)
        try:
            late.commit_transaction(60)
            committed.append(True)
        except KafkaException:
            committed.append(False)
        return found

    monkeypatch.setattr(repaired_topics, "messages_from", read_then_commit)
    carry_out(job, QUIET, undo=False)
    assert committed == [False]
    assert topics.values(topics.right) == Counter({("a", "1"): 1})


def test_a_passing_error_of_a_broker_is_waited_out(
    topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection error does not end the wait for a record, but a refusal does."""
    topics.write(topics.left, ("a", "1"))
    codes = [KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN]

    class Disturbed(Consumer):
        def poll(self, timeout: float = -1) -> Any:
            if codes:
                return SimpleNamespace(error=partial(KafkaError, codes.pop()))
            return super().poll(timeout)

    monkeypatch.setattr(sources, "Consumer", Disturbed)
    assert topics.values(topics.left) == Counter({("a", "1"): 1})
    codes[:] = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(KafkaException):
        topics.read(topics.left)


def test_the_command_goes_on_after_a_kill_and_undoes_no_record(topics: Topics) -> None:
    """A repair that was killed before its journal entry finds its records in the next run."""
    topics.write(topics.left, ("a", "1"))
    job = topics.job(fault("missing", topics.place(topics.left, "1")))

    def run(*words: str, killed_at: str = "none after 1") -> tuple[int, str]:
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(topics.directory / "state"),
            "XDG_CONFIG_HOME": str(topics.directory / "config"),
            "PYCONNECT_KAFKA_BOOTSTRAP": topics.broker,
            killed_command.KILLED_AT: killed_at,
            killed_command.WITHOUT_AUDIT: "1",
        }
        command = ["-m", killed_command.__name__, "reconcile", *words, "--yes"]
        done = run_python(command, environment, 300)
        return done.returncode, done.stderr

    repair = ("repair", str(job.report))
    assert run(*repair, killed_at="RepairChanged before 1")[0] == -9
    again = run(*repair)
    assert again[0] == 0, again[1]
    code, said = run("undo")
    assert code == 9
    assert STAYS in said
    assert topics.values(topics.right) == Counter({("a", "1"): 1})
