"""Averages, extremes, rates and shares over sample windows, as Kafka's clients compute them."""

import math

import pytest

from pyconnect_agent.core.ids import State
from pyconnect_agent.core.metric_values import Outcomes, Sampled, Sampling, StateTimes
from tests.support.cases import cases

TWO = Sampling(count=2, window_ms=1_000)


def test_statistics_without_records_are_nan() -> None:
    """Averages and extremes are NaN, as in Kafka, and a rate is 0."""
    empty = Sampled(TWO)
    assert math.isnan(empty.average(5))
    assert math.isnan(empty.maximum(5))
    assert math.isnan(empty.minimum(5))
    assert (empty.rate(5), empty.total) == (0.0, 0.0)


def test_values_leave_with_their_window_and_windows_are_few() -> None:
    """Values count for the time of all windows; the total keeps them."""
    sampled = Sampled(TWO)
    for now_ms, value in ((0, 10), (500, 20), (1_200, 60)):
        sampled.record(value, now_ms)
    assert (sampled.minimum(1_300), sampled.average(1_300), sampled.maximum(1_300)) == (10, 30, 60)
    assert (sampled.minimum(2_100), sampled.average(2_100)) == (60, 60)
    assert math.isnan(sampled.maximum(3_300))
    assert sampled.total == 90
    for count in (1, 3):
        sampled = Sampled(Sampling(count=count, window_ms=10))
        for now_ms in range(0, 1_000, 10):
            sampled.record(1, now_ms)
        assert len(sampled._samples) == count


@cases("now_ms, rate", (10, 99.0099), (500, 66.6667), (1_500, 66.6667))
def test_a_rate_never_covers_less_than_all_windows_but_one(now_ms: int, rate: float) -> None:
    """The time of a rate has a minimum, so that a first burst is not a huge rate."""
    sampled = Sampled(TWO)
    sampled.record(100, 0)
    assert sampled.rate(now_ms) == pytest.approx(rate, abs=0.001)


def test_shares_of_outcomes_and_of_time() -> None:
    """Shares are 0 before the first outcome or state; the present state counts until now."""
    outcomes = Outcomes(TWO)
    assert (outcomes.success_share(0), outcomes.failure_share(0)) == (0.0, 0.0)
    for success in (True, True, False, True):
        outcomes.record(success=success, now_ms=0)
    assert (outcomes.success_share(1), outcomes.failure_share(1)) == (0.75, 0.25)
    times = StateTimes()
    assert times.share(State.RUNNING, 0) == 0.0
    for now_ms, state in ((100, State.RUNNING), (400, State.PAUSED), (500, State.RUNNING)):
        times.changed(state, now_ms)
    assert times.share(State.RUNNING, 1_100) == pytest.approx(0.9)
    assert times.share(State.PAUSED, 1_100) == pytest.approx(0.1)
