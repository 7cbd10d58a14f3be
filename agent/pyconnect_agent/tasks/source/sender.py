"""The port of a delivery guarantee for the source loop, and its view of a record.

`loop.py` is the same for every delivery guarantee; a sender says what happens around each record
and batch, and when offsets are committed: `at_least_once/sender.py`, `exactly_once/sender.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pyconnect_agent.kafka.task_producer import DeliveredMessage
from pyconnect_agent.tasks.source.columns import Outgoing, OutgoingRun
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import RecordMetadata, SourceRecord, SourceTask

LOG = logging.getLogger(__name__)

QUEUE_FULL_WAIT_S = 0.1
"""Of serving deliveries, before a record is offered to a full producer again."""


@runtime_checkable
class NumbersItsRecords(Protocol):
    """A task that knows its records by their numbers, so that none has to be made of its parts."""

    def numbers(self, records: Sequence[SourceRecord]) -> Sequence[int]: ...

    def commit_number(self, number: int, metadata: RecordMetadata | None) -> None:
        """Take the result of a record; `metadata` is None when it was not written."""
        ...


@dataclass(frozen=True, slots=True)
class Hearing:
    """Tells a task of the results of its records (`SourceTask.commit_record`).

    `known_as` returns for each record what `tell` takes for it. `tell` gets None for a record that
    was not written; it does not raise.
    """

    known_as: Callable[[Sequence[SourceRecord]], Sequence[Any]]
    tell: Callable[[Any, RecordMetadata | None], None]


class Sender(Protocol):
    """The part of a delivery guarantee that the source loop uses.

    `takes_runs` False: something is done after each record, so the loop must not use `send_run`.
    `hears_of_records`: the task hears of all records in their order, so the loop must not use it
    for records of which some are left out. With False it need not call `dropped` for those.
    `tracing`: set before the first record; None makes no spans.
    """

    takes_runs: bool
    hears_of_records: bool
    tracing: Tracing | None

    def begin_iteration(self) -> None:
        """Before each poll or repeated send."""
        ...

    def check(self) -> None:
        """Raise ConnectException when an earlier send failed for good."""
        ...

    def resumed(self) -> None:
        """Polling begins, for the first time or after a pause."""
        ...

    def paused(self, *, complete: bool) -> None:
        """Stop polling until `resumed`. Raises ConnectException.

        `complete` is False when a part of the last batch waits to be sent.
        """
        ...

    def send(self, record: SourceRecord, outgoing: Outgoing) -> None:
        """Hand over one record.

        Raises RetriableException when it is to be tried again later, ConnectException when the
        task must fail.
        """
        ...

    def send_run(self, run: OutgoingRun) -> None:
        """Hand over records in their order, as if each were sent by itself.

        When it raises, as `send` does, `run.taken` says how many were sent before.
        """
        ...

    def dropped(self, record: SourceRecord) -> None:
        """The record was filtered or skipped."""
        ...

    def batch_sent(self) -> None:
        """Every record of a batch (maybe none) was sent or dropped."""
        ...

    def finish(self, *, failed: bool, complete: bool) -> None:
        """The loop has ended; commit all that may be committed. `complete` as for `paused`."""
        ...

    def in_flight(self) -> int:
        """Records sent whose fate is not known yet; asked by other threads too."""
        ...


def hearing_of(task: SourceTask) -> Hearing | None:
    """Return how the task hears of its records; None when it does not, as most: that costs less."""
    if isinstance(task, NumbersItsRecords):
        return Hearing(task.numbers, task.commit_number)
    if type(task).commit_record is SourceTask.commit_record:
        return None
    commit_record = task.commit_record

    def tell(record: SourceRecord, metadata: RecordMetadata | None) -> None:
        try:
            commit_record(record, metadata)
        except Exception:  # Kafka's contract: logged, and the task goes on
            LOG.exception("SourceTask.commit_record failed")

    return Hearing(lambda records: records, tell)


def size_of(outgoing: Outgoing) -> int:
    """Return the bytes of value, key and headers."""
    _, value, key, _, _, headers = outgoing
    size = len(value or b"") + len(key or b"")
    return size + sum(len(name) + len(data or b"") for name, data in headers or ())


def metadata_of(message: DeliveredMessage) -> RecordMetadata:
    """Return the metadata that `commit_record` gets for a delivered record."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    return RecordMetadata(
        topic or "",
        -1 if partition is None else partition,
        -1 if offset is None else offset,
        message.timestamp()[1],
    )
