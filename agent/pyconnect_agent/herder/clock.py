"""The worker's clock: epoch milliseconds that never go back.

Layer: herder. The wall clock is read once, and then only the monotonic clock, so a change of the
system time does not affect deadlines and back-offs.
"""

from __future__ import annotations

import time


class WorkerClock:
    """Thread-safe."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((time.monotonic() + self._offset_s) * 1000)
