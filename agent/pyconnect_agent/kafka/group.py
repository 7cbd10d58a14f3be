"""The thread that keeps this worker a member of its group.

It joins only with permission: the herder permits each join once, after it has stopped work that
must not run during the join. Between joins the thread reports to the group only while the herder is
alive: if the herder hangs, the worker leaves the group after `rebalance.timeout.ms`, as a Java
worker does. An exception that a retry does not cure ends the membership, and with it the worker.

Threading: `permit_join` and `leave` may be called from any thread and return at once, `start` and
`stop` wait; the listener is called on this thread and must only post events.
Kafka: WorkerGroupMember, WorkerCoordinator.poll.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pyconnect_agent.core.errors import AgentError
from pyconnect_agent.kafka._group_adapter import (
    GroupMembership,
    JoinedGroup,
    LeaderHooks,
    MembershipSettings,
)
from pyconnect_agent.process import long_lived

__all__ = [
    "GroupListener",
    "GroupThread",
    "JoinedGroup",
    "LeaderHooks",
    "MembershipSettings",
]

_log = logging.getLogger(__name__)

_JOIN_SLICE_MS = 1_000
_LONGEST_WAIT_S = 0.5


class GroupListener(Protocol):
    """Gets events of the membership, in order, on the group thread."""

    def rejoin_needed(self) -> None:
        """Call `permit_join` once all work has stopped that must not run during a join."""
        ...

    def joined(self, joined: JoinedGroup) -> None: ...

    def coordinator_lost(self) -> None:
        """Unreachable, or silent for a session: work may have been given to others."""
        ...

    def failed(self, error: BaseException) -> None:
        """Membership ended for good, and is logged; the worker has to stop."""
        ...


@dataclass(slots=True)
class _Wishes:
    """Requests of other threads; guarded by the condition."""

    join_permitted: bool = False
    leave_reason: str | None = None
    stop: bool = False
    look_again: bool = False


class GroupThread:
    """Owns the membership; see the module's rules."""

    def __init__(
        self,
        settings: MembershipSettings,
        hooks: LeaderHooks,
        listener: GroupListener,
        *,
        herder_alive: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._listener = listener
        self._herder_alive = herder_alive
        self._condition = threading.Condition()
        self._wishes = _Wishes()
        self._membership = GroupMembership(settings, hooks, self._wake)
        self._thread = long_lived.Thread("group", self._run, on_death=listener.failed)
        self._announced = False
        self._coordinator_lost = False
        self._turned_s = 0.0

    def start(self, timeout_ms: int) -> None:
        """Connect (blocking), then serve on the thread.

        The first event is `rejoin_needed`, after `coordinator_lost` if no coordinator answers.
        """
        self._membership.open(timeout_ms)
        self._thread.start()

    @property
    def member_id(self) -> str:
        """Empty unless this worker is a member of a settled group."""
        return self._membership.member_id

    def confirmed_s(self) -> float | None:
        """Return when this membership was last known to be intact; thread-safe.

        On the monotonic clock; None: this is not a member. One session timeout later other workers
        may have its work. A thread that hangs or has died keeps no membership.
        """
        confirmed_s = self._membership.confirmed_s
        if confirmed_s is None or not self._thread.is_alive():
            return None
        return min(confirmed_s, self._turned_s)

    def permit_join(self) -> None:
        """Join once, even if the group does not ask for it."""
        with self._condition:
            self._wishes.join_permitted = True
            self._wake_locked()

    def leave(self, reason: str) -> None:
        """Leave now; `rejoin_needed` follows, and the next permitted join makes a new member."""
        with self._condition:
            self._wishes.leave_reason = reason
            self._wake_locked()

    def stop(self, timeout_ms: int) -> None:
        """Leave the group and close; returns when done or after about `timeout_ms`."""
        with self._condition:
            self._wishes.stop = True
            self._wake_locked()
        if self._thread.is_alive():
            self._thread.join(timeout_ms / 1000 + _JOIN_SLICE_MS / 1000)
        self._membership.close(timeout_ms)

    def _wake(self) -> None:
        """Called on the network thread when it learns that a join is needed."""
        with self._condition:
            self._wake_locked()

    def _wake_locked(self) -> None:
        # A flag beside the notification: the waiter may not have arrived yet.
        self._wishes.look_again = True
        self._condition.notify()

    def _run(self) -> None:
        while True:
            with self._condition:
                if self._wishes.stop:
                    return
            self._turned_s = time.monotonic()
            try:
                self._step()
            except AgentError as exc:
                if not exc.retriable:
                    raise
                _log.warning("group request failed and will be retried: %s", exc.message)
                self._wait(self._settings.retry_backoff_ms / 1000)

    def _step(self) -> None:
        with self._condition:
            reason, self._wishes.leave_reason = self._wishes.leave_reason, None
            permitted = self._wishes.join_permitted
        if reason is not None:
            self._membership.leave(reason, self._settings.request_timeout_ms)
        elif permitted and not self._membership.needs_rejoin:
            self._membership.request_rejoin()
        # The library looks only after its request has timed out, which may take longer.
        confirmed_s = self._membership.confirmed_s
        session_s = self._settings.session_timeout_ms / 1000
        if confirmed_s is not None and time.monotonic() - confirmed_s > session_s:
            self._membership.forget_coordinator()
            self._lose("group coordinator has not answered for session.timeout.ms")
        if not (
            self._membership.coordinator_known
            or self._membership.find_coordinator(self._settings.heartbeat_interval_ms)
        ):
            self._lose("group coordinator is not available")
            return
        self._coordinator_lost = False
        if self._membership.needs_rejoin:
            self._rejoin()
        else:
            self._announced = False
            if self._herder_alive():
                self._membership.poll_heartbeat()
            self._wait(_LONGEST_WAIT_S)

    def _lose(self, reason: str) -> None:
        if not self._coordinator_lost:
            self._coordinator_lost = True
            _log.warning("%s; work given to this worker stops", reason)
            self._listener.coordinator_lost()

    def _rejoin(self) -> None:
        if not self._announced:
            self._announced = True
            self._listener.rejoin_needed()
        with self._condition:
            permitted = self._wishes.join_permitted
        if not permitted:
            self._wait(_LONGEST_WAIT_S)
            return
        joined = self._membership.join(_JOIN_SLICE_MS)
        if joined is None:
            return
        with self._condition:
            self._wishes.join_permitted = False
        self._announced = False
        self._listener.joined(joined)

    def _wait(self, longest_s: float) -> None:
        with self._condition:
            if not self._wishes.look_again:
                self._condition.wait(longest_s)
            self._wishes.look_again = False
