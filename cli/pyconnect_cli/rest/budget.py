"""Time: the limits of a run and of one request as values, and the budget that a run spends.

A run's budget covers all its requests and waits. Each request has its own limit, so that a worker
that accepts a connection and never answers takes one request's time and not the run's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_RUN_S = 120.0
DEFAULT_REQUEST_S = 10.0
LONG_REQUEST_S = 60.0
CONNECT_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits of a run and of each of its requests, in seconds.

    `long_request_s` is for requests that a worker works on before it answers: it runs a connector's
    own code (validation, a new configuration, a change of offsets), or asks its brokers.
    """

    run_s: float = DEFAULT_RUN_S
    request_s: float = DEFAULT_REQUEST_S
    long_request_s: float = LONG_REQUEST_S


@dataclass(frozen=True, slots=True)
class Allowance:
    """The time for one attempt of a request, and the option that sets it."""

    seconds: float
    option: str


class Budget:
    """The time that is left for a run. Shared by all its exchanges and threads."""

    def __init__(self, run_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._run_s = run_s
        self._clock = clock
        self._end = clock() + run_s
        self._last_end: float | None = None

    def remaining_s(self) -> float:
        """Return the time that is left; never negative."""
        end = self._end if self._last_end is None else min(self._end, self._last_end)
        return max(0.0, end - self._clock())

    @property
    def spent(self) -> bool:
        """Whether the time is over, so that no request may start."""
        return self.remaining_s() <= 0

    def renew(self, run_s: float | None = None) -> None:
        """Start the budget again: a person was asked, or the command waited on purpose.

        `run_s` None: as long as at first.
        """
        self._end = self._clock() + (self._run_s if run_s is None else run_s)

    def end_within(self, seconds: float) -> None:
        """Set a moment that no renewal moves: the deadline of the whole run."""
        self._last_end = self._clock() + seconds

    def attempt(self, limit_s: float, attempts: int = 1) -> Allowance:
        """Return the time of the next of `attempts`, which leaves each other attempt its share."""
        share = self.remaining_s() / max(attempts, 1)
        if share < limit_s:
            return Allowance(share, "--timeout")
        return Allowance(limit_s, "--request-timeout")
