"""When failed work is restarted without an operator.

No Kafka counterpart: Apache's worker leaves a FAILED task FAILED. A policy and a history are
values; `after_failure` decides whether and when the worker tries again. A failure that a restart
does not cure (a configuration error, a missing authorization) leads to no restart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any
from zlib import crc32

SPREAD = 0.2
"""The largest share of a delay that jitter adds or takes away."""


class RestartMode(Enum):
    """`agent.restart.policy`. AUTO: on-failure, but never beside Java workers."""

    AUTO = "auto"
    NEVER = "never"
    ON_FAILURE = "on-failure"


class NoRestart(Enum):
    """Why failed work is not restarted.

    POLICY: the policy is `never`. PERMANENT: a wrong setting or a missing right. KILLED: by a user.
    LIMIT: too many attempts.
    """

    POLICY = "policy"
    PERMANENT = "permanent"
    KILLED = "killed"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """`agent.restart.*` of a worker or a connector; times in ms."""

    mode: RestartMode = RestartMode.AUTO
    backoff_ms: int = 10_000
    backoff_max_ms: int = 600_000
    max_attempts: int = 50
    window_ms: int = 86_400_000
    stable_ms: int = 600_000

    def delay_ms(self, failure: int, jitter: float) -> int:
        """Return the wait after failure number `failure` in a row, from 1.

        `jitter` in [0, 1); the wait is never longer than `backoff_max_ms`.
        """
        # 40 is enough: the shifted delay is above every possible limit.
        delay_ms = min(self.backoff_ms << min(failure - 1, 40), self.backoff_max_ms)
        spread = int(delay_ms * (1 - SPREAD + 2 * SPREAD * jitter))
        return min(spread, self.backoff_max_ms)

    def within(self, *, agents_only: bool) -> RestartPolicy:
        """Return the policy with AUTO replaced: on-failure in a group of agents, else never."""
        if self.mode is not RestartMode.AUTO:
            return self
        return replace(self, mode=RestartMode.ON_FAILURE if agents_only else RestartMode.NEVER)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The restarts of one connector instance or task since its worker got it; epoch ms.

    `attempts`: the times of restarts, oldest first, since it was last stable and within the window.
    `failures`: the number in a row. `next_ms`: when the next restart is due. `ended`: why none is
    due after a failure. `running_since_ms`: None unless it runs. `total` is never reset.
    `trace`: of the last failure.
    """

    attempts: tuple[int, ...] = ()
    failures: int = 0
    next_ms: int | None = None
    ended: NoRestart | None = None
    running_since_ms: int | None = None
    total: int = 0
    trace: str | None = None


NO_RESTARTS = Restarts()


def after_failure(
    history: Restarts,
    policy: RestartPolicy,
    now_ms: int,
    *,
    jitter: float,
    no_restart: NoRestart | None = None,
) -> Restarts:
    """Return the history with the next restart, or with the reason against one.

    `no_restart`: the reason that the failure itself gives.
    """
    known = settled(history, policy, now_ms)
    attempts = tuple(at_ms for at_ms in known.attempts if now_ms - at_ms < policy.window_ms)
    failed = replace(
        known,
        attempts=attempts,
        failures=known.failures + 1,
        next_ms=None,
        ended=None,
        running_since_ms=None,
    )
    if policy.mode is not RestartMode.ON_FAILURE:
        return replace(failed, ended=NoRestart.POLICY)
    if no_restart is not None:
        return replace(failed, ended=no_restart)
    if len(attempts) >= policy.max_attempts:
        return replace(failed, ended=NoRestart.LIMIT)
    return replace(failed, next_ms=now_ms + policy.delay_ms(failed.failures, jitter))


def after_restart(history: Restarts, now_ms: int) -> Restarts:
    return replace(
        history, attempts=(*history.attempts, now_ms), next_ms=None, total=history.total + 1
    )


def after_start(history: Restarts, now_ms: int) -> Restarts:
    """Return the history of work that runs, or is paused as it should be."""
    since_ms = now_ms if history.running_since_ms is None else history.running_since_ms
    return replace(history, next_ms=None, ended=None, running_since_ms=since_ms)


def settled(history: Restarts, policy: RestartPolicy, now_ms: int) -> Restarts:
    """Return the history; after a stable time, without the failures before it."""
    since_ms = history.running_since_ms
    if since_ms is None or now_ms - since_ms < policy.stable_ms:
        return history
    return Restarts(running_since_ms=since_ms, total=history.total)


def jitter_of(worker_id: str, item: str, attempt: int) -> float:
    """Return a fraction in [0, 1) that differs between workers, tasks and attempts.

    It spreads the restarts of work that failed at the same moment.
    """
    return crc32(f"{worker_id}/{item}/{attempt}".encode()) / 2**32


def remark(history: Restarts, policy: RestartPolicy) -> str:
    """Return the sentences to append to a trace; empty when the policy is `never`."""
    match history.ended:
        case NoRestart.POLICY | NoRestart.KILLED:
            return ""
        case NoRestart.PERMANENT:
            return (
                "This is not restarted automatically: a configuration error or a missing"
                " authorization has to be corrected first."
            )
        case NoRestart.LIMIT:
            return (
                f"This is not restarted automatically any more: {len(history.attempts)} restarts"
                f" within {_time(policy.window_ms)} are the limit (agent.restart.max.attempts)."
            )
        case _:
            pass
    if history.next_ms is None:
        return ""
    due = datetime.fromtimestamp(history.next_ms / 1000, UTC).isoformat(timespec="seconds")
    return (
        f"This is restarted automatically at {due.replace('+00:00', 'Z')}, attempt"
        f" {len(history.attempts) + 1} of at most {policy.max_attempts} within"
        f" {_time(policy.window_ms)}."
    )


def _time(ms: int) -> str:
    """Return the time in the largest unit that divides it."""
    units = (("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1))
    return next(f"{ms // size} {unit}" for unit, size in units if ms % size == 0)


def restarts_json(history: Restarts, policy: RestartPolicy, now_ms: int) -> dict[str, Any]:
    """Return the document of the admin interface; `policy` is not AUTO."""
    shown = settled(history, policy, now_ms)
    return {
        "policy": policy.mode.value,
        "attempts": len(shown.attempts),
        "max_attempts": policy.max_attempts,
        "total": shown.total,
        "next_ms": shown.next_ms,
        "ended": None if shown.ended is None else shown.ended.value,
    }


def restart_policy(config: Mapping[str, Any], defaults: RestartPolicy) -> RestartPolicy:
    """Return `defaults` with the given, parsed `agent.restart.*` keys over them."""
    changes: dict[str, Any] = {}
    for name in _NUMBERS:
        value = config.get(f"agent.restart.{name}")
        if value is not None:
            changes[name.replace(".", "_")] = value
    mode = config.get("agent.restart.policy")
    if mode is not None:
        changes["mode"] = RestartMode(mode)
    return replace(defaults, **changes)


_NUMBERS = ("backoff.ms", "backoff.max.ms", "max.attempts", "window.ms", "stable.ms")
