"""When failed work is restarted, and when it stays FAILED."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pyconnect_agent.core.restart_policy import (
    NO_RESTARTS,
    NoRestart,
    RestartMode,
    RestartPolicy,
    Restarts,
    after_failure,
    after_restart,
    after_start,
    remark,
    restarts_json,
    settled,
)
from tests.support.cases import cases

POLICY = RestartPolicy(
    mode=RestartMode.ON_FAILURE,
    backoff_ms=1_000,
    backoff_max_ms=8_000,
    max_attempts=3,
    window_ms=100_000,
    stable_ms=20_000,
)
MIDDLE = 0.5
"""The jitter that leaves a delay unchanged."""


def failed(history: Restarts, now_ms: int, policy: RestartPolicy = POLICY) -> Restarts:
    return after_failure(history, policy, now_ms, jitter=MIDDLE)


def test_the_wait_doubles_with_each_failure_in_a_row_up_to_the_longest() -> None:
    """The delay doubles from 1 s to the maximum of 8 s."""
    waits = [POLICY.delay_ms(failure, MIDDLE) for failure in (1, 2, 3, 4, 5, 1_000)]
    assert waits == [1_000, 2_000, 4_000, 8_000, 8_000, 8_000]


@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True))
def test_jitter_moves_the_wait_by_a_fifth_up_to_the_longest(failure: int, jitter: float) -> None:
    """Tasks that failed together restart at different times, within the operator's maximum."""
    planned = min(POLICY.backoff_ms << (failure - 1), POLICY.backoff_max_ms)
    assert planned * 0.79 <= POLICY.delay_ms(failure, jitter) <= POLICY.backoff_max_ms
    assert POLICY.delay_ms(failure, jitter) <= planned * 1.2


def test_attempts_count_within_the_window_only() -> None:
    """After three restarts in the window there is no other; older ones do not count."""
    history, now_ms = NO_RESTARTS, 0
    for _ in range(3):
        history = failed(history, now_ms)
        assert history.next_ms is not None
        now_ms = history.next_ms
        history = after_restart(history, now_ms)
    history = failed(history, now_ms)
    assert (history.next_ms, history.ended) == (None, NoRestart.LIMIT)
    assert "3 restarts within 100 s are the limit" in remark(history, POLICY)
    history = Restarts(attempts=(0, 10_000, 20_000), failures=3)
    assert failed(history, 50_000).ended is NoRestart.LIMIT
    later = failed(history, 110_000)
    assert later.next_ms is not None
    assert later.attempts == (20_000,)


def test_only_a_stable_time_makes_up_for_failures() -> None:
    """After a stable time a failure counts as the first; before, the delay goes on growing."""
    history = after_restart(failed(NO_RESTARTS, 0), 1_000)
    running = after_start(history, 2_000)
    assert settled(running, POLICY, 21_999) == running
    fresh = failed(running, 22_000)
    assert (fresh.attempts, fresh.failures, fresh.total) == ((), 1, 1)
    assert fresh.next_ms == 22_000 + POLICY.backoff_ms
    history = after_start(after_restart(failed(NO_RESTARTS, 0), 1_000), 1_500)
    again = failed(history, 2_000)
    assert (again.failures, again.next_ms) == (2, 4_000)


@cases("reason", NoRestart.PERMANENT, NoRestart.KILLED)
def test_failures_that_a_restart_does_not_cure_are_not_restarted(reason: NoRestart) -> None:
    """A permanent failure and an operator's kill lead to no restart."""
    history = after_failure(NO_RESTARTS, POLICY, 0, jitter=MIDDLE, no_restart=reason)
    assert (history.next_ms, history.ended) == (None, reason)


def test_a_remark_names_the_time_and_the_attempt() -> None:
    """The remark follows the trace; at `never` there is none, as at Apache's worker."""
    policy = replace(POLICY, mode=RestartMode.NEVER)
    history = failed(NO_RESTARTS, 0, policy)
    assert (history.next_ms, remark(history, policy)) == (None, "")
    now_ms = 1_767_225_600_000
    history = failed(Restarts(attempts=(now_ms - 1,), failures=1), now_ms)
    assert remark(history, POLICY) == (
        "This is restarted automatically at 2026-01-01T00:00:02Z, attempt 2 of at most 3 within"
        " 100 s."
    )


@cases("agents_only, mode", (True, RestartMode.ON_FAILURE), (False, RestartMode.NEVER))
def test_auto_depends_on_the_group(agents_only: bool, mode: RestartMode) -> None:
    """In a group with Java workers `auto` never restarts, so that all workers behave the same."""
    assert RestartPolicy().within(agents_only=agents_only).mode is mode
    assert POLICY.within(agents_only=agents_only).mode is RestartMode.ON_FAILURE


def test_shown_attempts_are_reset_after_a_stable_time() -> None:
    """Attempts before a stable time are not shown, but the total keeps them."""
    running = Restarts(attempts=(0,), failures=1, running_since_ms=1_000, total=1)
    shown = restarts_json(running, POLICY, 90_000)
    assert (shown["attempts"], shown["total"], shown["policy"]) == (0, 1, "on-failure")
