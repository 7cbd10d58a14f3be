"""Repairs of the table of a SqlSink by the report of its audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from pyconnect_api import TopicPartition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.spec import MAIN, Spec, TopicSide, question_of
from pyconnect_reconcile.table_side import TableSide
from pyconnect_reconcile.topics.snapshot import read_snapshot
from pyconnect_repair.job import VERSION, Job
from pyconnect_repair.plan import RowChange, findings_of
from pyconnect_repair.records import ReadRecords
from pyconnect_repair.work import sink_table


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then a change in each line."""
    report, lines = job.found()
    found = findings_of(report, lines)
    job.require_same(report["question"])
    origin = _origin(job)
    before = read_snapshot(report)
    job.require_topic_ids(origin, {topic.topic: topic.topic_id for topic in before.topics})
    # The offsets up to which the sink had written when it was audited.
    expected = {
        TopicPartition(part.topic, part.partition): (
            part.end if part.asked_end is None else part.asked_end
        )
        for part in before.partitions
        if part.topic in origin.topics
    }
    _require_committed(job.audit, expected)
    events.step(f"reading the records and rows of {count_of(len(found.targets), 'finding')}")
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    try:
        made = dict(records.at([each.place for each in found.targets if each.place]))
    finally:
        records.close()
    with sink_table(records.config, origin.topics[0]) as table:
        with table.transaction():
            table.require_offsets(expected)
        planned = table.plan(found.targets, made)
    counts: Counter[str] = Counter()
    for change in planned.changes:
        counts[change.kind] += change.rows
    head = {
        "version": VERSION,
        "target": job.audit.target,
        "table": table.name,
        "question": report["question"],
        "topics": {topic.topic: topic.topic_id for topic in before.topics},
        "offsets": [[p.topic, p.partition, offset] for p, offset in expected.items()],
        "place": _place(job.audit),
        "counts": dict(counts),
        "examples": [change.name for change in planned.changes[:10]],
        "refused": [*found.refused, *planned.refused],
    }
    job.write([head, *(change.to_json() for change in planned.changes)])


def carry_out(job: Job, events: Events, *, undo: bool) -> None:
    """Carry the plan out, or undo it."""
    head, lines = job.read()
    changes = [RowChange(**line) for line in lines]
    origin = _origin(job)
    expected: dict[TopicPartition, int] = {}
    if undo:
        if head["place"] != _place(job.audit):
            raise ReconcileError(
                f"the connector writes to another place than {head['table']} as it was repaired",
                hint="give the connector its configuration of that time, then run the undo again",
            )
        changes = [change.undone for change in reversed(changes)]
    else:
        job.require_same(head["question"])
        job.require_topic_ids(origin, head["topics"])
        expected = {TopicPartition(topic, part): offset for topic, part, offset in head["offsets"]}
        _require_committed(job.audit, expected)
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    records.close()
    events.step(f"changing {count_of(sum(change.rows for change in changes), 'row')}")
    with sink_table(records.config, origin.topics[0]) as table:
        table.carry_out(changes, expected, events)


def _origin(job: Job) -> TopicSide:
    assert isinstance(job.audit.left, TopicSide)
    return job.audit.left


def _place(audit: Spec) -> str:
    """Return a hash of where the table is; rules of a compare do not count."""
    assert isinstance(audit.right, TableSide)
    table = TableSide(url=audit.right.url, table=audit.right.table, options=audit.right.options)
    return question_of(Spec(job=audit.job, clusters={}, right=table))


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
