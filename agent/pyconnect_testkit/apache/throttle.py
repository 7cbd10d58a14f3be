"""Holds a task to a number of records a second.

Layer: builtin. Corresponds to `ThroughputThrottler`: debts of sleep below 2 ms are carried on.
"""

from __future__ import annotations

import time

from pyconnect_api import StopSignal

MINIMUM_SLEEP_S = 0.002


class Throttle:
    """Below 0 records a second it never waits, with 0 until the task is to end."""

    def __init__(self, per_second: float, stop_requested: StopSignal) -> None:
        self._per_second = per_second
        self._stop_requested = stop_requested
        self._started = time.monotonic()
        self._debt_s = 0.0

    def wait(self, sent: int) -> None:
        """Wait when more than allowed was sent since the start; `sent` records so far."""
        if self._per_second < 0:
            return
        elapsed_s = time.monotonic() - self._started
        if self._per_second == 0 or (elapsed_s > 0 and sent / elapsed_s > self._per_second):
            self.pause()

    def pause(self) -> None:
        """Wait as long as one record takes, whatever was sent; not at all without a limit."""
        if self._per_second == 0:
            self._stop_requested.wait()
        elif self._per_second > 0:
            self._debt_s += 1 / self._per_second
            if self._debt_s >= MINIMUM_SLEEP_S:
                self._stop_requested.wait(self._debt_s)
                self._debt_s = 0.0
