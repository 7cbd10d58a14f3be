"""The loop of a source task, and its port to the delivery guarantees.

Kafka: AbstractWorkerSourceTask. The loop runs on the process's main thread. A sender decides what
happens around each record and batch, and when offsets are committed: `at_least_once.py`,
`exactly_once.py`.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from pyconnect_agent.channel.reports import StatsReported
from pyconnect_agent.core.errors import KafkaError
from pyconnect_agent.core.ids import State
from pyconnect_agent.kafka.task_producer import DeliveredMessage, TaskProducer
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.plugins import plain_records
from pyconnect_agent.tasks.records import RecordSkipped
from pyconnect_agent.tasks.source.pipeline import Outgoing, OutgoingRun, Pipeline
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_agent.tasks.tracing import Tracing
from pyconnect_api import (
    RecordMetadata,
    RetriableException,
    SourceRecord,
    SourceTask,
    TransactionContext,
)

LOG = logging.getLogger(__name__)

QUEUE_FULL_WAIT_S = 0.1
"""How long deliveries are served before a record is offered to a full producer again."""


@runtime_checkable
class NumbersItsRecords(Protocol):
    """A task that identifies its records by numbers, so that no record object has to be made."""

    def numbers(self, records: Sequence[SourceRecord]) -> Sequence[int]: ...

    def commit_number(self, number: int, metadata: RecordMetadata | None) -> None:
        """Take the result of a record; `metadata` is None when it was not written."""
        ...


@dataclass(frozen=True, slots=True)
class Hearing:
    """The way to the task's `SourceTask.commit_record`.

    `known_as` returns for each record the name that `tell` takes for it. `tell` does not raise; its
    metadata is None for a record that was not written.
    """

    known_as: Callable[[Sequence[SourceRecord]], Sequence[Any]]
    tell: Callable[[Any, RecordMetadata | None], None]


class Sender(Protocol):
    """The part of a delivery guarantee that the source loop uses.

    `takes_runs` is False when something is done after each record: the loop must not use
    `send_run`. With `hears_of_records` the task gets the results of all records in their order: the
    loop must not use `send_run` when some records are left out, and must call `dropped` for those.
    `tracing` is set before the first record; None makes no spans.
    """

    takes_runs: bool
    hears_of_records: bool
    tracing: Tracing | None

    def begin_iteration(self) -> None:
        """Prepare a poll or a repeated send."""
        ...

    def check(self) -> None:
        """Raise ConnectException when an earlier send failed for good."""
        ...

    def resumed(self) -> None:
        """Note that polling begins, for the first time or after a pause."""
        ...

    def paused(self, *, complete: bool) -> None:
        """Note that polling stops until `resumed`. Raises ConnectException.

        `complete` is False when a part of the last batch waits to be sent.
        """
        ...

    def send(self, record: SourceRecord, outgoing: Outgoing) -> None:
        """Hand over one record.

        Raises RetriableException when the loop is to try again later, ConnectException when the
        task must fail.
        """
        ...

    def send_run(self, run: OutgoingRun) -> None:
        """Hand over records in their order, as if each were sent by itself.

        When it raises, as `send` does, `run.taken` is the number of records sent before.
        """
        ...

    def dropped(self, record: SourceRecord) -> None:
        """Note that the record was filtered or skipped."""
        ...

    def batch_sent(self) -> None:
        """Note that every record of a batch (maybe none) was sent or dropped."""
        ...

    def finish(self, *, failed: bool, complete: bool) -> None:
        """Commit all that may be committed, after the end of the loop.

        `complete` as for `paused`.
        """
        ...

    def in_flight(self) -> int:
        """Return the number of records sent without a result so far; other threads ask too."""
        ...


def hearing_of(task: SourceTask) -> Hearing | None:
    """Return the way to the task's `commit_record`; None, which costs less, for most tasks."""
    if isinstance(task, NumbersItsRecords):
        return Hearing(task.numbers, task.commit_number)
    if type(task).commit_record is SourceTask.commit_record:
        return None
    commit_record = task.commit_record

    def tell(record: SourceRecord, metadata: RecordMetadata | None) -> None:
        try:
            commit_record(record, metadata)
        except Exception:  # Kafka's contract: the error is logged, and the task goes on
            LOG.exception("SourceTask.commit_record failed")

    return Hearing(lambda records: records, tell)


def explained(producer: TaskProducer, failure: BaseException, outgoing: Outgoing) -> KafkaError:
    """Return the reason why the producer did not take a record."""
    topic, value, key, _, _, headers = outgoing
    size = len(value or b"") + len(key or b"")
    size += sum(len(name) + len(data or b"") for name, data in headers or ())
    error = producer.explain(failure, topic, size)
    error.__cause__ = failure
    return error


def metadata_of(message: DeliveredMessage) -> RecordMetadata:
    """Return the metadata that `commit_record` gets for a delivered record."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    return RecordMetadata(
        topic or "",
        -1 if partition is None else partition,
        -1 if offset is None else offset,
        message.timestamp()[1],
    )


RETRY_WAIT_S = 0.1


@runtime_checkable
class PollsInParts(Protocol):
    """A task whose `poll` may return the first part of a batch."""

    def next_part(self) -> Sequence[SourceRecord]:
        """Return the next part, empty after the last. Raises as `poll` does."""
        ...


@runtime_checkable
class RunsInProcess(Protocol):
    """A task in a process of its own, which may end while the task is paused."""

    is_waiting: bool
    """Whether `poll` has returned nothing because the process is still in an earlier poll."""

    def check_process(self) -> None:
        """Raise the reason once the process has ended."""
        ...


class SourceLoop:
    """Polls, converts and sends until the worker asks for a stop.

    `polling_since_s` is the monotonic time at which the task was last asked for records, None
    while it is not in `poll`; other threads read it.
    """

    def __init__(
        self,
        *,
        task: SourceTask,
        pipeline: Pipeline,
        sender: Sender,
        control: Control,
        report: Callable[[State], None],
        retries: ShownRetries,
        metrics: SourceMetrics,
    ) -> None:
        self._task = task
        self._next_part = task.next_part if isinstance(task, PollsInParts) else lambda: ()
        self._process = task if isinstance(task, RunsInProcess) else None
        self._chain = pipeline.chain
        self._convert = pipeline.convert
        self._convert_run = pipeline.convert_run if sender.takes_runs else None
        self._sender = sender
        self._control = control
        self._report = report
        self._retries = retries
        self._metrics = metrics
        self._unsent: Sequence[SourceRecord] = ()
        self._batch_size = 0
        self.polling_since_s: float | None = None
        self.last_poll_ms: int | None = None

    def run(self) -> None:
        """Return when the worker asks for a stop. Any exception makes the task FAILED."""
        self._sender.resumed()
        while not self._control.stopping:
            self.step()

    def step(self) -> None:
        """Do one iteration: one poll at most."""
        self._sender.begin_iteration()
        self.count_under_way()
        if self._control.should_pause:
            self._pause()
            return
        if not self._unsent:
            self._sender.check()
            self._take(self._poll())
        if not self._send():
            self._control.stop_requested.wait(RETRY_WAIT_S)

    @property
    def is_batch_complete(self) -> bool:
        """Whether everything that was polled was sent or dropped."""
        return not self._unsent

    def count_under_way(self) -> None:
        """Bring the metrics up to date; also called by other threads."""
        self._metrics.under_way(len(self._unsent) + self._sender.in_flight())

    def _pause(self) -> None:
        self._sender.paused(complete=self.is_batch_complete)
        self._report(State.PAUSED)
        while self._control.should_pause and not self._control.stopping:
            self._control.changed.clear()
            if self._control.should_pause and not self._control.stopping:
                self._control.wait(1.0)
            if self._process is not None:
                self._process.check_process()
            self._sender.begin_iteration()
        if not self._control.stopping:
            self._sender.resumed()
            self._retries.forget()
            self._report(State.RUNNING)

    def _poll(self) -> Sequence[SourceRecord]:
        if self._process is None or not self._process.is_waiting:
            self.last_poll_ms = int(time.time() * 1000)
        began_s = self.polling_since_s = time.monotonic()
        if self._sender.tracing is not None:
            self._sender.tracing.began_ns = time.time_ns()
        try:
            polled = self._task.poll() or ()
        except RetriableException as exc:
            LOG.warning("poll failed and is repeated", exc_info=True)
            self._retries.failed(exc)
            return ()
        finally:
            self.polling_since_s = None
        self._retries.succeeded()
        records = plain_records(polled, type(self._task).__qualname__)
        if records:
            self._metrics.poll_took((time.monotonic() - began_s) * 1000)
        return records

    def _take(self, polled: Sequence[SourceRecord]) -> None:
        self._unsent = polled
        if polled:
            self._batch_size += len(polled)
            self._metrics.polled(len(polled))

    def _send(self) -> bool:
        """Send the unsent records; return False when a part is left for later."""
        try:
            while self._unsent:
                self._send_some()
                if not self._unsent:
                    self._take(self._next_part())
        except RetriableException as exc:
            # A repeated send transforms and converts the rest again, as in Kafka.
            LOG.debug("send is repeated", extra={"reason": str(exc)})
            return False
        if self._batch_size:
            self._metrics.task.batch(self._batch_size)
            self._batch_size = 0
        self._sender.batch_sent()
        return True

    def _send_some(self) -> None:
        """Send records up to the first that fails in a transformation, and then that one."""
        if self._chain is None:
            self._send_transformed(self._unsent)
            return
        transformed, failed = self._chain.run(self._unsent)
        if transformed:
            self._send_transformed(transformed)
        if failed is not None:
            try:
                record = failed()
            except RecordSkipped:
                record = None
            self._send_transformed([record])

    def _send_transformed(self, records: Sequence[SourceRecord | None]) -> None:
        """Send the first unsent records, given as transformed; None stands for a dropped record."""
        polled, done, left_out = self._unsent, 0, 0
        run, places = self._converted(records)
        try:
            if run is None:
                for done, record in enumerate(records):
                    left_out += not self._send_one(polled[done], record)
            else:
                self._sender.send_run(run)
            done = len(records)
        finally:
            if run is not None:
                if run.taken < len(run):
                    done = places[run.taken]
                left_out = done - run.taken
            self._unsent = polled[done:]
            if left_out:
                self._metrics.left_out(left_out)

    def _converted(
        self, records: Sequence[SourceRecord | None]
    ) -> tuple[OutgoingRun | None, Sequence[int]]:
        """Convert the records at once; return None when they must be converted one by one.

        The second value has their places among `records`.
        """
        if self._convert_run is None:
            return None, ()
        polled: Sequence[SourceRecord] = self._unsent[: len(records)]
        kept: Sequence[SourceRecord]
        places: Sequence[int] = range(len(records))
        if self._chain is None:
            kept = polled = self._unsent
        else:
            kept = [record for record in records if record is not None]
            if len(kept) < len(records):
                places = [place for place, record in enumerate(records) if record is not None]
                polled = [polled[place] for place in places]
        if not kept:
            return None, ()
        try:
            run = self._convert_run(polled, kept)
        except Exception:  # noqa: BLE001  it comes up again with the record it is about
            return None, ()
        if run.places is not None:
            places = run.places
        if len(places) < len(records) and self._sender.hears_of_records:
            # The task gets results in the order of records, and a run has only those that are sent.
            return None, ()
        return run, places

    def _send_one(self, original: SourceRecord, record: SourceRecord | None) -> bool:
        """Convert and send a record; return False when it was left out."""
        if record is not None:
            with suppress(RecordSkipped):
                outgoing = self._convert(original, record)
                self._sender.send(original, outgoing)
                return True
        self._sender.dropped(original)
        return False


class Delivery(Protocol):
    """A delivery guarantee: opened, driven and closed around a source task's loop."""

    transaction_context: TransactionContext | None

    @property
    def sender(self) -> Sender: ...

    def open(self) -> bool:
        """Prepare before the task is started; return False when the worker asks for a stop.

        Any exception makes the task FAILED.
        """
        ...

    def begin(self, loop: SourceLoop) -> None:
        """Take the loop, which runs from now on."""
        ...

    def end(self, *, failed: bool, complete: bool) -> None:
        """Commit the offsets that may be committed, after the end of the loop.

        `complete` is False when a part of the last batch was not sent.
        """
        ...

    def close(self, *, failed: bool) -> None:
        """Release everything."""
        ...

    def statistics(self) -> StatsReported: ...
