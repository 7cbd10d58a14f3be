"""Tests that are coroutines."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

Arguments = ParamSpec("Arguments")
LIMIT_S = 240.0


def on_event_loop(
    test: Callable[Arguments, Awaitable[None]], limit_s: float = LIMIT_S
) -> Callable[Arguments, None]:
    """Run a test on an event loop of its own; TimeoutError after `limit_s` seconds."""

    async def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async with asyncio.timeout(limit_s):
            await test(*args, **kwargs)

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        asyncio.run(limited(*args, **kwargs))

    return run
