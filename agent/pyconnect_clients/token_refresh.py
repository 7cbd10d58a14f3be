"""When a login's next token is fetched. Pure.

Corresponds to ``ExpiringCredentialRefreshingLogin`` of Kafka for a token that is held, and to its
``Retry`` for a fetch that failed. All times are milliseconds; `chance` is a random number from 0
to 1.
"""

from __future__ import annotations

from dataclasses import dataclass

_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshSettings:
    """The properties `sasl.login.refresh.*` and `sasl.login.retry.*`; defaults are Kafka's."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    min_period_ms: int = 60_000
    buffer_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """Of a token, since the epoch."""

    start_ms: int
    expiry_ms: int


def next_fetch_ms(settings: RefreshSettings, token: Lifetime, now_ms: int, chance: float) -> int:
    """Return when to replace a token that was fetched now.

    The window is a share of the lifetime. `min_period_ms` and `buffer_ms` move it, unless the rest
    of the lifetime is shorter than both together. A token that has expired already counts as a
    failed fetch: the longest backoff passes.
    """
    if token.expiry_ms <= now_ms:
        return now_ms + settings.retry_backoff_max_ms
    start_ms = min(token.start_ms, now_ms)
    share = settings.window_factor + settings.window_jitter * chance
    wanted = start_ms + int((token.expiry_ms - start_ms) * share)
    if token.expiry_ms - now_ms >= settings.min_period_ms + settings.buffer_ms:
        earliest = now_ms + settings.min_period_ms
        latest = token.expiry_ms - settings.buffer_ms
        return max(min(wanted, latest), earliest)
    # A token from a file, or of a clock that is ahead, may be past its window already.
    return max(wanted, now_ms + settings.retry_backoff_ms)


def retry_ms(
    settings: RefreshSettings, failures: int, now_ms: int, chance: float, *, retriable: bool
) -> int:
    """Return when to fetch again after `failures` in a row, of which this is the last.

    The wait doubles, varied by a fifth. A refusal is repeated at the longest wait: the same
    credentials rarely become right, and each attempt may count towards locking them out.
    """
    longest = max(settings.retry_backoff_max_ms, settings.retry_backoff_ms)
    if not retriable:
        return now_ms + longest
    wait = min(settings.retry_backoff_ms * 2 ** min(failures - 1, _MOST_DOUBLINGS), longest)
    return now_ms + max(1, int(wait * (0.8 + 0.4 * chance)))
