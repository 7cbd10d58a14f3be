"""The worker's clock when somebody sets the machine's."""

from __future__ import annotations

import time

import pytest

from pyconnect_agent.herder.clock import WorkerClock


@pytest.mark.parametrize("jump_s", [-86_400.0, -1.0, 3_600.0])
def test_a_jump_of_the_wall_clock_moves_no_deadline(
    monkeypatch: pytest.MonkeyPatch, jump_s: float
) -> None:
    """Only the monotonic clock counts after the start: no timer fires early, late or twice."""
    clock = WorkerClock()
    before_ms = clock.now_ms()
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + jump_s)
    assert 0 <= clock.now_ms() - before_ms < 10_000
