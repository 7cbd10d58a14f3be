"""The child's end of the pipe.

Layer: tasks' side of the channel. `Channel.send` may be called from any thread; `Channel.receive`
from one.
"""

from __future__ import annotations

import contextlib
import socket
import threading

from pyconnect_agent.channel.frames import (
    FRAME_HEADER,
    MAX_FRAME_BYTES,
    ChannelError,
    Message,
    decode,
    encode,
)
from pyconnect_agent.channel.reports import (
    ConfigValidated,
    PluginDescribed,
    RequestFailed,
    StateReported,
    StatsReported,
    TaskConfigs,
    TopicUsed,
)

PLUGIN_MADE = (
    StateReported
    | TaskConfigs
    | RequestFailed
    | TopicUsed
    | StatsReported
    | PluginDescribed
    | ConfigValidated
)
"""Messages with values of plugin code, which may be of any type."""


class Channel:
    """The child's end of the pipe: blocking, whole messages."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._send_lock = threading.Lock()
        self.is_broken = False
        """True after a failed write: the worker process is gone."""
        self.is_over = False
        """Set before the end is told in another way: then the end of the pipe means nothing."""

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Raises OSError once the worker process is gone, ChannelError for values of a wrong type.

        Also ChannelError for a message that is too large. The checks are on this side because the
        worker process kills a child whose message it cannot read. After a ChannelError no message
        was sent.
        """
        frame = encode(message)
        if len(frame) - FRAME_HEADER.size > MAX_FRAME_BYTES:
            raise ChannelError(
                f"{type(message).__name__} cannot be sent: it has {len(frame)} bytes, and at most"
                f" {MAX_FRAME_BYTES} are allowed"
            )
        if isinstance(message, PLUGIN_MADE):
            decode(memoryview(frame)[FRAME_HEADER.size :])
        with self._send_lock:
            try:
                self._connection.sendall(frame)
            except OSError:
                self.is_broken = True
                raise

    def receive(self) -> Message | None:
        """Block for the next message; None when the worker process is gone."""
        header = self._read_exactly(FRAME_HEADER.size)
        if header is None:
            return None
        frame = self._read_exactly(FRAME_HEADER.unpack(header)[0])
        return None if frame is None else decode(frame)

    def receive_task(self) -> tuple[Channel, int] | None:
        """Block for a task of a shared process, and its fate; None when no more can come."""
        try:
            byte, descriptors, _, _ = socket.recv_fds(self._connection, 1, 2)
        except ConnectionError:
            return None
        if not byte:
            return None
        pipe, fate = descriptors
        return Channel(socket.socket(fileno=pipe)), fate

    def end(self) -> None:
        """Let `receive` return None, here and in the worker process; this process goes on."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._connection.close()

    def _read_exactly(self, size: int) -> bytes | None:
        # A frame usually arrives in one piece, which is not copied because it may be very large.
        received = b""
        while len(received) < size:
            try:
                part = self._connection.recv(size - len(received), socket.MSG_WAITALL)
            except ConnectionError:
                return None
            if not part:
                return None
            received += part
        return received
