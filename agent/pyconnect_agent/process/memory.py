"""Limits on the freed memory that the C library's allocator keeps.

Composition root. Python's blocks beyond 512 bytes and all of librdkafka's come from this allocator.
The functions work with glibc; on other systems they do nothing. Any thread.
"""

from __future__ import annotations

import asyncio
import ctypes

_M_ARENA_MAX = -8
_EVERY_S = 10.0


def use_one_heap() -> None:
    """Let all threads share one heap, instead of up to eight per core that are each mostly empty.

    Call it before the first thread, in a process whose threads allocate rarely.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def give_back() -> None:
    """Return free memory to the system, also free pages between used ones; takes milliseconds."""
    _call("malloc_trim", 0)


async def keep_low() -> None:
    """Return free memory at intervals until cancelled: large answers leave much of it."""
    while True:
        await asyncio.sleep(_EVERY_S)
        await asyncio.to_thread(give_back)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
