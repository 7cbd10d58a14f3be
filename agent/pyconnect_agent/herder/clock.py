"""The worker's clock: epoch milliseconds that never go back.

Layer: herder. The wall clock is read once; after that only the monotonic clock counts, so deadlines
and back-offs hold when the system time is set.
"""

from __future__ import annotations

import time


class WorkerClock:
    """Thread-safe."""

    def __init__(self) -> None:
        self._offset_s = time.time() - time.monotonic()

    def now_ms(self) -> int:
        return int((time.monotonic() + self._offset_s) * 1000)
