"""Wait for a condition with a deadline, instead of sleeping."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

Answer = TypeVar("Answer")
Description = str | Callable[[], object] | None
INTERVAL_S = 0.02
LONGEST_INTERVAL_S = 0.1
LONGEST_AFTER_LONG_CALL_S = 0.5
DEADLINE_S = 150.0
"""The limit of a wait; only an overloaded machine or a failure takes so long."""


def eventually(
    predicate: Callable[[], Answer], timeout_s: float = DEADLINE_S, describe: Description = None
) -> Answer:
    """Return the first true answer of `predicate`; fail when none comes within `timeout_s`.

    An AssertionError of the predicate counts as no. `describe` names the awaited condition: a text,
    or a callable whose answer is shown at the end (the state that was reached instead). The
    intervals between calls grow with the time and with the length of a call, because a predicate
    that asks a server takes processor time from it.
    """
    started = time.monotonic()
    while True:
        called = time.monotonic()
        failure: AssertionError | None = None
        try:
            if answer := predicate():
                return answer
        except AssertionError as error:
            failure = error
        now = time.monotonic()
        passed = now - started
        if passed >= timeout_s:
            raise AssertionError(_message(predicate, timeout_s, describe)) from failure
        time.sleep(_interval(passed, now - called))


async def eventually_async(
    predicate: Callable[[], Answer | Awaitable[Answer]],
    timeout_s: float = DEADLINE_S,
    describe: Description = None,
) -> Answer:
    """Do as `eventually` without blocking the event loop; `predicate` may be a coroutine."""
    started = time.monotonic()
    while True:
        called = time.monotonic()
        failure: AssertionError | None = None
        try:
            answer = predicate()
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer:
                return answer
        except AssertionError as error:
            failure = error
        now = time.monotonic()
        passed = now - started
        if passed >= timeout_s:
            raise AssertionError(_message(predicate, timeout_s, describe)) from failure
        await asyncio.sleep(_interval(passed, now - called))


def _interval(passed_s: float, call_s: float) -> float:
    """Return the time until the next call: a twentieth of the time so far, or that of the call."""
    interval_s = min(LONGEST_INTERVAL_S, max(INTERVAL_S, passed_s / 20))
    return min(LONGEST_AFTER_LONG_CALL_S, max(interval_s, call_s))


def _message(predicate: object, timeout_s: float, describe: Description) -> str:
    awaited = describe() if callable(describe) else describe
    name = getattr(predicate, "__qualname__", repr(predicate))
    return f"not within {timeout_s:g} s: {awaited if awaited is not None else name}"
