"""The loop of a source task, for every delivery guarantee.

Layer: tasks. Kafka: AbstractWorkerSourceTask. Runs on the process's main thread.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Protocol

from pyconnect_agent.core.ids import State
from pyconnect_agent.tasks.control import Control
from pyconnect_agent.tasks.source_metrics import SourceMetrics
from pyconnect_agent.tasks.source_pipeline import Convert
from pyconnect_agent.tasks.source_sender import Sender
from pyconnect_agent.tasks.tolerance import RecordSkipped
from pyconnect_api import RetriableException, SourceRecord, SourceTask

LOG = logging.getLogger(__name__)

RETRY_WAIT_S = 0.1


class StateReporter(Protocol):
    """Tells the worker a state."""

    def __call__(self, state: State) -> None: ...


class SourceLoop:
    """Polls, converts and sends until the worker wants an end.

    `polling_since_s` is the monotonic time at which the task was last asked for records, None
    while it is not in `poll`; other threads read it.
    """

    def __init__(
        self,
        *,
        task: SourceTask,
        convert: Convert,
        sender: Sender,
        control: Control,
        report: StateReporter,
        metrics: SourceMetrics,
    ) -> None:
        self._task = task
        self._convert = convert
        self._sender = sender
        self._control = control
        self._report = report
        self._metrics = metrics
        self._unsent: Sequence[SourceRecord] = ()
        self.polling_since_s: float | None = None
        self.last_poll_ms: int | None = None

    def run(self) -> None:
        """Return when the worker wants an end. Raises what makes the task FAILED."""
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
            self._unsent = self._poll()
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
            self._sender.begin_iteration()
        if not self._control.stopping:
            self._sender.resumed()
            self._report(State.RUNNING)

    def _poll(self) -> Sequence[SourceRecord]:
        self.last_poll_ms = int(time.time() * 1000)
        began_s = self.polling_since_s = time.monotonic()
        try:
            polled = self._task.poll() or ()
        except RetriableException:
            LOG.warning("poll failed and is repeated", exc_info=True)
            return ()
        finally:
            self.polling_since_s = None
        if polled:
            self._metrics.polled(len(polled), (time.monotonic() - began_s) * 1000)
        return polled

    def _send(self) -> bool:
        """Send what is unsent; False when a part is left for later."""
        batch, convert, sender = self._unsent, self._convert, self._sender
        send = sender.send
        sent = left_out = 0
        try:
            for record in batch:
                try:
                    outgoing = convert(record)
                except RecordSkipped:
                    outgoing = None
                if outgoing is None:
                    sender.dropped(record)
                    left_out += 1
                else:
                    send(record, outgoing)
                sent += 1
        except RetriableException as exc:
            LOG.debug("send is repeated", extra={"reason": str(exc)})
            # The rest is transformed and converted again: Kafka's contract of a repeated send.
            self._unsent = batch[sent:]
            self._metrics.left_out(left_out)
            return False
        self._unsent = ()
        if left_out:
            self._metrics.left_out(left_out)
        sender.batch_sent()
        return True
