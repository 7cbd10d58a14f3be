"""When the next token is fetched."""

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_clients.token_login import Lifetime, RefreshSettings, next_fetch_ms, retry_ms
from tests.support.cases import cases

MINUTE = 60_000
KAFKAS = RefreshSettings()
TIMES = st.integers(0, 2**45)


@cases(
    "lifetime_ms, chance, due_ms",
    (60 * MINUTE, 0.0, 48 * MINUTE),
    (60 * MINUTE, 1.0, 51 * MINUTE),
    # The buffer of five minutes before the end.
    (10 * MINUTE, 1.0, 5 * MINUTE),
    # At least a minute from now.
    (6 * MINUTE, 0.0, 1 * MINUTE),
    # Too short for both: the share alone counts.
    (100_000, 0.0, 80_000),
    (100_000, 1.0, 85_000),
)
def test_a_token_is_replaced_as_kafka_does(lifetime_ms: int, chance: float, due_ms: int) -> None:
    """A share of the lifetime, moved by the shortest period and by the buffer."""
    token = Lifetime(start_ms=0, expiry_ms=lifetime_ms)
    assert next_fetch_ms(KAFKAS, token, 0, chance) == due_ms


def test_tokens_are_fetched_with_pauses() -> None:
    """Growing and varied after failures; also for a file that is never replaced."""
    old = Lifetime(start_ms=0, expiry_ms=100_000)
    assert next_fetch_ms(KAFKAS, old, 99_000, 0.5) == 99_100
    assert next_fetch_ms(KAFKAS, old, 100_000, 0.5) == 110_000
    waits = [retry_ms(KAFKAS, failures, 0, 0.5, retriable=True) for failures in (1, 2, 3, 8, 500)]
    assert waits == [100, 200, 400, 10_000, 10_000]
    assert [retry_ms(KAFKAS, 1, 0, chance, retriable=True) for chance in (0, 1)] == [80, 120]
    assert retry_ms(KAFKAS, 1, 5, 0.5, retriable=False) == 10_005


@given(TIMES, TIMES, TIMES, st.floats(0, 1))
def test_a_fetch_is_never_due_in_the_past(start: int, expiry: int, now: int, chance: float) -> None:
    """The thread pauses between two fetches, for any clock of the server."""
    token = Lifetime(start_ms=start, expiry_ms=expiry)
    assert next_fetch_ms(KAFKAS, token, now, chance) > now


@given(st.integers(1, 200 * MINUTE), st.floats(0, 1))
def test_a_fresh_token_is_replaced_before_it_expires(lifetime_ms: int, chance: float) -> None:
    """With lifetimes of a second and more."""
    lifetime_ms += 1_000
    token = Lifetime(start_ms=0, expiry_ms=lifetime_ms)
    assert next_fetch_ms(KAFKAS, token, 0, chance) < lifetime_ms
