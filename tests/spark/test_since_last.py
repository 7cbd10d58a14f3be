"""Nights of `--since-last`: each report continues the last one that agreed."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.findings import Verdict
from tests.support.audits.audits import Answer, Audit
from tests.support.audits.seeding import Record, Seed
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.topics import ANSWER_S, create_topics, produce, recreate_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(850)]


def values(numbers: Sequence[int]) -> list[bytes]:
    return [json.dumps({"id": number}).encode() for number in numbers]


class Nights:
    """Audits of one question, with a report for each night."""

    def __init__(self, audit: Audit, directory: Path, job: str, **members: object) -> None:
        self._audit = audit
        self._directory = directory
        self._job = job
        self._members = members
        self.reports: list[Path] = []

    def __call__(self, **members: object) -> Answer:
        """Audit the records of this night."""
        earlier = [str(report / "report.json") for report in self.reports]
        report = self._directory / f"night-{len(self.reports) + 1}"
        asked = {**self._members, **members, "since_last": True, "earlier": earlier}
        answer = self._audit.run(self._job, report=report, target="t", **asked)
        self.reports.append(report)
        return answer

    def chain(self) -> list[str]:
        """Return the names of the reports that the last one continues."""
        document = json.loads((self.reports[-1] / "report.json").read_text())
        return [Path(link["report"]).name for link in document["chain"]]


def test_a_lost_record_is_found_in_its_night(audit: Audit, tmp_path: Path) -> None:
    """A lost record is found in its night, which is read again until it agrees."""
    left, right = (unique_name(side) for side in ("left", "right"))
    create_topics(audit.bootstrap, [left, right])
    sides = {
        name: {"kind": "topic", "topics": [topic], "value": "json"}
        for name, topic in (("left", left), ("right", right))
    }
    night = Nights(audit, tmp_path, "topic-topic", **sides)
    for topic in (left, right):
        produce(audit.bootstrap, topic, *values(range(100)))
        # A chain begins with the records that retention has left.
        remove(audit.bootstrap, topic, 10)
    first = night()
    assert (first.verdict, first.outcome.counts["rows_left"]) == (Verdict.AGREE, 90)
    assert night.chain() == []
    produce(audit.bootstrap, left, *values(range(100, 150)))
    produce(audit.bootstrap, right, *values([*range(100, 120), *range(121, 150)]))
    second = night()
    assert second.verdict is Verdict.DIFFER
    assert second.places("missing") == {frozenset({(0, 120)})}
    assert second.outcome.counts["rows_left"] == 50
    produce(audit.bootstrap, right, *values([120]))
    for topic in (left, right):
        produce(audit.bootstrap, topic, *values([150]))
    third = night()
    assert (third.verdict, third.outcome.counts["rows_left"]) == (Verdict.AGREE, 51)
    assert night.chain() == ["night-1"]
    # The next night reads the records that an open transaction holds back.
    seed = Seed(audit.bootstrap, left, 1)
    producer, _ = seed.open([Record(value) for value in values([200])])
    quiet = night(stable_only=True)
    assert (quiet.verdict, quiet.outcome.counts["rows_left"]) == (Verdict.AGREE, 0)
    assert night.chain() == ["night-1", "night-3"]
    produce(audit.bootstrap, right, *values([200]))
    ahead = night(stable_only=True)
    assert ahead.verdict is Verdict.UNKNOWN
    assert ahead.kinds() == {"under-way"}
    producer.commit_transaction(ANSWER_S)
    eventually(lambda: not audit.run("ranges", topics=[left]).of("open-transaction"))
    whole = night()
    assert (whole.verdict, whole.outcome.counts["rows_left"]) == (Verdict.AGREE, 1)
    assert night.chain() == ["night-1", "night-3", "night-4"]
    with pytest.raises(ReconcileError, match="another question"):
        night(columns=["id:bigint"])
    # Retention removes records of a night before any report has them.
    for topic in (left, right):
        produce(audit.bootstrap, topic, *values(range(151, 160)))
    remove(audit.bootstrap, left, 157)
    remove(audit.bootstrap, right, 156)
    gap = night()
    assert gap.kinds() == {"expired"}
    assert gap.verdict is Verdict.UNKNOWN
    recreate_topic(audit.bootstrap, right)
    with pytest.raises(ReconcileError, match="deleted and created again"):
        night()


def test_rows_with_the_places_of_their_records_are_audited_by_night(
    audit: Audit, tmp_path: Path
) -> None:
    """Rows of a sink with pk.mode=kafka are assigned to nights by their offsets."""
    topic, file = unique_name("rows"), tmp_path / "rows.db"
    create_topics(audit.bootstrap, [topic])

    def write(numbers: Sequence[int]) -> None:
        rows = [(topic, 0, number, number) for number in numbers]
        with closing(sqlite3.connect(file)) as database, database:
            database.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)

    with closing(sqlite3.connect(file)) as database:
        database.execute(
            "CREATE TABLE rows (__connect_topic TEXT, __connect_partition INTEGER,"
            " __connect_offset INTEGER, id INTEGER)"
        )
    night = Nights(
        audit,
        tmp_path,
        "topic-sink",
        left={"kind": "topic", "topics": [topic], "value": "json", "row": {"of": "kafka"}},
        right={"kind": "table", "url": f"jdbc:sqlite:{file}", "table": "rows"},
    )
    produce(audit.bootstrap, topic, *values(range(10)))
    write(range(10))
    assert night(until={topic: {"0": 10}}).verdict is Verdict.AGREE
    produce(audit.bootstrap, topic, *values(range(10, 30)))
    write([number for number in range(10, 30) if number != 17])
    write([3])
    second = night(until={topic: {"0": 30}})
    assert second.places("missing") == {frozenset({(0, 17)})}
    assert second.outcome.totals == {"missing": 1, "extra": 0, "repeated": 0}
    assert second.outcome.counts["rows_right"] == 19


def remove(bootstrap: str, topic: str, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        future.result(ANSWER_S)
