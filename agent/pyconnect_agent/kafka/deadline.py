"""One time budget for an operation of several steps.

Layer: kafka. Each step gets the `remaining` time; the clock is the monotonic one.
"""

from __future__ import annotations

import time


class Deadline:
    """The moment `timeout_ms` after its construction."""

    __slots__ = ("_end_s",)

    def __init__(self, timeout_ms: float) -> None:
        self._end_s = time.monotonic() + timeout_ms / 1000

    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end_s - time.monotonic())

    def remaining_ms(self) -> int:
        """Milliseconds left, never negative."""
        return int(self.remaining_s() * 1000)

    def expired(self) -> bool:
        return self.remaining_s() <= 0
