"""Repairs of the table of a SqlSink by the report of its audit."""

from __future__ import annotations

from collections import Counter

from pyconnect_api import TopicPartition
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.spec import Spec, question_of
from pyconnect_reconcile.table_side import TableSide
from pyconnect_repair.job import Job
from pyconnect_repair.plan import RowChange
from pyconnect_repair.sinks import Basis, read_records, require_unmoved
from pyconnect_repair.work import sink_table


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then a change in each line."""
    basis = Basis.of(job)
    found = basis.found
    events.step(f"reading the records and rows of {count_of(len(found.targets), 'finding')}")
    config, made = basis.records()
    with sink_table(config, job.origin.topics[0]) as table:
        with table.transaction():
            table.require_offsets(basis.expected)
        planned = table.plan(found.targets, made)
    counts: Counter[str] = Counter()
    for change in planned.changes:
        counts[change.kind] += change.rows
    head = {
        **basis.head(),
        "table": table.name,
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
    expected: dict[TopicPartition, int] = {}
    if undo:
        if head["place"] != _place(job.audit):
            raise ReconcileError(
                f"the connector writes to another place than {head['table']} as it was repaired",
                hint="give the connector its configuration of that time, then run the undo again",
            )
        changes = [change.undone for change in reversed(changes)]
    else:
        expected = require_unmoved(job, head)
    events.step(f"changing {count_of(sum(change.rows for change in changes), 'row')}")
    with sink_table(read_records(job)[0], job.origin.topics[0]) as table:
        table.carry_out(changes, expected, events)


def _place(audit: Spec) -> str:
    """Return a hash of where the table is; rules of a compare do not count."""
    assert isinstance(audit.right, TableSide)
    table = TableSide(url=audit.right.url, table=audit.right.table, options=audit.right.options)
    return question_of(Spec(job=audit.job, clusters={}, right=table))
