"""The worker process's end of a pipe, with the test at the other end."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pyconnect_agent.channel import FRAME_HEADER, MAX_FRAME_BYTES
from pyconnect_agent.children.child import READ_BYTES, ChildPipe
from tests.support.eventually import eventually_async

pytestmark = pytest.mark.wire


class Ends:
    """Both ends of a pipe, and the frames that arrived."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.frames: list[bytes] = []
        self.refused: list[int] = []
        self.pipe = ChildPipe(ours, self.frames.append, self.refused.append)

    async def frames_are(self, *frames: bytes) -> None:
        await eventually_async(
            lambda: self.frames == list(frames), describe=lambda: [len(f) for f in self.frames]
        )


@asynccontextmanager
async def both_ends() -> AsyncIterator[Ends]:
    ends = Ends()
    try:
        yield ends
    finally:
        ends.pipe.close()
        ends.theirs.close()


def framed(body: bytes) -> bytes:
    return FRAME_HEADER.pack(len(body)) + body


async def test_the_rest_is_read_after_any_end() -> None:
    """After a reset or a failed write, the frames that arrived before are read."""
    async with both_ends() as ends:
        ends.theirs.sendall(framed(b"one") + framed(b"two"))
        ends.theirs.close()
        ends.pipe.write(b"too late")
        ends.pipe.write(b"later still")
        assert ends.pipe.unsent_bytes == 0
        await ends.pipe.ended
        assert ends.frames == [b"one", b"two"]
    async with both_ends() as ends:
        ends.pipe.write(b"never read")
        ends.theirs.sendall(framed(b"one"))
        ends.theirs.close()
        await ends.pipe.ended
        assert ends.frames == [b"one"]


async def test_frames_are_whole_however_they_come() -> None:
    """Frames stay whole in pieces, several at once, larger than one read, or empty."""
    async with both_ends() as ends:
        for byte in framed(b"slow"):
            ends.theirs.sendall(bytes((byte,)))
            await asyncio.sleep(0)
        large = bytes(range(256)) * (READ_BYTES // 64)
        together = framed(b"") + framed(large) + framed(b"end")
        await asyncio.to_thread(ends.theirs.sendall, together)
        await ends.frames_are(b"slow", b"", large, b"end")


async def test_unread_data_waits_in_order() -> None:
    """Unsent data waits in order without blocking a call, and its size is known."""
    async with both_ends() as ends:
        large = bytes(range(256)) * 40_000
        ends.pipe.write(large)
        assert 0 < ends.pipe.unsent_bytes < len(large)
        ends.pipe.write(b"end")
        ends.theirs.sendall(framed(b"meanwhile"))
        await ends.frames_are(b"meanwhile")
        received = await asyncio.to_thread(_receive, ends.theirs, len(large) + 3)
        assert received == large + b"end"
        assert ends.pipe.unsent_bytes == 0
        ends.pipe.write(b"!")
        assert ends.theirs.recv(1) == b"!"


async def test_waiting_data_is_dropped_when_the_other_side_has_gone() -> None:
    """Unsent data is dropped when the other end is closed."""
    async with both_ends() as ends:
        ends.pipe.write(bytes(10_000_000))
        assert ends.pipe.unsent_bytes
        ends.theirs.close()
        await eventually_async(lambda: ends.pipe.unsent_bytes == 0)


async def test_the_rest_is_read_at_once_although_the_pipe_is_held_open() -> None:
    """Arrived frames are read at once even if another process holds the pipe open."""
    async with both_ends() as ends:
        ends.theirs.sendall(framed(b"one") + framed(b"two")[:5])
        ends.pipe.read_rest()
        assert ends.frames == [b"one"]
        assert not ends.pipe.ended.done()


async def test_a_taker_can_end_the_reading() -> None:
    """After a callback ends the reading, frames that have arrived are not taken."""
    ours, theirs = socket.socketpair()
    taken: list[bytes] = []

    def take(frame: bytes) -> None:
        taken.append(frame)
        pipe.end_reading()

    pipe = ChildPipe(ours, take, pytest.fail)
    with theirs:
        theirs.sendall(framed(b"one") + framed(b"two"))
        await pipe.ended
        pipe.read_rest()
    pipe.close()
    assert taken == [b"one"]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size and (part := connection.recv(size - len(received))):
        received += part
    return bytes(received)


async def test_a_frame_that_is_too_large_is_not_received() -> None:
    """A frame above the limit ends the pipe, by its header alone; earlier frames are taken."""
    async with both_ends() as ends:
        ends.theirs.sendall(framed(b"one") + FRAME_HEADER.pack(MAX_FRAME_BYTES + 1) + b"xxx")
        await ends.pipe.ended
        assert (ends.frames, ends.refused) == ([b"one"], [MAX_FRAME_BYTES + 1])
