"""Limits on the freed memory that the C library's allocator keeps.

Composition root. Python takes blocks beyond 512 bytes of it, and librdkafka all that it needs. Both
functions are about glibc; on other systems they do nothing. Any thread.
"""

from __future__ import annotations

import asyncio
import ctypes

_M_ARENA_MAX = -8
_EVERY_S = 10.0


def use_one_heap() -> None:
    """Let all threads share one heap, instead of up to eight per core that are each mostly empty.

    Only of use before there are threads, and where they do not allocate all the time.
    """
    _call("mallopt", _M_ARENA_MAX, 1)


def give_back() -> None:
    """Give the system back what is free, also in between what is in use; takes milliseconds."""
    _call("malloc_trim", 0)


async def keep_low() -> None:
    """Give back now and then, until cancelled: very large answers leave much behind."""
    while True:
        await asyncio.sleep(_EVERY_S)
        await asyncio.to_thread(give_back)


def _call(name: str, *arguments: int) -> None:
    function = getattr(ctypes.CDLL(None), name, None)
    if function is not None:
        function(*arguments)
