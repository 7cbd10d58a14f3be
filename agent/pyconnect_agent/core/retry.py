"""When to try a record's operation again (Kafka: RetryWithToleranceOperator, KIP-298).

The policy says how long to wait; `tasks/records.py` waits and tries.
"""

from dataclasses import dataclass

FIRST_DELAY_MS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """`timeout_ms`: `errors.retry.timeout`; 0 means no retry, -1 no limit.

    `delay_max_ms`: `errors.retry.delay.max.ms`; a longer delay is replaced by a random one.
    """

    timeout_ms: int = 0
    delay_max_ms: int = 60_000

    def delay_ms(self, attempt: int, elapsed_ms: int, random_fraction: float) -> int | None:
        """Return the delay after failed attempt number `attempt` (from 1), None to give up.

        `elapsed_ms`: since the first attempt began; `random_fraction` in [0, 1).
        """
        if self.timeout_ms >= 0 and elapsed_ms >= self.timeout_ms:
            return None
        # 40 is enough: the shifted delay is above every limit, and shifts would grow without bound.
        delay = FIRST_DELAY_MS << min(attempt - 1, 40)
        if delay > self.delay_max_ms:
            delay = int(random_fraction * self.delay_max_ms)
        if self.timeout_ms >= 0:
            delay = min(delay, self.timeout_ms - elapsed_ms)
        return delay
