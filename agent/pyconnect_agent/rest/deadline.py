"""One time budget for all the steps of a request.

Layer: rest.
"""

from __future__ import annotations

from collections.abc import Callable


class RequestBudget:
    """`timeout_ms` from now; `now_s` is a monotonic clock in seconds."""

    __slots__ = ("_at_s", "_now_s")

    def __init__(self, timeout_ms: int, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._at_s = now_s() + timeout_ms / 1000

    def remaining_ms(self) -> int:
        """Return what is left, at least 1 ms: waiting for nothing would skip the answer's text."""
        return max(1, round((self._at_s - self._now_s()) * 1000))
