"""offsets: the history of each source partition and its writers, from the internal topics.

Spark reads the topics and keeps the records of source offsets, task configurations and statuses.
These topics are compacted and small, so the driver evaluates them: `offset_history` and
`task_records`.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from pyspark.sql import Row
from pyspark.sql import functions as sql

from pyconnect_reconcile.bench import COMMITTED, Bench
from pyconnect_reconcile.compares.places import COPIES_KEPT
from pyconnect_reconcile.errors import NotAuditable
from pyconnect_reconcile.findings import (
    CheckOutcome,
    Finding,
    Place,
    Severity,
    count_of,
    most_severe,
)
from pyconnect_reconcile.offset_history import (
    Circumstances,
    LastCommits,
    OffsetCommit,
    findings_of,
    histories,
    read_commit,
)
from pyconnect_reconcile.spec import AuditedTopics
from pyconnect_reconcile.task_records import (
    CONFIG_KEYS,
    STATUS_KEYS,
    Statuses,
    StatusReport,
    TaskConfigSet,
    read_status,
)
from pyconnect_reconcile.topics.range_findings import empty_ranges, open_tails

MOST_RECORDS = 2_000_000
KINDS = (
    "regression",
    "two-writers",
    "double-run",
    "split-offset",
    "topics-disagree",
    "overlapping-tasks",
    "altered",
    "reset",
    "orphan",
)
NOT_COMPARED = (
    "records that compaction or retention has removed",
    "members of offsets that are not numbers",
)
KEY = "CAST(key AS STRING) AS key"
PLACE = ("topic", "partition", "offset", "timestamp_ms")


class _Read(NamedTuple):
    commits: list[OffsetCommit]
    statuses: list[StatusReport]
    configs: TaskConfigSet
    records: int
    strange: Sequence[Place]


def check(bench: Bench) -> CheckOutcome:
    """Read the histories and judge them."""
    topics = bench.spec.offsets
    assert topics is not None
    bench.events.step("reading the internal topics")
    read = _read(bench, topics)
    circumstances = Circumstances(Statuses(read.statuses), read.configs)
    last = LastCommits(read.commits)
    known = frozenset(topics.known) | read.configs.connectors
    by_source = histories(read.commits)
    found: list[Finding] = []
    for history in by_source:
        found += findings_of(history, circumstances)
    found += circumstances.statuses.double_runs()
    found += last.splits()
    found += last.disagreements(topics.worker, topics.connectors)
    found += last.overlaps(circumstances)
    found += last.orphans(known)
    kept = [
        finding
        for kind in KINDS
        for finding in most_severe(
            [each for each in found if each.kind == kind], bench.spec.findings
        )
    ]
    strange = []
    if read.strange:
        said = count_of(len(read.strange), "record is")
        strange = [
            Finding(
                kind="unparsable",
                severity=Severity.ERROR if bench.spec.fail_unparsable else Severity.UNKNOWN,
                message=f"{said} neither an offset of a source nor a status of a task or"
                " connector; left out",
                count=len(read.strange),
                copies=tuple(read.strange[:COPIES_KEPT]),
            )
        ]
    internal = bench.snapshot(
        (*_offsets_topics(topics), *filter(None, (topics.config, topics.status)))
    )
    return CheckOutcome(
        findings=(
            *empty_ranges(bench.snapshot(_offsets_topics(topics))),
            *open_tails(internal),
            *strange,
            *kept,
        ),
        totals={
            **{kind: sum(each.kind == kind for each in found) for kind in KINDS},
            "unparsable": len(read.strange),
        },
        counts={
            "records": read.records,
            "source_partitions": len(last.newest),
            "task_sets": read.configs.count,
            "statuses": len(read.statuses),
            "takeovers": len(circumstances.statuses.takeovers()),
            "unparsable": len(read.strange),
        },
        not_compared=NOT_COMPARED,
    )


def _offsets_topics(topics: AuditedTopics) -> tuple[str, ...]:
    return tuple(dict.fromkeys([topics.worker, *topics.connectors.values()]))


def _read(bench: Bench, topics: AuditedTopics) -> _Read:
    rows = _rows(bench, _offsets_topics(topics), "key", "value")
    commits: list[OffsetCommit] = []
    strange: list[Place] = []
    for row in rows:
        at = (row.topic, row.partition, row.offset, row.timestamp_ms)
        commit = read_commit(at, _bytes(row.key), _bytes(row.value))
        if commit is not None:
            commits.append(commit)
        else:
            key = None if row.key is None else bytes(row.key).decode("utf-8", "replace")
            strange.append(_place(row, key))
    statuses = []
    if topics.status is not None:
        # The stack traces in the statuses stay in Spark.
        fields = "'state STRING, worker_id STRING, generation INT'"
        columns = (
            f"from_json(CAST(value AS STRING), {fields}) AS fields",
            "value IS NULL AS removed",
        )
        for row in _rows(bench, (topics.status,), KEY, *columns, prefixes=STATUS_KEYS):
            content = row.fields.asDict() if row.fields is not None else {}
            place = _place(row, row.key)
            status = read_status(place, None if row.removed else content)
            statuses.append(status) if status is not None else strange.append(place)
    tasks: list[Row] = []
    if topics.config is not None:
        tasks = _rows(bench, (topics.config,), KEY, "value", prefixes=CONFIG_KEYS)
    configs = TaskConfigSet((_place(row, row.key), _bytes(row.value)) for row in tasks)
    return _Read(
        commits=commits, statuses=statuses, configs=configs, records=len(rows), strange=strange
    )


def _rows(
    bench: Bench, names: tuple[str, ...], *columns: str, prefixes: tuple[str, ...] = ()
) -> list[Row]:
    """Return the records of internal topics; with `prefixes`, only those of such keys."""
    records = bench.records(bench.snapshot(names).partitions, isolation=COMMITTED)
    if prefixes:
        key = sql.col("key").cast("string")
        records = records.where(reduce(or_, (key.startswith(prefix) for prefix in prefixes)))
    rows: list[Row] = records.selectExpr(*PLACE, *columns).limit(MOST_RECORDS + 1).collect()
    if len(rows) > MOST_RECORDS:
        raise NotAuditable(
            f"{', '.join(names)}: more than {MOST_RECORDS:,} records; is the topic compacted?"
        )
    return rows


def _place(row: Row, key: str | None) -> Place:
    return Place(**{name: row[name] for name in PLACE}, key=key)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
