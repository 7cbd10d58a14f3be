"""Carries a replay out: transactions of letters and positions, from any position to the end.

Each transaction is journaled before its commit. After a kill the committed offsets of the replay's
group decide where it continues, and which of the journaled transactions took place.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from pyconnect_cli.dlq.dead_letters import HISTORY, ReplayJournal
from pyconnect_cli.dlq.mend import Mend
from pyconnect_cli.dlq.plan import (
    Letters,
    Replay,
    ReplayBatch,
    ReplayEnded,
    ReplayPlanned,
    ReplayUndone,
    SentSpan,
    as_sent,
    cause_of,
    context_of,
    group_id,
    is_letter_of,
    sent_counts,
    sent_places,
)
from pyconnect_cli.errors import Conflict, Interrupted, NotFound, WaitTimedOut
from pyconnect_cli.kafka.admin import KafkaAdmin
from pyconnect_cli.kafka.model import TopicPartition, TopicRecord
from pyconnect_cli.kafka.reader import records_between
from pyconnect_cli.kafka.replaying import ReplaySender
from pyconnect_cli.render.step_line import StepLine
from pyconnect_cli.render.styles import counted
from pyconnect_cli.session import Session
from pyconnect_cli.settings.resolved import NO_ORIGIN

MOST_LETTERS = 1_000
MOST_BYTES = 8_000_000
"""A transaction ends with the letter that reaches one of these limits."""


@dataclass(slots=True)
class _Batch:
    """Letters of the next transaction: the group of each, and the record to write."""

    groups: list[str] = field(default_factory=list)
    records: list[TopicRecord] = field(default_factory=list)
    size: int = 0

    def add(self, group: str, record: TopicRecord) -> None:
        self.groups.append(group)
        self.records.append(record)
        self.size += len(record.key or b"") + len(record.value or b"")


@dataclass(slots=True, kw_only=True)
class ReplayRun:
    """One process's part of a replay, whose journal it has locked.

    `targets`: the number of partitions of each target topic. `rate`: letters a second.
    """

    session: Session
    settings: Mapping[str, str]
    journal: ReplayJournal
    replay: Replay
    targets: Mapping[str, int]
    mend: Mend
    rate: int | None = None

    @property
    def planned(self) -> ReplayPlanned:
        return self.replay.planned

    def run(self) -> Replay:
        """Send the letters that were not sent; return the replay with its end.

        Raises Conflict at the end if the queue no longer has letters of the plan.
        """
        planned = self.planned
        sender = _sender(self.settings, planned)
        with closing(sender), StepLine(self.session.output) as steps:
            sent = self._batches_so_far(sender)
            total = sum(sent_counts(sent).values())
            try:
                for batch in self._transactions(sender, sent):
                    sent = (*sent, batch)
                    total += sum(place.count for place in batch.sent)
                    steps.count("letters", total, planned.total)
                    timed = self.session.settings.origins["timeout"] != NO_ORIGIN
                    if timed and self.session.budget.spent:
                        raise WaitTimedOut(
                            f"the time of --timeout is over: {total} of {planned.total} letters"
                            " are sent",
                            hint=f"send the others: pyconnect dlq replay --resume {planned.replay}",
                        )
            except KeyboardInterrupt:
                raise Interrupted(
                    f"interrupted: {total} of {planned.total} letters are sent",
                    hint=f"send the others: pyconnect dlq replay --resume {planned.replay}",
                ) from None
        missing = planned.total - total
        self.journal.append(ReplayEnded(replay=planned.replay, missing=missing))
        require_complete(planned, missing)
        return replace(self.replay, batches=sent, missing=0, undone=False)

    def _batches_so_far(self, sender: ReplaySender) -> tuple[ReplayBatch, ...]:
        """Return the transactions that took place; a new group begins at the first letters."""
        positions = sender.take_over()
        if not self.replay.batches and positions == [None] * len(positions):
            with sender.transaction(self.planned.starts):
                pass
            return ()
        known = [each for each in positions if each is not None]
        sent = self.replay.sent_until(known) if len(known) == len(positions) else None
        if sent is None:
            raise Conflict(
                f"the committed offsets of the group {self.planned.group} are not those of the"
                f" journal {self.journal.path}: it is not known which letters were sent",
                hint="brokers forget offsets after offsets.retention.minutes; compare the topics,"
                f" then: pyconnect dlq undo {self.planned.replay}",
            )
        return sent

    def _transactions(
        self, sender: ReplaySender, sent: Sequence[ReplayBatch]
    ) -> Iterator[ReplayBatch]:
        """Send letters from the position behind the last transaction; yield each committed one."""
        planned = self.planned
        before = sent[-1].after if sent else planned.starts
        positions = dict(zip(planned.partitions, before, strict=True))
        ends = dict(zip(planned.partitions, planned.ends, strict=True))
        places = {
            TopicPartition(planned.topic, number): (position, ends[number])
            for number, position in positions.items()
        }
        letters = Letters(planned.spans)
        most = min(MOST_LETTERS, self.rate or MOST_LETTERS)
        batch, began_s, count = _Batch(), time.monotonic(), 0

        def committed(after: Mapping[int, int]) -> ReplayBatch:
            nonlocal before, batch, count
            reached = tuple(after.values())
            with sender.transaction(reached):
                written = sender.write(batch.records)
                single = ReplayBatch(
                    replay=planned.replay,
                    before=before,
                    after=reached,
                    sent=tuple(
                        SentSpan(group=group, **at._asdict(), first=offset, last=offset, count=1)
                        for group, (at, offset) in zip(batch.groups, written, strict=True)
                    ),
                )
                done = replace(single, sent=tuple(sent_places([single])))
                self.journal.append(done)
            count += len(batch.records)
            before, batch = reached, _Batch()
            if self.rate is not None:
                time.sleep(max(began_s + count / self.rate - time.monotonic(), 0.0))
            return done

        for record in records_between(self.settings, places):
            positions[record.partition] = record.offset + 1
            known = context_of(record)
            group = group_id(cause_of(known))
            if not letters.include(group, record.partition, record.offset):
                continue
            if not is_letter_of(known, planned.connector):
                continue
            value = self.mend(record)
            written = as_sent(record, known, planned.to_topic, self.targets, value)
            batch.add(group, written)
            if len(batch.records) >= most or batch.size >= MOST_BYTES:
                yield committed(positions)
        if before != planned.ends:
            yield committed(ends)


def require_complete(planned: ReplayPlanned, missing: int) -> None:
    """Raise Conflict if the queue did not have all letters of the plan."""
    if missing:
        raise Conflict(
            f"{planned.replay}: {missing} of {counted(planned.total, 'planned letter')} are no"
            f" longer in {planned.topic}: retention has removed them; the others are sent",
            hint=HISTORY,
        )


def take_back(
    settings: Mapping[str, str], journal: ReplayJournal, replay: Replay
) -> tuple[ReplayBatch, ...]:
    """Set the group of a replay back to the beginning of its plan; return what was sent.

    The journal alone decides what was sent if the brokers have forgotten the offsets.
    """
    with closing(_sender(settings, replay.planned)) as sender:
        positions = [each for each in sender.take_over() if each is not None]
        with sender.transaction(replay.planned.starts):
            pass
    journal.append(ReplayUndone(replay=replay.planned.replay))
    sent = replay.sent_until(positions)
    return replay.batches if sent is None else sent


def target_partitions(admin: KafkaAdmin, topics: Sequence[str]) -> dict[str, int]:
    """Return the number of partitions of each topic; NotFound for one that does not exist."""
    found = admin.partitions(topics)
    counts = {topic: sum(at.topic == topic for at in found) for topic in topics}
    if missing := [topic for topic in topics if not counts[topic]]:
        raise NotFound(
            f"topic {', '.join(missing)} does not exist or is not visible",
            hint="create it first, or name another one: --to-topic TOPIC",
        )
    return counts


def _sender(settings: Mapping[str, str], planned: ReplayPlanned) -> ReplaySender:
    places = [TopicPartition(planned.topic, number) for number in planned.partitions]
    return ReplaySender(settings, planned.group, places)
