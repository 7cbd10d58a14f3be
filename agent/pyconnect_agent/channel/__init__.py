"""The messages between the worker process and its children, and the child's end of their pipe.

Layer: the only package that `children` and `tasks` share. Kafka has no counterpart: a Java worker
runs its plugins in threads. Any thread may call `Channel.send`, one thread `Channel.receive`.

Messages are frozen dataclasses of plain values: a job, then requests to the child (`requests`), and
reports from it (`reports`).

| bytes | frame |
|---|---|
| 4 | length of the rest, unsigned, big-endian |
| 1 | `VERSION` |
| rest | MessagePack: an array of the message's name (str) and its fields (map, by field name) |

| field's type | MessagePack |
|---|---|
| str, bytes, bool, int, float, None | str (UTF-8), bin, bool, int of 64 bits, float 64, nil |
| enum | the value of the member |
| tuple, named tuple | array, a named tuple's in the order of its fields |
| mapping | map |
| dataclass | map by field name: fields with a default may be missing, unknown ones are ignored |

Name and type of every field are those of the classes in `requests` and `reports`. A reader
constructs these classes and the declared types of their fields, and nothing else: data of a plugin
can never run code in the worker process.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import struct
import threading
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from pyconnect_agent.channel.reports import (
    ConfigValidated,
    PluginDescribed,
    Report,
    RequestFailed,
    StateReported,
    StatsReported,
    TaskConfigs,
    TopicUsed,
)
from pyconnect_agent.channel.requests import ChildRequest, Job

EXIT_LEASE_EXPIRED = 71
"""Exit code of a child whose lease ran out."""
STACKS_SIGNAL = signal.SIGURG
"""Asks a child for its stacks; ignored by default, so harmless before the child is ready."""
STACKS_FILE = "pyconnect-stacks"
"""Name of the memory file into which a child writes its stacks at this signal."""

TASK_FOLLOWS = b"\x00"
"""The byte that comes with the descriptors of a task for a shared process."""
NUMBER = struct.Struct("<q")
"""A pid or exit code in a fate."""
LAST_WORDS_BYTES = 4000
"""The most bytes in a fate; with the exit code less than a page, which any pipe takes at once."""

VERSION = 2
FRAME_HEADER = struct.Struct(">I")
MAX_FRAME_BYTES = 1 << 28
"""The most bytes of a child's frame without header, as the worker process holds all frames."""
_BODY = FRAME_HEADER.size + 1

Message = Job | ChildRequest | Report


class ChannelError(Exception):
    """A message cannot be sent, or a frame is not a message of this version."""


def encode(message: Message) -> bytearray:
    """Return the whole frame. Raises ChannelError for a value that a message cannot hold.

    Subclasses of plain types become plain, every mapping a map. A lone surrogate, which UTF-8
    cannot encode, is written as its escape: a trace that quotes one must arrive too.
    """
    # Written in place, so that a very large message is not copied.
    frame = bytearray(_BODY)
    name = type(message).__name__
    try:
        try:
            _ENCODER.encode_into((name, message), frame, _BODY)
        except UnicodeEncodeError:
            fields = msgspec.to_builtins(message, builtin_types=(bytes,), enc_hook=_plain)
            _ENCODER.encode_into((name, _encodable(fields)), frame, _BODY)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise ChannelError(f"{name} cannot be sent: {exc}") from exc
    FRAME_HEADER.pack_into(frame, 0, len(frame) - FRAME_HEADER.size)
    frame[FRAME_HEADER.size] = VERSION
    return frame


def decode(frame: bytes | memoryview) -> Message:
    """Read a frame without its length. Raises ChannelError."""
    version = bytes(frame[:1])
    if version != bytes((VERSION,)):
        raise ChannelError(
            f"The message has version {version.hex() or 'none'}, expected {VERSION:02x}"
        )
    try:
        name, fields = _NAMED.decode(memoryview(frame)[1:])
    except _UNREADABLE as exc:
        raise ChannelError(f"The message is damaged: {exc}") from exc
    decoder = _DECODERS.get(name)
    if decoder is None:
        raise ChannelError(f"There is no message {name!r}")
    try:
        return decoder.decode(fields)
    except _UNREADABLE as exc:
        raise ChannelError(f"{name} is not valid: {exc}") from exc


def _plain(value: object) -> object:
    """Return the plain value of an instance of a subclass, without calling its own conversions."""
    match value:
        case str():
            return str.__str__(value)
        case int():
            return int.__int__(value)
        case float():
            return float.__float__(value)
        case bytes():
            return bytes(memoryview(value))
        case Mapping():
            return dict(value)
    kind = type(value)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} is not a type of any field")


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_encodable(key): _encodable(member) for key, member in value.items()}
        case list() | tuple():
            return [_encodable(member) for member in value]
        case _:
            return value


# Invalid UTF-8 is a ValueError; lengths and numbers may have any value.
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError, MemoryError)
_ENCODER = msgspec.msgpack.Encoder(enc_hook=_plain)
_NAMED = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw])
# Made before a fork, so that the processes share them.
_DECODERS: Mapping[str, msgspec.msgpack.Decoder[Message]] = {
    kind.__name__: msgspec.msgpack.Decoder(kind) for kind in get_args(Message)
}


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
        """Set before the end is reported in another way: the pipe's end then has no meaning."""

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, message: Message) -> None:
        """Send a message; raises OSError once the worker process is gone.

        Raises ChannelError for values of a wrong type and for a message that is too large; then no
        message was sent. The checks are on this side because the worker process kills a child whose
        message it cannot read.
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
        """Block for a task of a shared process, and its fate; return None when the socket ends."""
        try:
            byte, descriptors, _, _ = socket.recv_fds(self._connection, 1, 2)
        except ConnectionError:
            return None
        if not byte:
            return None
        pipe, fate = descriptors
        return Channel(socket.socket(fileno=pipe)), fate

    def end(self) -> None:
        """Let `receive` return None, here and in the worker process; this process continues."""
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
