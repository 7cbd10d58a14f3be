"""The control thread of a child: it reads the pipe and keeps the requests of the worker.

The task's or connector's thread asks this object; only the control thread changes it. When the pipe
ends, so does the process, at once: no orphan outlives its worker process. So it does when its lease
runs out: the worker process hangs, and another worker may run this task by now. And when the
control thread itself dies: nothing would hear of a stop, of the lease or of the pipe's end.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pyconnect_agent.channel import EXIT_LEASE_EXPIRED, Channel, Message
from pyconnect_agent.channel.reports import (
    ConfirmOffsetChange,
    ConfirmStart,
    FindConnectorOffsets,
    FindOffsetKeys,
    ReadOffsetsRequest,
    RequestFailed,
    StacksDumped,
    StatsReported,
    WriteOffsetsRequest,
)
from pyconnect_agent.channel.requests import (
    ConnectorOffsetsFound,
    DumpStacks,
    GenerateTaskConfigsRequest,
    Lease,
    OffsetChangeConfirmed,
    OffsetKeysFound,
    OffsetsRead,
    OffsetsWritten,
    ReportStats,
    SetLoggerLevel,
    SetTargetStateRequest,
    StartConfirmed,
    Stop,
)
from pyconnect_agent.core.errors import AgentError, RetriableKafkaError
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.metric_values import Metric
from pyconnect_agent.process import long_lived
from pyconnect_agent.tasks.trace import describe_threads
from pyconnect_api import ConnectException

LOG = logging.getLogger(__name__)

Reply = TypeVar("Reply", bound=Message)

EXIT_ORPHANED = 70
EXIT_TERMINATED = 143

SIGNAL_MARGIN_S = 0.1
"""How much sooner than the time for a stop ends here the worker process's SIGTERM may come."""

REPLY_GRACE_S = 5.0
"""An answer's way through the pipe, beyond the time its request may take."""


class Control:
    """The worker's requests to this process, and the way to ask the worker.

    `stop_requested` is given to source tasks as it is. `changed` is set at every message; a
    waiter clears it before it looks.
    """

    def __init__(
        self, channel: Channel, target_state: TargetState, *, lease_ms: int | None = None
    ) -> None:
        self._channel = channel
        self._lease_ms = lease_ms
        self._lease_until_s = time.monotonic() + (lease_ms or 0) / 1000
        self._request_ids = itertools.count(1)
        self._replies: dict[int, Future[Message]] = {}
        self._start_confirmed: Future[Message] | None = None
        self._task_config_requests: queue.SimpleQueue[GenerateTaskConfigsRequest] = (
            queue.SimpleQueue()
        )
        self.target_state = target_state
        self.stop_requested = threading.Event()
        self.stop_until_s = 0.0
        """On the monotonic clock: until when an orderly stop may take."""
        self.changed = threading.Event()
        self.statistics: Callable[[], StatsReported] = StatsReported
        """Called when the worker process asks; set by the task's work."""
        self.set_logger_level: Callable[[str, str], object] = lambda _namespace, _level: None
        """Applies a level to this process; set before `start`."""
        self.levels_changed: Callable[[], object] = lambda: None
        """Called after a level was applied; must not wait."""
        self.logger_levels: Callable[[], Mapping[str, str]] = dict
        """Returns the levels of this process's known loggers; set before `start` too."""
        self.describe_stacks: Callable[[], str] = describe_threads
        """Returns the stacks of this process, and of one that belongs to it."""
        self.mbeans: Callable[[], tuple[Metric, ...]] = tuple
        """Returns the numbers of MBeans of a Java process; waits for less than a second."""
        self.shared_java_pid: int | None = None
        """Of the Java process that this task shares with others."""
        self._thread = long_lived.Thread("control", self._read)

    def start(self) -> None:
        self._thread.start()

    @property
    def stopping(self) -> bool:
        """True once the worker has asked for a stop."""
        return self.stop_requested.is_set()

    @property
    def should_pause(self) -> bool:
        return self.target_state is TargetState.PAUSED

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait for the next message; a caller looks at the state before and after."""
        self.changed.wait(timeout_s)

    def next_task_config_request(self) -> GenerateTaskConfigsRequest | None:
        """For connector processes: the oldest request not yet taken."""
        try:
            return self._task_config_requests.get_nowait()
        except queue.Empty:
            return None

    def send(self, message: Message) -> None:
        self._channel.send(message)

    def report_statistics(self, request_id: int = 0, mbeans: tuple[Metric, ...] = ()) -> None:
        """Report the task's work to the worker; an id of 0 means that it did not ask."""
        told = self.statistics()
        pid = self.shared_java_pid
        self.send(replace(told, request_id=request_id, mbeans=mbeans, shared_java_pid=pid))

    def read_offsets(self, keys: tuple[bytes, ...], timeout_ms: int) -> dict[bytes, bytes | None]:
        """Ask the worker's store. Raises AgentError, RetriableKafkaError on timeout."""
        request = partial(ReadOffsetsRequest, keys=keys, timeout_ms=timeout_ms)
        return dict(self._ask(OffsetsRead, request, timeout_ms).entries)

    def write_offsets(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        """Write through the worker's store and wait until that is durable; errors as above."""
        request = partial(WriteOffsetsRequest, entries=entries, timeout_ms=timeout_ms)
        self._ask(OffsetsWritten, request, timeout_ms)

    def offset_keys_in_use(
        self, keys: tuple[bytes, ...], timeout_ms: int
    ) -> Mapping[bytes, tuple[bytes, ...]]:
        """Ask under which raw keys the worker's store has these, newest first; errors as above."""
        return self._ask(OffsetKeysFound, partial(FindOffsetKeys, keys=keys), timeout_ms).keys

    def connector_offsets(self, connector: str, timeout_ms: int) -> Mapping[bytes, bytes]:
        """Ask for the raw entries of a connector in the worker's store; errors as above."""
        request = partial(FindConnectorOffsets, connector=connector, timeout_ms=timeout_ms)
        return self._ask(ConnectorOffsetsFound, request, timeout_ms).entries

    def confirm_offset_change(self, timeout_ms: int, *, complete: bool) -> None:
        """Wait until the worker lets a prepared change of offsets be written; errors as above."""
        request = partial(ConfirmOffsetChange, complete=complete)
        self._ask(OffsetChangeConfirmed, request, timeout_ms)

    def confirm_start(self) -> bool:
        """Ask whether this task may begin, its producer being initialised; False when stopped.

        Waits as long as it takes. Raises ConnectException with Kafka's text when it may not.
        """
        request_id = next(self._request_ids)
        future: Future[Message] = Future()
        self._replies[request_id] = self._start_confirmed = future
        # Stop may have come before there was something to end.
        if not self.stopping:
            self._channel.send(ConfirmStart(request_id=request_id))
            try:
                reply = future.result()
            except CancelledError:
                return False
            finally:
                self._replies.pop(request_id, None)
            if isinstance(reply, RequestFailed):
                raise ConnectException(reply.message)
        return not self.stopping

    def _ask(
        self, expected: type[Reply], request: Callable[..., Message], timeout_ms: int
    ) -> Reply:
        request_id = next(self._request_ids)
        future: Future[Message] = Future()
        self._replies[request_id] = future
        try:
            self._channel.send(request(request_id=request_id))
            reply = future.result(timeout_ms / 1000 + REPLY_GRACE_S)
        except TimeoutError:
            raise RetriableKafkaError(
                f"The worker's offset store did not answer within {timeout_ms} ms."
            ) from None
        finally:
            self._replies.pop(request_id, None)
        if isinstance(reply, RequestFailed):
            error = RetriableKafkaError if reply.retriable else AgentError
            raise error(reply.message)
        assert isinstance(reply, expected)
        return reply

    def _read(self) -> None:
        # select() refuses descriptors above 1023, which the thousandth child of a worker has.
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            while True:
                while self._lease_ms is not None:
                    remaining_s = self._lease_until_s - time.monotonic()
                    if selector.select(max(remaining_s, 0.0)):
                        break
                    if remaining_s <= 0:
                        os._exit(EXIT_LEASE_EXPIRED)
                message = self._channel.receive()
                if self._channel.is_over:
                    break
                if message is None:
                    os._exit(EXIT_ORPHANED)
                self._take(message)
                self.changed.set()
        self._channel.close()

    def _take(self, message: Message) -> None:
        match message:
            case SetLoggerLevel(namespace=namespace, level=level):
                self.set_logger_level(namespace, level)
                self.levels_changed()
            case SetTargetStateRequest():
                self.target_state = message.target_state
            case Stop(graceful_ms=graceful_ms):
                # Final commits after a gap could undo commits of the task's next owner.
                self._end_unless_leased(time.monotonic())
                self.stop_until_s = time.monotonic() + graceful_ms / 1000 - SIGNAL_MARGIN_S
                self.stop_requested.set()
                if self._start_confirmed is not None:
                    self._start_confirmed.cancel()
            case Lease():
                self._end_unless_leased(message.valid_until_s - (self._lease_ms or 0) / 1000)
                self._lease_until_s = message.valid_until_s
            case GenerateTaskConfigsRequest():
                self._task_config_requests.put(message)
            case (
                OffsetsRead()
                | OffsetsWritten()
                | OffsetKeysFound()
                | ConnectorOffsetsFound()
                | OffsetChangeConfirmed()
                | StartConfirmed()
                | RequestFailed()
            ):
                future = self._replies.get(message.request_id)
                if future is not None and not future.done():
                    future.set_result(message)
            case ReportStats() | DumpStacks():
                # Not here: this thread must never wait for a worker process that does not read.
                # A figure that cannot be read costs its answer, not the task.
                answer = partial(self._tell, message)
                long_lived.Thread("inquiry", answer, on_death=lambda _: None).start()
            case _:
                LOG.error("message not meant for a child", extra={"kind": type(message).__name__})

    def _end_unless_leased(self, at_s: float) -> None:
        if self._lease_ms is not None and at_s > self._lease_until_s:
            os._exit(EXIT_LEASE_EXPIRED)

    def _tell(self, question: ReportStats | DumpStacks) -> None:
        with contextlib.suppress(OSError):
            if isinstance(question, ReportStats):
                mbeans = self.mbeans() if question.mbeans else ()
                self.report_statistics(question.request_id, mbeans)
            else:
                self.send(StacksDumped(request_id=question.request_id, text=self.describe_stacks()))


PERIOD_S = 5.0


class ActiveTopics:
    """Calls `report` with the names of topics that a task uses (KIP-558).

    Kafka: `WorkerTask.recordActiveTopic`, which asks the status store for each record; here the
    worker hears of a topic at its first use, and then once per period in which it was used again,
    so that a topic that was reset in between is listed again. `used` anywhere, `refresh` on the
    task's thread.
    """

    def __init__(
        self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._report = report
        self._clock = clock
        self._known: set[str] = set()
        self._used_again: set[str] = set()
        self._period_ends_s = clock() + PERIOD_S

    def used(self, topic: str) -> None:
        """Note that a record went to the topic or came from it; quick enough for each record."""
        if topic in self._known:
            self._used_again.add(topic)
        else:
            self._known.add(topic)
            self._report(topic)

    def refresh(self) -> None:
        """Report topics that were used again, when it is time; to be called once per batch."""
        now_s = self._clock()
        if now_s < self._period_ends_s:
            return
        self._period_ends_s = now_s + PERIOD_S
        # Copied at once: another thread may add to the set at any time.
        topics = frozenset(self._used_again)
        self._used_again -= topics
        for topic in topics:
            self._report(topic)
