"""The control thread of a child: it reads the pipe and keeps the requests of the worker.

The task's or connector's thread asks this object; only the control thread changes it. The control
thread ends the process at once in three cases: the pipe ends, so that no orphan outlives its worker
process; the lease runs out, because the worker process hangs and another worker may run this task
by now; the control thread itself fails, because no thread would read a stop or watch the lease.
"""

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
"""The time by which a stop ends earlier here, as the worker process's SIGTERM may come early."""

REPLY_GRACE_S = 5.0
"""The time for an answer's way through the pipe, beyond the time that its request may take."""


class Control:
    """The worker's requests to this process, and this process's requests to the worker.

    Source tasks get the event `stop_requested` itself. `changed` is set at every message; a waiter
    clears it before reading the state.
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
        """The end of the time for an orderly stop, on the monotonic clock."""
        self.changed = threading.Event()
        self.statistics: Callable[[], StatsReported] = StatsReported
        """Returns the statistics; called when the worker process asks, and set by the task's
        work.
        """
        self.set_logger_level: Callable[[str, str], object] = lambda _namespace, _level: None
        """Applies a level to this process; set before `start`."""
        self.levels_changed: Callable[[], object] = lambda: None
        """Called after a level was applied; must not wait."""
        self.logger_levels: Callable[[], Mapping[str, str]] = dict
        """Returns the levels of this process's known loggers; set before `start`."""
        self.describe_stacks: Callable[[], str] = describe_threads
        """Returns the stacks of this process and of its Java process, if it has one."""
        self.mbeans: Callable[[], tuple[Metric, ...]] = tuple
        """Returns the numbers of MBeans of a Java process; waits for less than a second."""
        self.shared_java_pid: int | None = None
        """The id of the Java process that this task shares with others; None without one."""
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
        """Wait for the next message; a caller reads the state before and after."""
        self.changed.wait(timeout_s)

    def next_task_config_request(self) -> GenerateTaskConfigsRequest | None:
        """Return the oldest request not yet taken, None without one; for connector processes."""
        try:
            return self._task_config_requests.get_nowait()
        except queue.Empty:
            return None

    def send(self, message: Message) -> None:
        self._channel.send(message)

    def report_statistics(self, request_id: int = 0, mbeans: tuple[Metric, ...] = ()) -> None:
        """Report the task's work to the worker; without a request the id is 0."""
        told = self.statistics()
        pid = self.shared_java_pid
        self.send(replace(told, request_id=request_id, mbeans=mbeans, shared_java_pid=pid))

    def read_offsets(self, keys: tuple[bytes, ...], timeout_ms: int) -> dict[bytes, bytes | None]:
        """Ask the worker's store. Raises AgentError, RetriableKafkaError on timeout."""
        request = partial(ReadOffsetsRequest, keys=keys, timeout_ms=timeout_ms)
        return dict(self._ask(OffsetsRead, request, timeout_ms).entries)

    def write_offsets(self, entries: dict[bytes, bytes | None], timeout_ms: int) -> None:
        """Write through the worker's store and wait until the write is durable; errors as above."""
        request = partial(WriteOffsetsRequest, entries=entries, timeout_ms=timeout_ms)
        self._ask(OffsetsWritten, request, timeout_ms)

    def offset_keys_in_use(
        self, keys: tuple[bytes, ...], timeout_ms: int
    ) -> Mapping[bytes, tuple[bytes, ...]]:
        """Return the raw keys of these in the worker's store, newest first; errors as above."""
        return self._ask(OffsetKeysFound, partial(FindOffsetKeys, keys=keys), timeout_ms).keys

    def connector_offsets(self, connector: str, timeout_ms: int) -> Mapping[bytes, bytes]:
        """Ask for the raw entries of a connector in the worker's store; errors as above."""
        request = partial(FindConnectorOffsets, connector=connector, timeout_ms=timeout_ms)
        return self._ask(ConnectorOffsetsFound, request, timeout_ms).entries

    def confirm_offset_change(self, timeout_ms: int, *, complete: bool) -> None:
        """Wait until the worker allows a prepared change of offsets; errors as above."""
        request = partial(ConfirmOffsetChange, complete=complete)
        self._ask(OffsetChangeConfirmed, request, timeout_ms)

    def confirm_start(self) -> bool:
        """Ask whether this task may start, its producer being initialised; False when stopped.

        Waits without a time limit. Raises ConnectException with Kafka's text when the task may not
        start.
        """
        request_id = next(self._request_ids)
        future: Future[Message] = Future()
        self._replies[request_id] = self._start_confirmed = future
        # A stop that came before the line above has found no future to cancel.
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
        # select() refuses descriptors above 1023, which a worker with a thousand children reaches.
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
                # A thread of its own, as this one must never wait for a worker process that does
                # not read. A metric that cannot be read costs its answer, not the task.
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

    Kafka: `WorkerTask.recordActiveTopic`, which asks the status store for each record. Here the
    worker gets a topic at its first use, and then once in each period in which the topic was used,
    so that a topic that was reset in between is listed again. Any thread may call `used`, only the
    task's thread calls `refresh`.
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
        """Note that a record went to the topic or came from it; fast enough for each record."""
        if topic in self._known:
            self._used_again.add(topic)
        else:
            self._known.add(topic)
            self._report(topic)

    def refresh(self) -> None:
        """Report topics that were used again, once a period has passed; called once per batch."""
        now_s = self._clock()
        if now_s < self._period_ends_s:
            return
        self._period_ends_s = now_s + PERIOD_S
        # Copied in one step, as another thread may add to the set at any time.
        topics = frozenset(self._used_again)
        self._used_again -= topics
        for topic in topics:
            self._report(topic)
