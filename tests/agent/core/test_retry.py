"""Delays between attempts."""

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.retry import RetryPolicy


def test_delays_double_from_300_ms_and_are_random_above_the_maximum() -> None:
    """Delays double from 300 ms, are random above the maximum, and are None at timeout 0."""
    policy = RetryPolicy(timeout_ms=-1)
    assert [policy.delay_ms(n, 0, 0.5) for n in (1, 2, 3, 4)] == [300, 600, 1200, 2400]
    policy = RetryPolicy(timeout_ms=-1, delay_max_ms=1_000)
    assert policy.delay_ms(3, 0, 0.25) == 250
    assert policy.delay_ms(10_000, 0, 0.999) == 999
    assert RetryPolicy().delay_ms(1, 0, 0.5) is None


@given(st.integers(1, 100), st.integers(0, 2_000), st.integers(0, 1_000), st.floats(0, 0.999))
def test_a_delay_never_passes_the_deadline(
    attempt: int, elapsed_ms: int, timeout_ms: int, fraction: float
) -> None:
    """A delay ends within the timeout, or is None."""
    delay_ms = RetryPolicy(timeout_ms=timeout_ms).delay_ms(attempt, elapsed_ms, fraction)
    if elapsed_ms >= timeout_ms:
        assert delay_ms is None
    else:
        assert delay_ms is not None
        assert elapsed_ms + delay_ms <= timeout_ms
