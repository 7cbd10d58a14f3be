"""The loop of a source task, for every delivery guarantee.

Kafka: AbstractWorkerSourceTask. Runs on the process's main thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, runtime_checkable

from pyconnect_agent.core.ids import State
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.records.tolerance import RecordSkipped
from pyconnect_agent.tasks.setup.plugins import plain_records
from pyconnect_agent.tasks.source.columns import OutgoingRun
from pyconnect_agent.tasks.source.pipeline import Pipeline
from pyconnect_agent.tasks.source.sender import Sender
from pyconnect_agent.tasks.task_metrics import SourceMetrics
from pyconnect_agent.tasks.trace import ShownRetries
from pyconnect_api import RetriableException, SourceRecord, SourceTask

LOG = logging.getLogger(__name__)

RETRY_WAIT_S = 0.1


@runtime_checkable
class PollsInParts(Protocol):
    """A task whose `poll` may return the first part of a batch."""

    def next_part(self) -> Sequence[SourceRecord]:
        """Return the next part; none after the last. Raises as `poll` does."""
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
        """Send the unsent records; False when a part is left for later."""
        try:
            while self._unsent:
                self._send_some()
                if not self._unsent:
                    self._take(self._next_part())
        except RetriableException as exc:
            # The rest is transformed and converted again: Kafka's contract of a repeated send.
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
        """Send the first unsent ones, given as they are now, None for those that are dropped."""
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
        """Convert the records at once and return their places; None if one by one it must be."""
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
            # It hears of records in their order, and a run has only those that are sent.
            return None, ()
        return run, places

    def _send_one(self, original: SourceRecord, record: SourceRecord | None) -> bool:
        """Convert and send a record; False when it was left out."""
        if record is not None:
            with suppress(RecordSkipped):
                outgoing = self._convert(original, record)
                self._sender.send(original, outgoing)
                return True
        self._sender.dropped(original)
        return False
