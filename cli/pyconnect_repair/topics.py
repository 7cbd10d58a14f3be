"""Repairs of a topic by the report of a `topic-topic`: what it lacks is written in one transaction.

A topic only grows. So a record that it lacks is written at the end of its partition, and one that
it has beyond the other topic stays. Where keys have a last version (`upsert`), another version
replaces one, and a tombstone ends a key; that can be undone.

The records from the report's end on are the state of a repair: none is to do, those of the plan are
done, any other ends it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from confluent_kafka import Producer

from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.events import Events
from pyconnect_reconcile.findings import count_of
from pyconnect_reconcile.spec import Cluster, TopicSide
from pyconnect_reconcile.topics.snapshot import TopicSnapshot, read_snapshot
from pyconnect_repair.job import VERSION, Job
from pyconnect_repair.messages import client_settings, kafka_errors, messages_at, messages_from
from pyconnect_repair.plan import Findings, Place, require_complete, targets_of

STAYS = "a record of a topic cannot be taken back"
TRANSACTION_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRecord:
    """A record; bytes are in Base64. `timestamp_ms` is none of its identity."""

    partition: int
    key: str | None
    value: str | None
    headers: Sequence[tuple[str, str | None]] = ()
    timestamp_ms: int = 0

    @classmethod
    def of(cls, message: Any) -> RepairRecord:
        """Return the record of a message of the client."""
        headers = [(name, _text(value)) for name, value in message.headers() or ()]
        return cls(
            partition=message.partition(),
            key=_text(message.key()),
            value=_text(message.value()),
            headers=headers,
            timestamp_ms=message.timestamp()[1],
        )

    @property
    def ended(self) -> RepairRecord:
        """The tombstone of its key."""
        return replace(self, value=None, headers=(), timestamp_ms=0)

    @property
    def identity(self) -> str:
        """What is compared of it."""
        return json.dumps(asdict(replace(self, timestamp_ms=0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A record that is written `count` times, and what takes it back, if anything does."""

    kind: str
    name: str
    count: int
    after: RepairRecord
    before: RepairRecord | None = None

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> TopicChange:
        """Read what `asdict` has made of one."""
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
    """A finding: the place of the record that is written, and of the version that it replaces."""

    kind: str
    place: Place | None
    there: Place | None = None
    count: int = 1


def wanted(report: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Findings[_Wanted]:
    """Return what a report's findings ask for; ReconcileError for one that is no plan's basis."""
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
        kind = finding["kind"]
        places = [(c["topic"], c["partition"], c["offset"]) for c in finding.get("copies", ())]
        match kind, places:
            case "missing", [place, *_]:
                return _Wanted(kind=kind, place=place, count=finding["count"])
            case "different", [place, there]:
                return _Wanted(kind=kind, place=place, there=there)
            case "extra", [there, *_] if upsert:
                return _Wanted(kind=kind, place=None, there=there)
            case (("extra" | "repeated"), _):
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
        self, targets: Sequence[_Wanted], origin: Cluster, partitions: int, *, undoable: bool
    ) -> tuple[list[TopicChange], list[str]]:
        """Return the changes and what is refused; `origin` has the other topic's `partitions`."""
        if self._written():
            raise self._grown()
        lost = dict(messages_at(origin, [each.place for each in targets if each.place]))
        there = dict(messages_at(self._cluster, [each.there for each in targets if each.there]))
        changes, refused = [], []
        for each in targets:
            place = each.place or each.there
            assert place is not None
            name = "the record {}:{}@{}".format(*place)
            replaced = RepairRecord.of(there[each.there]) if each.there else None
            if each.place is None:
                assert replaced is not None
                written = replaced.ended
            else:
                written = RepairRecord.of(lost[each.place])
            if replaced is not None:
                written = replace(written, partition=replaced.partition)
            elif partitions != len(self._ends):
                refused.append(
                    f"{each.kind}: {name}: {self._topic} has {len(self._ends)} partitions, not"
                    f" {partitions}: which of them its writer chooses is not known"
                )
                continue
            change = TopicChange(kind=each.kind, name=name, count=each.count, after=written)
            if undoable:
                change = replace(change, before=replaced or written.ended)
            changes.append(change)
        return changes, refused

    def carry_out(self, changes: Sequence[TopicChange], identity: str, *, undo: bool) -> None:
        """Write the records of all changes, or what takes them back, unless that was done."""
        after = [each.after for each in changes for _ in range(each.count)]
        before = [each.before for each in changes if each.before is not None]
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
            self._write(before, identity)
        elif found != applied:
            if found:
                raise self._grown()
            self._write(after, identity)

    def _grown(self) -> ReconcileError:
        return ReconcileError(
            f"{self._topic} has records that are not of this report: it was written to meanwhile",
            hint="stop its writers, audit again, and repair by the new report",
        )

    def _written(self) -> list[RepairRecord]:
        """Return the committed records from the ends of the report on."""
        with kafka_errors(self._topic):
            return list(map(RepairRecord.of, messages_from(self._cluster, self._topic, self._ends)))

    def _write(self, records: Sequence[RepairRecord], identity: str) -> None:
        settings = {
            **client_settings(self._cluster),
            # Of a run that was killed, the open transaction ends here.
            "transactional.id": f"pyconnect-repair-{identity}",
            # The broker decides how large a record may be.
            "message.max.bytes": 1_000_000_000,
            "linger.ms": 5,
        }
        with kafka_errors(self._topic):
            producer = Producer(settings)
            producer.init_transactions(TRANSACTION_S)
            producer.begin_transaction()
            for each in records:
                producer.produce(
                    self._topic,
                    partition=each.partition,
                    key=_bytes(each.key),
                    value=_bytes(each.value),
                    headers=[(name, _bytes(value)) for name, value in each.headers],
                    timestamp=each.timestamp_ms,
                )
            producer.commit_transaction(TRANSACTION_S)


def _text(content: bytes | None) -> str | None:
    return None if content is None else b64encode(content).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def plan(job: Job, events: Events) -> None:
    """Write the plan of a report: a head, then a change in each line."""
    report, lines = job.found()
    found = wanted(report, lines)
    job.require_same(report["question"])
    origin, copy = _sides(job)
    snapshots = report["snapshots"]
    lost, there = (_topic(snapshots[side.cluster], side) for side in (origin, copy))
    for side, topic in ((origin, lost), (copy, there)):
        job.require_topic_ids(side, {topic.topic: topic.topic_id})
    ends = {part.partition: part.high_watermark for part in there.partitions}
    repaired = RepairedTopic(job.audit.clusters[copy.cluster], there.topic, ends)
    events.step(f"reading {count_of(len(found.targets), 'record')}")
    changes, refused = repaired.plan(
        found.targets,
        job.audit.clusters[origin.cluster],
        len(lost.partitions),
        undoable=job.audit.mode == "upsert",
    )
    counts: Counter[str] = Counter()
    for change in changes:
        counts[change.kind] += change.count
    head = {
        "version": VERSION,
        "target": job.audit.target,
        "topic": there.topic,
        "topic_id": there.topic_id,
        "question": report["question"],
        "ends": list(ends.items()),
        "undoable": job.audit.mode == "upsert",
        "counts": dict(counts),
        "examples": [change.name for change in changes[:10]],
        "refused": [*found.refused, *refused],
    }
    job.write([head, *map(asdict, changes)])


def carry_out(job: Job, events: Events, *, undo: bool) -> None:
    """Carry the plan out, or undo it."""
    head, lines = job.read()
    changes = list(map(TopicChange.read, lines))
    _, copy = _sides(job)
    if not undo:
        job.require_same(head["question"])
    job.require_topic_ids(copy, {head["topic"]: head["topic_id"]})
    count = sum(1 if undo else change.count for change in changes)
    events.step(f"writing {count_of(count, 'record')}")
    cluster = job.audit.clusters[copy.cluster]
    repaired = RepairedTopic(cluster, head["topic"], dict(head["ends"]))
    repaired.carry_out(changes, job.rows.stem, undo=undo)
    events.progress(len(changes), len(changes))


def _sides(job: Job) -> tuple[TopicSide, TopicSide]:
    left, right = job.audit.left, job.audit.right
    assert isinstance(left, TopicSide)
    assert isinstance(right, TopicSide)
    return left, right


def _topic(snapshot: object, side: TopicSide) -> TopicSnapshot:
    [topic] = read_snapshot(snapshot).of_topics(side.topics).topics
    return topic
