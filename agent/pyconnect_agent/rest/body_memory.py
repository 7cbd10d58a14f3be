"""The memory that request bodies take together, and the thread that reads their JSON.

Layer: rest. Apache's only limit is its heap. Values made of JSON may take thirty times its bytes,
so one body at a time is read; and Python's JSON reader lets no other thread run, so a body is never
read on the event loop, which renews leases. Lives on the event loop.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pyconnect_agent.core.errors import ServiceUnavailableError

ALL_BODIES_BYTES = 128 * 1024 * 1024
SMALL_BYTES = 16 * 1024
"""A smaller body is read in less time than a thread takes to begin."""

Bound = TypeVar("Bound")


class BodyMemory:
    """Counts the bytes of all bodies of requests under way."""

    def __init__(self, limit_bytes: int = ALL_BODIES_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._reading = asyncio.Lock()

    @contextmanager
    def room(self) -> Iterator[BodyRoom]:
        """Give the room for the body of one request, until the request is answered."""
        room = BodyRoom(self)
        try:
            yield room
        finally:
            self._held_bytes -= room.held_bytes

    def take(self, size: int) -> None:
        """Raise ServiceUnavailableError if the bodies would take more than the limit."""
        if self._held_bytes + size > self._limit_bytes:
            raise ServiceUnavailableError(
                f"The bodies of the requests to this worker take more than {self._limit_bytes}"
                " bytes together. Send the request again later."
            )
        self._held_bytes += size

    async def read(self, bind: Callable[[bytes], Bound], body: bytes) -> Bound:
        """Return what `bind` makes of a body, and raise what it raises."""
        if len(body) <= SMALL_BYTES:
            return bind(body)
        async with self._reading:
            return await asyncio.to_thread(_bound, bind, body)


def _bound(bind: Callable[[bytes], Bound], body: bytes) -> Bound:
    # To collect garbage while millions of values are made takes four times as long as to make them,
    # and no other thread runs meanwhile. One body at a time is read, so no other call is under way.
    gc.disable()
    try:
        return bind(body)
    finally:
        gc.enable()


class BodyRoom:
    """The room of one request's body."""

    def __init__(self, memory: BodyMemory) -> None:
        self.memory = memory
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """Count further bytes. Raises ServiceUnavailableError."""
        self.memory.take(size)
        self.held_bytes += size
