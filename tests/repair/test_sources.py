"""Repairs of a topic by the report of its compare with its source, on a real broker."""

import io
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from confluent_kafka import Producer

from pyconnect_reconcile.data_sides import FileSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.files import bounded_copies
from pyconnect_reconcile.findings import COPIES, CheckOutcome, Finding, Place, Severity
from pyconnect_reconcile.report.contents import Report, write_report
from pyconnect_reconcile.spec import MAIN, read_spec
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_repair import topics
from pyconnect_repair.records import Job
from pyconnect_repair.sources import messages_from
from pyconnect_repair.topics import STAYS, carry_out, plan
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics

pytestmark = pytest.mark.kafka

QUIET = Events(machine=True, stream=io.StringIO())
JSON = "org.apache.kafka.connect.json.JsonConverter"
PARTITIONS = 3
READ_MS = "2024-05-01 00:00:00"


class Shop:
    """A table of SQLite, the topic of its source, and a source that has read up to number 5."""

    def __init__(self, broker: str, directory: Path, *, by_time: bool = False) -> None:
        self.broker, self.directory, self.by_time = broker, directory, by_time
        self.file, self.topic = directory / "shop.db", unique_name("shop") + "-orders"
        self.sql(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT, at DATETIME);"
            + "".join(
                f"INSERT INTO orders VALUES ({n}, 'note {n}', '2024-01-0{n} 00:00:00');"
                for n in range(1, 6)
            )
        )
        policy = {"cleanup.policy": "compact"} if by_time else {}
        create_topics(broker, [self.topic], partitions=PARTITIONS, config=policy)
        self.config = {
            "connector.class": "SqlSource",
            "connection.url": f"sqlite:///{self.file}",
            "mode": "timestamp+incrementing" if by_time else "incrementing",
            "incrementing.column.name": "id",
            **({"timestamp.column.name": "at"} if by_time else {}),
            "tables": "orders",
            "topic.prefix": self.topic.removesuffix("orders"),
            "key.converter": JSON,
            "key.converter.schemas.enable": "false",
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }

    def sql(self, script: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection:
            connection.executescript(script)

    def write(self, *numbers: int, note: str = "note") -> None:
        """Write the records of some rows as the source does."""
        producer = Producer({"bootstrap.servers": self.broker, "partitioner": "murmur2_random"})
        for n in numbers:
            at = 1_704_067_200_000 + 86_400_000 * (n - 1)
            value = {"id": n, "note": f"{note} {n}", "at": at}
            text = json.dumps(value, separators=(",", ":"))
            producer.produce(self.topic, text, json.dumps({"id": n}, separators=(",", ":")))
        assert producer.flush(60) == 0

    def read(self) -> list[Any]:
        starts = dict.fromkeys(range(PARTITIONS), 0)
        return messages_from(self.spec().clusters[MAIN], self.topic, starts)

    def last(self) -> dict[int, str | None]:
        """Return the notes of the last versions by id, None for a tombstone."""
        found = {}
        for each in sorted(self.read(), key=lambda each: each.offset()):
            value = each.value()
            found[json.loads(each.key())["id"]] = value and json.loads(value)["note"]
        return found

    def there(self, number: int) -> Place:
        [found] = [each for each in self.read() if json.loads(each.key())["id"] == number]
        return Place(topic=self.topic, partition=found.partition(), offset=found.offset())

    def spec(self, number: int = 5, **right: object) -> Any:
        position: dict[str, object] = {"incrementing": "id", "number": number}
        if self.by_time:
            position |= {"timestamps": ["at"], "timestamp": READ_MS}
        table = {"kind": "table", "url": f"jdbc:sqlite:{self.file}", "table": "orders"}
        row = {"of": "key" if self.by_time else "value"}
        return read_spec(
            {
                "job": "source-topic",
                "target": "shop",
                "clusters": {MAIN: {"bootstrap": self.broker}},
                "left": {**table, "position": position},
                "right": {"kind": "topic", "topics": [self.topic], "value": "json", "row": row},
                "mode": "upsert" if self.by_time else "append",
                **right,
            }
        )

    def job(self, *findings: Finding, spec: Any = None) -> Job:
        """Return the job that repairs a report with these findings."""
        report = self.directory / unique_name("report")
        report.mkdir()
        spec = spec or self.spec()
        totals = Counter({each.kind: each.count for each in findings})
        whole = Report(
            spec=spec,
            snapshots={MAIN: ClusterView(spec.clusters[MAIN]).snapshot([self.topic])},
            digests=digests_of(spec.left),
            outcome=CheckOutcome(findings=findings, totals=totals, counts={}),
            started_ms=0,
            duration_ms=0,
            spark_version="",
        )
        write_report(whole, report, parquet=False)
        rows = self.directory / f"{report.name}.rows"
        return Job(audit=spec, config=self.config, rows=rows, report=report)


def digests_of(side: object) -> dict[str, str]:
    """Return the digest that an audit has of the lines that a source has read."""
    if not isinstance(side, FileSide) or side.limit_bytes is None:
        return {}
    with TemporaryDirectory() as copies:
        fixed = bounded_copies(side.paths[0], side.limit_bytes, Path(copies))
    assert fixed.digest is not None
    return {"left": fixed.digest}


def row(number: int) -> Place:
    return Place(table="orders", key=json.dumps({"id": str(number)}))


def fault(kind: str, *copies: Place, **members: Any) -> Finding:
    return Finding(kind=kind, severity=Severity.ERROR, message="m", copies=copies, **members)


def moved(job: Job, spec: Any) -> Job:
    return Job(audit=spec, config=job.config, rows=job.rows, report=job.report)


def test_missing_rows_are_written_as_the_source_writes_them(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A missing row is written once, with the source's key, value and partition."""
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path)
    shop.write(1, 3)
    several = fault("missing", row(4), row(5), count=2)
    named = fault("missing", Place(table="orders", key="sha256:0"))
    job = shop.job(
        fault("missing", row(2)), several, named, fault("repeated", shop.there(1), of=COPIES)
    )
    plan(job, QUIET)
    head, _ = job.read()
    assert (head["counts"], head["undoable"]) == ({"missing": 1}, False)
    assert head["examples"] == ['the row {"id": "2"}']
    assert [reason for reason in head["refused"] if "several rows" in reason]
    assert [reason for reason in head["refused"] if "keys are hidden" in reason]
    assert f"repeated: {STAYS}" in head["refused"]
    with pytest.raises(ReconcileError, match="moved on since the report"):
        carry_out(moved(job, shop.spec(6)), QUIET, undo=False)
    shop.sql("UPDATE orders SET note = 'other' WHERE id = 2")
    with pytest.raises(ReconcileError, match="has changed since the plan"):
        carry_out(job, QUIET, undo=False)
    shop.sql("UPDATE orders SET note = 'note 2' WHERE id = 2")
    for _ in range(2):
        carry_out(job, QUIET, undo=False)
    found = {each.key(): (each.partition(), each.value()) for each in shop.read()}
    assert len(shop.read()) == len(found) == 3
    shop.write(2)
    expected = {each.key(): (each.partition(), each.value()) for each in shop.read()}
    assert found == expected


def test_two_operators_write_a_record_once(
    kafka_broker: SharedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction of the second repair fences the first one, so a record is written once."""
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path)
    first, second = (shop.job(fault("missing", row(2))) for _ in range(2))
    for job in (first, second):
        plan(job, QUIET)
    checked = topics._require_rows

    def overtaken(job: Job, changes: Sequence[topics.TopicChange]) -> None:
        checked(job, changes)
        if job is first:
            carry_out(second, QUIET, undo=False)

    monkeypatch.setattr(topics, "_require_rows", overtaken)
    with pytest.raises(ReconcileError, match="fenced"):
        carry_out(first, QUIET, undo=False)
    assert len(shop.read()) == 1
    carry_out(first, QUIET, undo=False)
    assert len(shop.read()) == 1


def test_a_report_or_a_plan_that_was_cut_is_no_basis(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A cut report or plan is refused, because a part would be reported as the whole."""
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path, by_time=True)
    shop.write(1)
    job = shop.job(fault("missing", row(2)), fault("different", row(1), shop.there(1)))
    findings, document = job.report / "findings" / "findings.ndjson", job.report / "report.json"
    report, found = document.read_text(), findings.read_text()
    for file, text, refusal in (
        (findings, found[: found.index("\n") + 1], "has 1 of its 2 findings"),
        (findings, found[:-9], "the report cannot be read"),
        (document, report.replace('"schema_version": 1', '"schema_version": 2'), "version 2"),
    ):
        file.write_text(text)
        with pytest.raises(ReconcileError, match=refusal):
            plan(job, QUIET)
        document.write_text(report)
        findings.write_text(found)
    plan(job, QUIET)
    carry_out(job, QUIET, undo=False)
    whole = job.rows.read_text()
    head, *lines, digest = whole.split("\n")
    edited = head.replace('"undoable": true', '"undoable": false')
    for text in ("\n".join([head, lines[0], digest]), "\n".join([edited, *lines, digest]), head):
        job.rows.write_text(text)
        with pytest.raises(ReconcileError, match="not as it was written"):
            carry_out(job, QUIET, undo=True)
    job.rows.write_text(whole)
    carry_out(job, QUIET, undo=True)
    assert shop.last() == {1: "note 1", 2: None}


def test_what_a_row_was_is_not_guessed(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """A row whose lost version is unknown is refused; a deleted or newer row ends the plan."""
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path)
    shop.write(1)
    shop.write(2, note="before")
    job = shop.job(
        fault("missing", row(2)), fault("extra", shop.there(2)), fault("missing", row(3))
    )
    plan(job, QUIET)
    head, changes = job.read()
    assert [change["name"] for change in changes] == ['the row {"id": "3"}']
    assert any("another version of it" in reason for reason in head["refused"])
    shop.sql("INSERT INTO orders VALUES (9, 'later', NULL)")
    for number in (7, 9):
        job = shop.job(fault("missing", row(number)))
        with pytest.raises(ReconcileError, match="has changed since the report"):
            plan(job, QUIET)
        assert not job.rows.exists()
    by_hand = shop.spec(
        left={"kind": "table", "url": f"jdbc:sqlite:{shop.file}", "table": "orders"}
    )
    with pytest.raises(ReconcileError, match="no committed position"):
        plan(shop.job(fault("missing", row(3)), spec=by_hand), QUIET)


def test_last_versions_of_a_source_are_written_and_taken_back(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """In a compacted topic a repair replaces last versions, and an undo restores them."""
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path, by_time=True)
    shop.write(1, 3, 8)
    shop.write(2, note="before")
    before = shop.last()
    job = shop.job(
        fault("different", row(2), shop.there(2)),
        fault("missing", row(4)),
        fault("extra", shop.there(8)),
    )
    plan(job, QUIET)
    for _ in range(2):
        carry_out(job, QUIET, undo=False)
    after = {1: "note 1", 2: "note 2", 3: "note 3", 4: "note 4", 8: None}
    assert shop.last() == after
    for _ in range(2):
        carry_out(job, QUIET, undo=True)
    assert shop.last() == {**before, 4: None}


def test_lines_of_a_file_are_written_again(kafka_broker: SharedBroker, tmp_path: Path) -> None:
    """Lost lines that the source had read are written again, except those that are not UTF-8."""
    file, topic = tmp_path / "lines.txt", unique_name("lines")
    create_topics(kafka_broker.bootstrap_servers, [topic], partitions=PARTITIONS)
    file.write_bytes(b"one\ntwo\ntwo\n\xfe\nthree\n")
    shop = Shop(kafka_broker.bootstrap_servers, tmp_path)
    shop.topic = topic
    text = "org.apache.kafka.connect.storage.StringConverter"
    shop.config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "key.converter": text,
        "value.converter": text,
    }
    left = {"kind": "files", "paths": [str(file)], "format": "text", "limit_bytes": 14}
    right = {"kind": "topic", "topics": [topic], "value": "bytes"}
    producer = Producer({"bootstrap.servers": shop.broker})
    producer.produce(topic, "\ufffd", partition=0)
    assert producer.flush(60) == 0
    lost = [Place(file=str(file), row=number) for number in (2, 3)]
    job = shop.job(
        fault("missing", *lost, count=2),
        fault("missing", Place(file=str(file), row=4)),
        fault("extra", Place(topic=topic, partition=0, offset=0)),
        fault("missing", Place(file=str(file), row=5)),
        spec=shop.spec(left=left, right=right),
    )
    with file.open("a") as stream:
        stream.write("four\n")
    grown = file.read_bytes()
    file.write_bytes(grown.replace(b"e\ntwo", b"e\nTWO"))
    with pytest.raises(ReconcileError, match="are others than at the report"):
        plan(job, QUIET)
    file.write_bytes(grown)
    plan(job, QUIET)
    head, _ = job.read()
    assert head["counts"] == {"missing": 2}
    assert [reason for reason in head["refused"] if "topic has its record" in reason]
    assert [reason for reason in head["refused"] if "does not name the line" in reason]
    carry_out(job, QUIET, undo=False)
    values = [each.value() for each in shop.read() if each.key() is None]
    assert sorted(values) == [b"two", b"two", "\ufffd".encode()]
