"""`python -m pyconnect_repair SPEC --events --tethered`: plan, carry out or undo a repair.

The spec is JSON: `action` (plan, apply, undo), `rows` (the file of the plan, which is the backup,
too), `audit` (the spec of the audit as it is resolved now), `config` (the connector's), and for a
plan `report` (its directory). Exit codes: 0 done, 11 not done, with an event that says why.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyconnect_api import TopicPartition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events, end_with_parent
from pyconnect_reconcile.spec import MAIN, Spec, TopicSide, question_of, read_spec
from pyconnect_reconcile.table_side import TableSide
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import read_snapshot
from pyconnect_repair.plan import RowChange, findings_of
from pyconnect_repair.records import ReadRecords
from pyconnect_repair.work import sink_table

VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """The spec of this process; `topics` are those of the sink."""

    audit: Spec
    topics: tuple[str, ...]
    config: Mapping[str, str]
    rows: Path
    report: Path


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the spec asks; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m pyconnect_repair", description=__doc__)
    parser.add_argument("spec", type=Path, help="spec file, as JSON")
    parser.add_argument("--events", action="store_true", help="NDJSON events on stdout")
    parser.add_argument("--tethered", action="store_true", help="end of the run with its parent")
    options = parser.parse_args(arguments)
    events = Events(machine=options.events)
    if options.tethered:
        end_with_parent(ReconcileError.exit_code)
    try:
        document = json.loads(options.spec.read_text("utf-8"))
        audit = read_spec(document["audit"])
        assert isinstance(audit.left, TopicSide)
        job = _Job(
            audit=audit,
            topics=audit.left.topics,
            config=document["config"],
            rows=Path(document["rows"]),
            report=Path(document.get("report") or ""),
        )
        match document["action"]:
            case "plan":
                _plan(job, events)
            case "apply" | "undo" as action:
                _carry_out(job, events, undo=action == "undo")
    except ReconcileError as error:
        events.error(error.message, error.hint)
        return ReconcileError.exit_code
    except Exception as exc:  # noqa: BLE001 - the last place that can report it
        traceback.print_exc()
        # Texts of other exceptions may hold values of rows.
        events.error(f"the repair failed: {type(exc).__name__}", None)
        return ReconcileError.exit_code
    return 0


def _plan(job: _Job, events: Events) -> None:
    """Write the plan of a report: a head, then a change in each line."""
    report = json.loads((job.report / "report.json").read_text("utf-8"))
    lines = (job.report / "findings" / "findings.ndjson").read_text("utf-8").split("\n")
    found = findings_of(report, map(json.loads, filter(None, lines)))
    _require_same(report["question"], job.audit)
    before = read_snapshot(report)
    _require_topics(job, {topic.topic: topic.topic_id for topic in before.topics})
    # The offsets up to which the sink had written when it was audited.
    expected = {
        TopicPartition(part.topic, part.partition): (
            part.end if part.asked_end is None else part.asked_end
        )
        for part in before.partitions
        if part.topic in job.topics
    }
    _require_committed(job.audit, expected)
    events.step(f"reading {len(found.targets):,} records and rows")
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    try:
        made = dict(records.at([each.place for each in found.targets if each.place]))
    finally:
        records.close()
    with sink_table(records.config, job.topics[0]) as table:
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
    _write(job.rows, [head, *(change.to_json() for change in planned.changes)])


def _carry_out(job: _Job, events: Events, *, undo: bool) -> None:
    head, changes = _read(job.rows)
    expected: dict[TopicPartition, int] = {}
    if undo:
        if head["place"] != _place(job.audit):
            raise ReconcileError(
                f"the connector writes to another place than {head['table']} as it was repaired",
                hint="give the connector its configuration of that time, then run the undo again",
            )
        changes = [change.undone for change in reversed(changes)]
    else:
        _require_same(head["question"], job.audit)
        _require_topics(job, head["topics"])
        expected = {TopicPartition(topic, part): offset for topic, part, offset in head["offsets"]}
        _require_committed(job.audit, expected)
    records = ReadRecords(job.config, job.audit.clusters[MAIN])
    records.close()
    events.step(f"changing {len(changes):,} rows")
    with sink_table(records.config, job.topics[0]) as table:
        table.carry_out(changes, expected, events)


def _place(audit: Spec) -> str:
    """Return a hash of where the table is; rules of a compare do not count."""
    assert isinstance(audit.right, TableSide)
    table = TableSide(url=audit.right.url, table=audit.right.table, options=audit.right.options)
    return question_of(Spec(job=audit.job, clusters={}, right=table))


def _require_same(question: str, audit: Spec) -> None:
    if question != question_of(audit):
        raise ReconcileError(
            "the report answers another question than an audit would now: the connector's"
            " configuration has changed, or the audit had options",
            hint="give the audit's options again, or audit again and repair by the new report",
        )


def _require_topics(job: _Job, ids: Mapping[str, str]) -> None:
    now = ClusterView(job.audit.clusters[MAIN]).snapshot(job.topics)
    for topic in now.topics:
        if ids.get(topic.topic) != topic.topic_id:
            raise ReconcileError(
                f"{topic.topic} was deleted and created again since the report",
                hint="audit again",
            )


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


def _read(rows: Path) -> tuple[dict[str, Any], list[RowChange]]:
    try:
        head, *lines = map(json.loads, filter(None, rows.read_text("utf-8").split("\n")))
    except (OSError, ValueError) as exc:
        raise ReconcileError(f"{rows}: the plan of the repair cannot be read: {exc}") from exc
    return head, [RowChange(**line) for line in lines]


def _write(rows: Path, documents: Sequence[object]) -> None:
    """Write the plan; it is on the disk before any row is touched, for its owner only."""
    descriptor = os.open(rows, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        for document in documents:
            stream.write(json.dumps(document) + "\n")
        stream.flush()
        os.fsync(stream.fileno())


if __name__ == "__main__":
    sys.exit(main())
