"""The worker process's end of a child's pipe: frames in and out, on the event loop.

Layer: children. The two directions end separately: after a child has ended, writes fail but its
last reports can still be read. A transport of asyncio ends both directions at the first failed
write and drops the unread bytes.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable

from pyconnect_agent.channel import FRAME_HEADER, MAX_FRAME_BYTES

READ_BYTES = 1 << 18
"""Maximum of one read, so that other children have their turn in between."""
REST_READS = 64
"""More than a pipe holds: a limit for reading the rest from an ended process."""


class ChildPipe:
    """Reads and writes over a connection that it owns until `close`.

    `on_frame` gets each frame without its header. The event loop logs an exception of `on_frame`.
    A frame of more than `MAX_FRAME_BYTES` ends reading; `on_too_large` gets its size.
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
        """Read the rest from an ended process now: another process may hold the pipe open."""
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
        while not self.ended.done() and (frame := self._next_frame()) is not None:
            self._on_frame(frame)
        return True

    def _next_frame(self) -> bytes | None:
        begin = FRAME_HEADER.size
        if len(self._received) < begin:
            return None
        size = FRAME_HEADER.unpack_from(self._received)[0]
        if size > MAX_FRAME_BYTES:
            self.end_reading()
            self._received.clear()
            self._on_too_large(size)
            return None
        end = begin + size
        if len(self._received) < end:
            return None
        with memoryview(self._received) as received:
            frame = bytes(received[begin:end])
        del self._received[:end]
        return frame

    def _end_writing(self) -> None:
        if self._takes_more:
            self._takes_more = False
            self._loop.remove_writer(self._connection)
            self._unsent.clear()
