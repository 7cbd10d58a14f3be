"""One child process and its pipe, seen from the event loop.

A `Child` launches a process, sends it messages and watches it until its end. `tasks.py`,
`connectors.py` and `jobs.py` interpret its messages.

The two directions of the pipe end separately: after a child has ended, writes fail but its last
reports can still be read. A transport of asyncio ends both directions at the first failed write and
drops the unread bytes.

`ChildEnd` says how a child has ended, for traces, answers and logs.
"""

import asyncio
import logging
import signal
import socket
import traceback
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from signal import Signals

from pyconnect_agent.channel import (
    EXIT_LEASE_EXPIRED,
    FRAME_HEADER,
    MAX_FRAME_BYTES,
    ChannelError,
    Message,
    decode,
    encode,
)
from pyconnect_agent.channel.requests import Job, Lease, Stop
from pyconnect_agent.children.launch import Launched
from pyconnect_agent.core.reporting import describe_exit
from pyconnect_agent.process import long_lived

_NO_WORDS = "It left no traceback. "
_EXITED = "Plugin code may have called os._exit, or a native library exit."
_KILLED = "The system may have run out of memory (dmesg), or a user killed the process."
_CRASHED = "The worker's standard error may show what native code printed."
_SERVER_KILLED = "Its fork server was killed, and children cannot outlive that."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnd:
    """The end of a child; `exit_code` is -n after signal n, None if not started or not known.

    `failure`: set if the exit code is not the cause: the process could not be started, or the
    worker process killed it at once. `reason`: the error behind a failure, else the traceback or
    crash report that the process left; "" without one.
    """

    exit_code: int | None
    failure: str = ""
    reason: str = ""

    @property
    def lease_expired(self) -> bool:
        return self.exit_code == EXIT_LEASE_EXPIRED

    def describe(self, process: str, remark: str = "") -> str:
        """Return a sentence that starts with `process` and ends with `remark`, and the reason."""
        if self.failure:
            how, why = self.failure, "."
        elif self.exit_code is None:
            how, why = "ended in an unknown way", f". {_NO_WORDS}{_SERVER_KILLED}"
        else:
            guess = _EXITED
            if self.exit_code < 0:
                guess = _KILLED if self.exit_code == -Signals.SIGKILL else _CRASHED
            how, why = describe_exit(self.exit_code), f". {_NO_WORDS}{guess}"
        if self.reason:
            why = f":\n{self.reason}"
        return f"{process} {how}{f' {remark}' if remark else ''}{why}"


READ_BYTES = 1 << 18
"""Most bytes of one read, so that other children are read in between."""
REST_READS = 64
"""The most reads for the rest from an ended process; more than a pipe holds."""


class ChildPipe:
    """Reads and writes over a connection that it owns until `close`.

    `on_frame` gets each frame without its header. The event loop logs an exception of `on_frame`. A
    frame of more than `MAX_FRAME_BYTES` ends reading; `on_too_large` gets its size.
    """

    def __init__(
        self,
        connection: socket.socket,
        on_frame: Callable[[bytes], None],
        on_too_large: Callable[[int], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._connection = connection
        self._on_frame = on_frame
        self._on_too_large = on_too_large
        self._received = bytearray()
        # Without a buffer in between: a frame may be very large.
        self._unsent: deque[memoryview] = deque()
        self._takes_more = True
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done once the other side has ended and all that it wrote was read."""
        connection.setblocking(False)
        self._loop.add_reader(connection, self._read)

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that the other side has not read yet."""
        return sum(map(len, self._unsent))

    def write(self, data: bytes | bytearray) -> None:
        """Send without waiting; the data is dropped if the child no longer reads."""
        if not self._takes_more:
            return
        idle = not self._unsent
        self._unsent.append(memoryview(data))
        if idle:
            self._send()
            if self._unsent:
                self._loop.add_writer(self._connection, self._send)

    def read_rest(self) -> None:
        """Read the rest from an ended process at once: another process may hold the pipe open."""
        for _ in range(REST_READS):
            if self.ended.done() or not self._read():
                return

    def end_reading(self) -> None:
        """Stop taking frames."""
        if not self.ended.done():
            self._loop.remove_reader(self._connection)
            self.ended.set_result(None)

    def close(self) -> None:
        """Stop reading and sending."""
        self._end_writing()
        self.end_reading()
        self._connection.close()

    def _send(self) -> None:
        data = self._unsent[0]
        try:
            sent = self._connection.send(data)
        except BlockingIOError:
            return
        except OSError:
            self._end_writing()
            return
        if sent < len(data):
            self._unsent[0] = data[sent:]
            return
        self._unsent.popleft()
        if not self._unsent:
            self._loop.remove_writer(self._connection)

    def _read(self) -> bool:
        """Read available bytes, at most `READ_BYTES`; return whether there were any."""
        try:
            data = self._connection.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            # ECONNRESET after the last byte: the child ended without reading all that was sent.
            data = b""
        if not data:
            self.end_reading()
            return False
        self._received += data
        begin = FRAME_HEADER.size
        while not self.ended.done() and len(self._received) >= begin:
            size = FRAME_HEADER.unpack_from(self._received)[0]
            if size > MAX_FRAME_BYTES:
                self.end_reading()
                self._received.clear()
                self._on_too_large(size)
                break
            end = begin + size
            if len(self._received) < end:
                break
            with memoryview(self._received) as received:
                frame = bytes(received[begin:end])
            del self._received[:end]
            self._on_frame(frame)
        return True

    def _end_writing(self) -> None:
        if self._takes_more:
            self._takes_more = False
            self._loop.remove_writer(self._connection)
            self._unsent.clear()


LOG = logging.getLogger(__name__)

TERMINATE_GRACE_S = 1.0
EXIT_S = 1.0
"""How long a child that has closed its pipe may take to end, and its fork server to report the
end.
"""
LEASE_BACKLOG_BYTES = 1 << 20


class Child:
    """A process from its request to its end. Every method runs on the event loop.

    `on_message` gets each message; `on_exit` is called once, after the last message.
    """

    def __init__(
        self,
        name: str,
        job: Job,
        *,
        launch: Callable[[], Launched],
        launches: ThreadPoolExecutor,
        on_message: Callable[[Message], None],
        on_exit: Callable[[ChildEnd], None],
    ) -> None:
        self.name = name
        self._launch = launch
        self._launches = launches
        self._on_message = on_message
        self._on_exit = on_exit
        self._launched: Launched | None = None
        self._pipe: ChildPipe | None = None
        self._backlog = [encode(job)]
        self._first_lease: Lease | None = None
        self._pending_signal: signal.Signals | None = None
        self._failure = self._reason = ""
        self.stopping = False
        self.cancelled = False
        self._task = long_lived.start_task(f"child {name}", self._run())

    @property
    def pid(self) -> int | None:
        """The process's id, None until the process is started."""
        return self._launched.pid if self._launched else None

    def send(self, message: Message) -> None:
        """Send without waiting; the message is dropped when the child is gone."""
        if self._pipe is None and isinstance(message, Lease):
            # A start may take longer than a lease, so only the latest lease may reach the child.
            self._first_lease = message
        elif self._pipe is None:
            self._backlog.append(encode(message))
        elif not isinstance(message, Lease) or self._pipe.unsent_bytes <= LEASE_BACKLOG_BYTES:
            self._pipe.write(encode(message))

    def request_stop(self, graceful_s: float) -> None:
        """Ask the child to end in order within a time."""
        self.stopping = True
        self.send(Stop(graceful_ms=int(graceful_s * 1000)))

    def signal(self, number: signal.Signals) -> None:
        if self._launched is None:
            self._pending_signal = number
        else:
            self._launched.signal(number)

    async def gone(self) -> None:
        """Wait for the end; `on_exit` has been called before this returns."""
        await asyncio.shield(self._task)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            launched = await loop.run_in_executor(self._launches, self._launch)
        except (OSError, EOFError) as exc:
            # EOFError: the fork server ended before it answered.
            LOG.error(
                "child process could not be started", extra={"child": self.name, "error": str(exc)}
            )
            self._on_exit(ChildEnd(exit_code=None, failure="could not be started", reason=str(exc)))
            return
        self._launched = launched
        if self._pending_signal is not None:
            launched.signal(self._pending_signal)
        self._pipe = pipe = ChildPipe(
            launched.connection,
            self._take,
            lambda size: self._refuse(
                "a message that is too large",
                f"The message has {size} bytes, and at most {MAX_FRAME_BYTES} are allowed",
            ),
        )
        for frame in self._backlog:
            pipe.write(frame)
        self._backlog.clear()
        if self._first_lease is not None:
            pipe.write(encode(self._first_lease))
        ended = asyncio.create_task(self._wait_for_exit(launched))
        try:
            await asyncio.wait({pipe.ended, ended}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({ended}, timeout=EXIT_S)
            if not ended.done():
                # A child that closed its pipe but lives could never get a request to stop.
                launched.signal(signal.SIGKILL)
                await ended
            pipe.read_rest()
        finally:
            pipe.close()
            end = ChildEnd(
                exit_code=launched.exit_code(),
                failure=self._failure or launched.failure,
                reason=self._reason or launched.last_words,
            )
            launched.close()
        self._on_exit(end)

    def _take(self, frame: bytes) -> None:
        try:
            message = decode(frame)
        except ChannelError as exc:
            self._refuse("an unreadable message", str(exc))
            return
        try:
            self._on_message(message)
        except Exception:  # a fault of the worker; without its reader the child must not continue
            LOG.exception("message of a child failed", extra={"child": self.name})
            failure = f"was killed because the worker failed at its {type(message).__name__}"
            self._give_up(failure, traceback.format_exc().rstrip())

    def _refuse(self, what: str, reason: str) -> None:
        LOG.error(
            "child sent a message that is refused, and is killed",
            extra={"child": self.name, "error": reason},
        )
        self._give_up(f"was killed because it sent {what}", reason)

    def _give_up(self, failure: str, reason: str) -> None:
        assert self._pipe is not None  # the child's own reports arrive by its pipe
        self._failure, self._reason = failure, reason
        self.signal(signal.SIGKILL)
        self._pipe.end_reading()

    async def _wait_for_exit(self, launched: Launched) -> None:
        reported = asyncio.create_task(_readable(launched.sentinel))
        waits = [reported]
        waits += [asyncio.create_task(_readable(watched)) for watched in launched.watched]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([reported], timeout=EXIT_S)
            if reported.done() and launched.exit_code() is None:
                # The task has ended with the process that it shared, whose report may still come.
                await asyncio.wait(waits, timeout=EXIT_S)
            if not reported.done():
                LOG.error("the fork server does not report ends", extra={"child": self.name})
                launched.end_without_report()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)


async def _readable(descriptor: int) -> None:
    """Wait until a descriptor is readable."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(descriptor, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)


async def stop_children(
    children: Collection[Child],
    *,
    graceful_s: float,
    on_cancel: Callable[[Child], None] | None = None,
) -> None:
    """Stop children within one time limit for all; late children are cancelled and killed.

    Returns when all are gone. `on_cancel` is called for each late child before its first signal.
    """
    if not children:
        return
    for child in children:
        if not child.stopping:
            child.request_stop(graceful_s)
    late = await _wait_gone(children, graceful_s)
    for child in late:
        child.cancelled = True
        LOG.warning(
            "child did not stop in time and is killed",
            extra={"child": child.name, "graceful_ms": int(graceful_s * 1000)},
        )
        if on_cancel is not None:
            on_cancel(child)
        child.signal(signal.SIGTERM)
    await kill_children(await _wait_gone(late, TERMINATE_GRACE_S))


async def kill_children(children: Collection[Child]) -> None:
    """Cancel and kill children at once; return when all are gone."""
    for child in children:
        child.cancelled = True
        child.signal(signal.SIGKILL)
    await _wait_gone(children, None)


async def _wait_gone(children: Collection[Child], timeout_s: float | None) -> list[Child]:
    waits = {asyncio.ensure_future(child.gone()): child for child in children}
    if not waits:
        return []
    _, pending = await asyncio.wait(waits, timeout=timeout_s)
    for wait in pending:
        wait.cancel()
    return [waits[wait] for wait in pending]
