"""Tests that are coroutines."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import ParamSpec

Arguments = ParamSpec("Arguments")
LIMIT_S = 240.0


def on_event_loop(
    limit_s: float,
) -> Callable[[Callable[Arguments, Awaitable[None]]], Callable[Arguments, None]]:
    """Run a test on an event loop of its own; TimeoutError after `limit_s` seconds."""

    def decorated(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
        @functools.wraps(test)
        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            async def limited() -> None:
                async with asyncio.timeout(limit_s):
                    await test(*args, **kwargs)

            asyncio.run(limited())

        return run

    return decorated


asynchronous = on_event_loop(LIMIT_S)
"""Runs a test on an event loop of its own, for at most LIMIT_S seconds."""
