"""Repairs of a topic by the report of its compare with another topic, or with its source.

One transaction writes the missing records: the record of the other topic, or the one that the
source's connector makes of the row. A topic only grows. So a missing record is written at the
end of its partition, and a record that the other side lacks stays. Where keys have a last
version (`upsert`), another version replaces one, and a tombstone ends a key; that can be undone.

The records from the report's end on show the state of a repair. Without any it is to do; with those
of the plan it is done; any others end it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from confluent_kafka import Producer

from pyconnect_reconcile.data_sides import TableSide
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import COPIES, count_of
from pyconnect_reconcile.spec import Cluster, TopicSide, source_position
from pyconnect_reconcile.topics.snapshot import TopicSnapshot, read_snapshot
from pyconnect_repair.plan import Findings, Place, Refused, require_complete, targets_of
from pyconnect_repair.records import VERSION, Job, Row, source_records
from pyconnect_repair.sources import (
    RepairRecord,
    bytes_of,
    client_settings,
    kafka_errors,
    messages_at,
    messages_from,
)

STAYS = "a record of a topic cannot be taken back"
TRANSACTION_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A record that is written `count` times, and the record that undoes it, or None.

    `row` is the place of the row in the source.
    """

    kind: str
    name: str
    count: int
    after: RepairRecord
    before: RepairRecord | None = None
    row: Row | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> TopicChange:
        """Return the change that `asdict` has written."""
        before = document["before"]
        return cls(
            **{
                **document,
                "after": RepairRecord(**document["after"]),
                "before": None if before is None else RepairRecord(**before),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A finding: the places of the record that is written, and of the version that it replaces.

    `row` is the place of the row in the source.
    """

    kind: str
    place: Place | None = None
    there: Place | None = None
    row: Row | None = None
    count: int = 1

    @property
    def name(self) -> str:
        if self.row is None:
            return "the record {}:{}@{}".format(*(self.place or self.there or ()))
        of_file = f"line {self.row.get('row')} of {self.row.get('file')}"
        return f"the row {self.row['key']}" if "key" in self.row else of_file


_Make: TypeAlias = Callable[[_Wanted, RepairRecord | None], RepairRecord]
"""The function returns the record that is written, given the one that it replaces; or Refused."""


def wanted(report: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Findings[_Wanted]:
    """Return the targets of a report's findings; ReconcileError if no plan can follow from it."""
    findings = list(lines)
    require_complete(report, findings)
    if "disorder" in report["counts"]:
        raise ReconcileError(
            "a report of --ordered is not repaired: a record that is written again comes after"
            " later ones of its key",
            hint="audit without --ordered, and repair by that report",
        )
    upsert = report["asked"]["mode"] == "upsert"

    def target(finding: Mapping[str, Any]) -> _Wanted | str:
        kind, count = finding["kind"], finding["count"]
        copies = finding.get("copies", ())
        places = [(c["topic"], c["partition"], c["offset"]) for c in copies if "offset" in c]
        rows = [copy for copy in copies if "offset" not in copy]
        match kind, places, rows:
            case "missing", [place, *_], []:
                return _Wanted(kind=kind, place=place, count=count)
            case "missing", [], [row, *others]:
                if "file" not in row and (others or count != 1 or finding.get("of") == COPIES):
                    return "several rows look the same, and which of them is missing is not known"
                return _Wanted(kind=kind, row=row, count=count)
            case "different", [place, there], []:
                return _Wanted(kind=kind, place=place, there=there)
            case "different", [there], [row]:
                return _Wanted(kind=kind, row=row, there=there)
            case (("missing" | "different"), _, _):
                return "the report does not name the row: it has no key of numbers, texts or dates"
            case "extra", [there, *_], _ if upsert:
                return _Wanted(kind=kind, there=there)
            case (("extra" | "repeated"), _, _):
                return STAYS
        return f"{finding['message']}: this kind of finding has no repair"

    return targets_of(findings, target)


class RepairedTopic:
    """The topic that lacks records. `ends` are its ends in the report, by partition."""

    def __init__(self, cluster: Cluster, topic: str, ends: Mapping[int, int]) -> None:
        self._cluster = cluster
        self._topic = topic
        self._ends = ends

    def plan(
        self, targets: Sequence[_Wanted], make: _Make, *, undoable: bool
    ) -> tuple[list[TopicChange], list[str]]:
        """Return the changes, and the reasons for refused targets."""
        if self._written():
            raise self._grown()
        there = dict(messages_at(self._cluster, [each.there for each in targets if each.there]))
        changes, refused = [], []
        for each in targets:
            replaced = RepairRecord.of(there[each.there]) if each.there else None
            try:
                written = make(each, replaced)
            except Refused as exc:
                refused.append(f"{each.kind}: {each.name}: {exc}")
                continue
            if replaced is not None:
                written = replace(written, partition=replaced.partition)
            before = (replaced or written.ended) if undoable else None
            changes.append(
                TopicChange(
                    kind=each.kind,
                    name=each.name,
                    count=each.count,
                    after=written,
                    before=before,
                    row=each.row,
                )
            )
        return changes, refused

    def carry_out(
        self, changes: Sequence[TopicChange], check: Callable[[], None], *, undo: bool
    ) -> None:
        """Write the records of all changes, or those that undo them, unless that was done before.

        `check` runs before the first record of a repair is written.
        """
        after = [each.after for each in changes for _ in range(each.count)]
        before = [each.before for each in changes if each.before is not None]
        # The transactional id ends other repairs of the topic, of any user, before records are
        # read.
        settings = {
            **client_settings(self._cluster),
            "transactional.id": f"pyconnect-repair-{self._topic}",
            # The broker's own limit decides how large a record may be.
            "message.max.bytes": 1_000_000_000,
            "linger.ms": 5,
            # The partitioner of the agent's sources.
            "partitioner": "murmur2_random",
        }
        with kafka_errors(self._topic):
            producer = Producer(settings)
            producer.init_transactions(TRANSACTION_S)
        found = Counter(each.identity for each in self._written())
        applied = Counter(each.identity for each in after)
        if undo:
            if not found:
                return
            if len(before) < len(changes):
                raise ReconcileError(f"{self._topic} keeps the records of the repair: {STAYS}")
            if found == applied + Counter(each.identity for each in before):
                return
            if found != applied:
                raise self._grown()
            self._write(producer, before)
        elif found != applied:
            if found:
                raise self._grown()
            check()
            self._write(producer, after)

    def _grown(self) -> ReconcileError:
        return ReconcileError(
            f"{self._topic} has records that are not of this report: it was written to meanwhile",
            hint="stop its writers, audit again, and repair by the new report",
        )

    def _written(self) -> list[RepairRecord]:
        """Return the committed records from the ends of the report on."""
        with kafka_errors(self._topic):
            return list(map(RepairRecord.of, messages_from(self._cluster, self._topic, self._ends)))

    def _write(self, producer: Producer, records: Sequence[RepairRecord]) -> None:
        with kafka_errors(self._topic):
            producer.begin_transaction()
            for each in records:
                producer.produce(
                    self._topic,
                    partition=each.partition,
                    key=bytes_of(each.key),
                    value=bytes_of(each.value),
                    headers=[(name, bytes_of(value)) for name, value in each.headers],
                    timestamp=each.timestamp_ms,
                )
            producer.commit_transaction(TRANSACTION_S)


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then one change per line."""
    report, lines = job.found()
    found = wanted(report, lines)
    job.require_same(report["question"])
    copy = _copy(job)
    there = _topic(job, report, copy)
    ends = {part.partition: part.high_watermark for part in there.partitions}
    repaired = RepairedTopic(job.audit.clusters[copy.cluster], there.topic, ends)
    events.step(f"reading {count_of(len(found.targets), 'record')}")
    is_copy = isinstance(job.audit.left, TopicSide)
    # Without compaction a tombstone is only one more record.
    undoable = job.audit.mode == "upsert" and (is_copy or there.compacted)
    if is_copy:
        make = _records_of_topic(job, report, found.targets, ends)
        changes, refused = repaired.plan(found.targets, make, undoable=undoable)
    else:
        _require_position(job, report["asked"].get("position"))
        with _records_of_source(job, report, lines, there) as make:
            changes, refused = repaired.plan(found.targets, make, undoable=undoable)
    counts: Counter[str] = Counter()
    for change in changes:
        counts[change.kind] += change.count
    head = {
        "version": VERSION,
        "target": job.audit.target,
        "topic": there.topic,
        "topic_id": there.topic_id,
        "question": report["question"],
        "position": source_position(job.audit),
        "ends": list(ends.items()),
        "undoable": undoable,
        "counts": dict(counts),
        "examples": [change.name for change in changes[:10]],
        "refused": [*found.refused, *refused],
    }
    job.write([head, *map(asdict, changes)])


def carry_out(job: Job, events: Events, *, undo: bool) -> None:
    """Carry the plan out, or undo it."""
    head, lines = job.read()
    changes = list(map(TopicChange.read, lines))
    copy = _copy(job)
    if not undo:
        job.require_same(head["question"])
        _require_position(job, head.get("position"))
    job.require_topic_ids(copy, {head["topic"]: head["topic_id"]})
    count = sum(1 if undo else change.count for change in changes)
    events.step(f"writing {count_of(count, 'record')}")
    cluster = job.audit.clusters[copy.cluster]
    repaired = RepairedTopic(cluster, head["topic"], dict(head["ends"]))
    repaired.carry_out(changes, lambda: _require_rows(job, changes), undo=undo)
    events.progress(len(changes), len(changes))


def _records_of_topic(
    job: Job, report: Mapping[str, Any], targets: Sequence[_Wanted], ends: Mapping[int, int]
) -> _Make:
    origin = job.origin
    partitions = len(_topic(job, report, origin).partitions)
    places = [each.place for each in targets if each.place]
    lost = dict(messages_at(job.audit.clusters[origin.cluster], places))

    def make(target: _Wanted, replaced: RepairRecord | None) -> RepairRecord:
        if target.place is None:
            assert replaced is not None
            return replaced.ended
        if replaced is None and partitions != len(ends):
            raise Refused(
                f"the topic has {len(ends)} partitions, not {partitions}: which of them its writer"
                " chooses is not known"
            )
        return RepairRecord.of(lost[target.place])

    return make


@contextmanager
def _records_of_source(
    job: Job, report: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], there: TopicSnapshot
) -> Iterator[_Make]:
    """Yield a function that returns the record which the connector makes of a row.

    A row that changed after it was read has another record in a source that only appends: the lost
    version is not known, and the source does not write changes. A record that the audit calls extra
    may still belong to a row: for a line that is not UTF-8, the source writes another text.
    """
    copy, by_key = _copy(job), job.audit.mode == "upsert"
    extra = [
        (place["topic"], place["partition"], place["offset"])
        for line in lines
        if line["kind"] == "extra" and not by_key
        for place in line.get("copies", ())
    ]
    messages = messages_at(job.audit.clusters[copy.cluster], extra)
    found = [RepairRecord.of(message) for _, message in messages]
    held = {each.identity for each in found}
    others = {each.key for each in found if isinstance(job.audit.left, TableSide)}
    with source_records(job, report.get("digests", {}).get("left", "")) as record_of:

        def make(target: _Wanted, replaced: RepairRecord | None) -> RepairRecord:
            if target.row is None:
                assert replaced is not None
                if not there.compacted:
                    raise Refused("the topic is not compacted: a tombstone takes no record away")
                return replaced.ended
            record = record_of(target.row)
            if record.identity in held:
                raise Refused("the topic has its record, which the audit took for another")
            if others and (record.key is None or record.key in others):
                raise Refused(
                    "the topic may have another version of it: the source writes no changes of"
                    " rows, and the version that is lost is not known"
                )
            return record

        yield make


def _require_rows(job: Job, changes: Sequence[TopicChange]) -> None:
    """Raise ReconcileError if a row of the source now has another record than in the plan."""
    rows = [change for change in changes if change.row is not None]
    if not rows:
        return
    with source_records(job) as record_of:
        for change in rows:
            assert change.row is not None
            if record_of(change.row).identity != change.after.identity:
                raise ReconcileError(
                    f"{change.name} has changed since the plan: nothing was written",
                    hint="audit again, and repair by the new report",
                )


def _require_position(job: Job, position: Sequence[object] | None) -> None:
    """Raise ReconcileError if the source's committed position is not that of the report."""
    if list(position or ()) != list(source_position(job.audit)):
        raise ReconcileError(
            "the source has moved on since the report, or the report is of an earlier version",
            hint="stop the connector, audit again, and repair by the new report",
        )


def _copy(job: Job) -> TopicSide:
    assert isinstance(job.audit.right, TopicSide)
    return job.audit.right


def _topic(job: Job, report: Mapping[str, Any], side: TopicSide) -> TopicSnapshot:
    """Return the topic of a side at the report; ReconcileError if it was created again since."""
    snapshot = read_snapshot(report["snapshots"][side.cluster]).of_topics(side.topics)
    [topic] = snapshot.topics
    job.require_topic_ids(side, {topic.topic: topic.topic_id})
    return topic
