"""What repairs of a sink's rows have in common: the report, the sink's offsets, its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pyconnect_api import SinkRecord, TopicPartition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import MAIN, Spec
from pyconnect_reconcile.topics.snapshot import TopicsSnapshot, read_snapshot
from pyconnect_repair.job import VERSION, Job
from pyconnect_repair.plan import Findings, Place, Wanted, findings_of
from pyconnect_repair.records import ReadRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """A report that is the basis of a plan; `expected` are the offsets that the sink had then."""

    job: Job
    report: Mapping[str, Any]
    found: Findings[Wanted]
    before: TopicsSnapshot
    expected: Mapping[TopicPartition, int]

    @classmethod
    def of(cls, job: Job) -> Self:
        """Read the report of a job; ReconcileError if it is no basis, or the sink has moved on."""
        report, lines = job.found()
        found = findings_of(report, lines)
        job.require_same(report["question"])
        before = read_snapshot(report).of_topics(job.origin.topics)
        job.require_topic_ids(job.origin, {each.topic: each.topic_id for each in before.topics})
        expected = {
            TopicPartition(part.topic, part.partition): (
                part.end if part.asked_end is None else part.asked_end
            )
            for part in before.partitions
        }
        _require_committed(job.audit, expected)
        return cls(job=job, report=report, found=found, before=before, expected=expected)

    def records(self) -> tuple[Mapping[str, str], Mapping[Place, SinkRecord | None]]:
        """Return the connector's config, and the records that the findings name."""
        return read_records(self.job, [each.place for each in self.found.targets if each.place])

    def head(self) -> dict[str, object]:
        """Return the members of a plan's head that `require_unmoved` reads."""
        return {
            "version": VERSION,
            "target": self.job.audit.target,
            "question": self.report["question"],
            "topics": {topic.topic: topic.topic_id for topic in self.before.topics},
            "offsets": [[p.topic, p.partition, offset] for p, offset in self.expected.items()],
        }


def require_unmoved(job: Job, head: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Return the sink's offsets in a plan; ReconcileError if a sink or a topic is another now."""
    job.require_same(head["question"])
    job.require_topic_ids(job.origin, head["topics"])
    expected = {TopicPartition(topic, part): offset for topic, part, offset in head["offsets"]}
    _require_committed(job.audit, expected)
    return expected


def read_records(
    job: Job, places: Sequence[Place] = ()
) -> tuple[Mapping[str, str], Mapping[Place, SinkRecord | None]]:
    """Return the connector's config with what its references lead to, and records at places."""
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    try:
        return records.config, dict(records.at(places))
    finally:
        records.close()


def _require_committed(audit: Spec, expected: Mapping[TopicPartition, int]) -> None:
    """Compare the committed offsets of the sink's group with those of the report."""
    for partition, offset in expected.items():
        now = audit.until.get(partition.topic, {}).get(partition.partition, offset)
        if now > offset:
            raise ReconcileError(
                f"the sink has moved on since the report: its offset of {partition} is {now}, not"
                f" {offset}",
                hint="stop the connector, audit again, and repair by the new report",
            )
