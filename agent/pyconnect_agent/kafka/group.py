"""The thread that keeps this worker a member of its group, over kafka-python's BaseCoordinator.

The thread joins only with permission: the herder permits each join once, after it has stopped work
that must not run during the join. Between joins the thread reports to the group only while the
herder is alive: if the herder hangs, the worker leaves the group after `rebalance.timeout.ms`, as a
Java worker does. An exception that a retry does not cure ends the membership, and with it the
worker.

Threading: any thread may call `permit_join` and `leave`, which return at once, and `start` and
`stop`, which wait. The listener is called on this thread and must only post events. kafka-python's
network thread runs the hooks, heartbeats and all requests. A hook must neither block nor raise.

The only module that imports kafka-python for membership. It uses private parts of the library
(`_on_join_complete_async`, `_perform_assignment`, the network thread), hence the pin below 3.1.
Kafka: WorkerGroupMember, WorkerCoordinator.poll.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import kafka.errors as client_errors
from kafka.coordinator.base import BaseCoordinator
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import HeartbeatRequest

from pyconnect_agent.core.errors import (
    AgentError,
    AuthorizationError,
    KafkaError,
    WorkerConfigError,
)
from pyconnect_agent.kafka.errors import translate
from pyconnect_agent.process import long_lived
from pyconnect_clients.brokers.failures import FailureKind, failure_of

_log = logging.getLogger(__name__)

T = TypeVar("T")

_STILL_MEMBER = (0, client_errors.RebalanceInProgressError.errno)
_PREFIX = "coordinator-"
"""Prefix of the coordinator's broker id, for which the library keeps a separate connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedGroup:
    """A completed join, with the undecoded assignment that the leader sent to this member."""

    generation: int
    member_id: str
    protocol_name: str
    assignment: bytes


class LeaderHooks(Protocol):
    """Hooks on the network thread during a join: they must not wait, or raise for bad input."""

    def offered_protocols(self) -> Sequence[tuple[str, bytes]]:
        """Return names and metadata of this member, preferred first, for each JoinGroup request."""
        ...

    def assign(
        self, leader: str, protocol_name: str, generation: int, members: Mapping[str, bytes]
    ) -> Mapping[str, bytes]:
        """Return assignments for all members; this member is the leader."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSettings:
    """Settings of a membership; `client` has those of kafka-python's connections (TLS, SASL)."""

    group_id: str
    client: Mapping[str, Any]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    rebalance_timeout_ms: int
    request_timeout_ms: int
    retry_backoff_ms: int


class _Coordinator(BaseCoordinator):  # type: ignore[misc]  # the library has no types
    """kafka-python's coordinator, which asks `LeaderHooks`."""

    def __init__(
        self, client: Any, hooks: LeaderHooks, rejoin_needed: Callable[[], None], **settings: Any
    ) -> None:
        self._hooks = hooks
        self._rejoin_needed = rejoin_needed
        self.joined: JoinedGroup | None = None
        self.confirmed_s: float | None = None
        super().__init__(client, **settings)

    def protocol_type(self) -> str:
        return "connect"

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return list(self._hooks.offered_protocols())

    def _perform_assignment(
        self, leader_id: str, protocol: str, members: Sequence[Any]
    ) -> dict[str, bytes]:
        metadata = {member.member_id: bytes(member.metadata) for member in members}
        generation: int = self._generation.generation_id
        return dict(self._hooks.assign(leader_id, protocol, generation, metadata))

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        self.joined = JoinedGroup(
            generation=generation,
            member_id=member_id,
            protocol_name=protocol,
            assignment=bytes(member_assignment_bytes or b""),
        )

    def request_rejoin(self) -> None:
        super().request_rejoin()
        self._rejoin_needed()

    def reset_generation(self, member_id: str = "") -> None:
        super().reset_generation(member_id)
        self.confirmed_s = None
        self._rejoin_needed()

    def _process_sync_group_response(self, response: Any, send_time: float) -> Any:
        assignment = super()._process_sync_group_response(response, send_time)
        self.confirmed_s = send_time
        return assignment

    def _handle_heartbeat_response(self, response: Any, send_time: float) -> None:
        self._confirm(response, send_time)
        super()._handle_heartbeat_response(response, send_time)

    def _confirm(self, response: Any, asked_s: float) -> None:
        # An answer may come after this member has left.
        if response.error_code in _STILL_MEMBER and not self._generation.is_lost():
            self.confirmed_s = asked_s

    async def ask_during_join(self, timeout_ms: int) -> None:
        """Ask the coordinator whether this is a member, on another connection to its broker.

        During a join that waits for other members, a broker answers no other request on the join's
        connection.
        """
        if self.coordinator_id is None or self._generation.is_lost():
            return
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=self._generation.generation_id,
            member_id=self._generation.member_id,
            group_instance_id=None,
        )
        node_id, asked_s = int(self.coordinator_id.removeprefix(_PREFIX)), time.monotonic()
        try:
            answer = self._manager.send(request, node_id=node_id, request_timeout_ms=timeout_ms)
            self._confirm(await answer, asked_s)
        except client_errors.KafkaError as exc:
            _log.debug("no answer about the membership during a join: %s", exc)

    def forget_coordinator(self, error: client_errors.KafkaError) -> None:
        """End all requests to the coordinator; call on the network thread."""
        self.confirmed_s = None
        node_id = self.coordinator_id
        if node_id is not None:
            self.coordinator_dead(error)
            for each in (node_id, int(node_id.removeprefix(_PREFIX))):
                connection = self._manager._conns.get(each)  # noqa: SLF001  nothing public has it
                if connection is not None:
                    connection.close(error)


class GroupMembership:
    """One member of the group; for the group thread.

    `rejoin_needed` is called whenever the group wants this member to join again.
    """

    def __init__(
        self, settings: MembershipSettings, hooks: LeaderHooks, rejoin_needed: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._hooks = hooks
        self._rejoin_needed = rejoin_needed
        self._client: Any = None
        self._coordinator: _Coordinator | None = None
        self._question: Any = None

    def open(self, timeout_ms: int) -> None:
        """Connect to the cluster; raise RetriableKafkaError if no broker answers in time."""
        settings = self._settings
        self._client = KafkaNetClient(**settings.client)
        # Without its own thread the library's loop runs only inside blocking calls, and heartbeats
        # would stop in between.
        self._client._net.start()  # noqa: SLF001  nothing public starts it
        try:
            self._client._manager.bootstrap(timeout_ms)  # noqa: SLF001  nor this
            version = self._client.get_broker_version()
        except client_errors.KafkaError as exc:
            raise _translated(exc, settings.group_id) from exc
        self._coordinator = _Coordinator(
            self._client,
            self._hooks,
            self._rejoin_needed,
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.rebalance_timeout_ms,
            request_timeout_ms=settings.request_timeout_ms,
            retry_backoff_ms=settings.retry_backoff_ms,
            api_version=version,
        )

    def find_coordinator(self, timeout_ms: int) -> bool:
        """Return whether the group coordinator is known, or becomes known within the time."""
        return self._call(
            lambda c: (
                not c.coordinator_unknown()
                or bool(c.ensure_coordinator_ready(timeout_ms=timeout_ms))
            )
        )

    @property
    def confirmed_s(self) -> float | None:
        """The time of the request that last confirmed this membership; thread-safe.

        The time is monotonic, None if this is not a member. The broker received the request later,
        so it keeps this member for at least one session timeout after this time.
        """
        return None if self._coordinator is None else self._coordinator.confirmed_s

    def forget_coordinator(self) -> None:
        """End all requests to a coordinator that does not answer; it is looked up again."""
        error = client_errors.RequestTimedOutError("no answer within session.timeout.ms")
        coordinator = self._opened()
        self._client._net.run(coordinator.forget_coordinator, error)  # noqa: SLF001  as in open

    @property
    def needs_rejoin(self) -> bool:
        return bool(self._opened().need_rejoin())

    @property
    def member_id(self) -> str:
        """The member's id; empty unless the group is stable, because it has a leader only then."""
        generation = self._opened().generation_if_stable()
        return "" if generation is None else str(generation.member_id)

    def request_rejoin(self) -> None:
        self._opened().request_rejoin()

    def join(self, timeout_ms: int) -> JoinedGroup | None:
        """Drive the join for at most `timeout_ms`.

        Return None if the join is not complete: call again within the session timeout, the request
        stays in flight. Raises KafkaError for a failure that a retry does not cure.
        """
        coordinator = self._opened()
        if not self._call(lambda c: bool(c.ensure_active_group(timeout_ms=timeout_ms))):
            if self._question is None or self._question.is_done:
                self._question = self._client._manager.call_soon(  # noqa: SLF001  as in open
                    coordinator.ask_during_join, self._settings.session_timeout_ms
                )
            return None
        joined, coordinator.joined = coordinator.joined, None
        return joined

    def poll_heartbeat(self) -> None:
        """Show that this membership's owner is alive.

        Raises the error that ended the heartbeats, or the network thread that sends them.
        """
        crash = self._client._net._exception  # noqa: SLF001  nothing public returns it
        if crash is not None:
            raise crash
        self._call(lambda c: c.poll_heartbeat())

    def leave(self, reason: str, timeout_ms: int) -> None:
        self._call(lambda c: c.maybe_leave_group(reason, timeout_ms=timeout_ms))

    def close(self, timeout_ms: int) -> None:
        """Leave the group and close all connections; never raise for unreachable brokers."""
        closings: list[Callable[[], object]] = []
        if self._coordinator is not None:
            closings.append(partial(self._coordinator.close, timeout_ms=timeout_ms))
        if self._client is not None:
            closings.append(self._client.close)
        for close in closings:
            try:
                close()
            # The library may raise any exception, that of the network thread's end.
            except Exception as exc:  # noqa: BLE001
                _log.warning("leaving the group failed; its session will expire: %s", exc)

    def _opened(self) -> _Coordinator:
        if self._coordinator is None:
            raise RuntimeError("the membership was not opened")
        return self._coordinator

    def _call(self, action: Callable[[_Coordinator], T]) -> T:
        try:
            return action(self._opened())
        except client_errors.KafkaError as exc:
            raise _translated(exc, self._settings.group_id) from exc


def _translated(exc: Exception, group_id: str) -> KafkaError | WorkerConfigError:
    text = f"group {group_id}: {exc}"
    if failure_of(exc).kind is FailureKind.DENIED:
        return AuthorizationError(f"{text}; grant READ on the group to the worker's principal")
    if isinstance(exc, client_errors.InconsistentGroupProtocolError):
        return WorkerConfigError(
            f"{text}; other members of the group offer no protocol in common with this worker: "
            "check connect.protocol and that group.id is used by Connect workers only"
        )
    if isinstance(exc, client_errors.InvalidSessionTimeoutError):
        return WorkerConfigError(
            f"{text}; session.timeout.ms is outside the broker's "
            "group.min.session.timeout.ms and group.max.session.timeout.ms"
        )
    return translate(exc, f"group {group_id}")


_JOIN_SLICE_MS = 1_000
_LONGEST_WAIT_S = 0.5


class GroupListener(Protocol):
    """A listener for events of the membership, in order, on the group thread."""

    def rejoin_needed(self) -> None:
        """Ask for `permit_join` once all work has stopped that must not run during a join."""
        ...

    def joined(self, joined: JoinedGroup) -> None: ...

    def coordinator_lost(self) -> None:
        """Report a coordinator that is unreachable or silent: other workers may have the work."""
        ...

    def failed(self, error: BaseException) -> None:
        """Report that the membership has ended for good, and is logged; the worker has to stop."""
        ...


@dataclass(slots=True)
class _Wishes:
    """Requests of other threads; the condition guards them."""

    join_permitted: bool = False
    leave_reason: str | None = None
    stop: bool = False
    look_again: bool = False


class GroupThread:
    """The thread that owns the membership; see the module's rules."""

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
        """Connect (blocking), then start the thread that serves the membership."""
        self._membership.open(timeout_ms)
        self._thread.start()

    @property
    def member_id(self) -> str:
        """The member's id; empty unless this worker is a member of a settled group."""
        return self._membership.member_id

    def confirmed_s(self) -> float | None:
        """Return when this membership was last known to be intact; thread-safe.

        The time is monotonic, None if this is not a member. One session timeout later other workers
        may have its work. A thread that hangs or has died does not keep a membership.
        """
        confirmed_s = self._membership.confirmed_s
        if confirmed_s is None or not self._thread.is_alive():
            return None
        return min(confirmed_s, self._turned_s)

    def permit_join(self) -> None:
        """Join once, even if the group does not ask for it."""
        with self._condition:
            self._wishes.join_permitted = True
            self._wake()

    def leave(self, reason: str) -> None:
        """Leave now; `rejoin_needed` follows, and the next permitted join creates a new member."""
        with self._condition:
            self._wishes.leave_reason = reason
            self._wake()

    def stop(self, timeout_ms: int) -> None:
        """Leave the group and close; returns when done or after about `timeout_ms`."""
        with self._condition:
            self._wishes.stop = True
            self._wake()
        if self._thread.is_alive():
            self._thread.join(timeout_ms / 1000 + _JOIN_SLICE_MS / 1000)
        self._membership.close(timeout_ms)

    def _wake(self) -> None:
        """Wake the thread; the network thread calls this, too, when it learns of a needed join."""
        with self._condition:
            # The flag is needed beside the notification, because the thread may not wait yet.
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
        # The library checks only after its request has timed out, which may take longer.
        confirmed_s = self._membership.confirmed_s
        session_s = self._settings.session_timeout_ms / 1000
        if confirmed_s is not None and time.monotonic() - confirmed_s > session_s:
            self._membership.forget_coordinator()
            self._lose("group coordinator has not answered for session.timeout.ms")
        if not self._membership.find_coordinator(self._settings.heartbeat_interval_ms):
            self._lose("group coordinator is not available")
            return
        self._coordinator_lost = False
        if not self._membership.needs_rejoin:
            self._announced = False
            if self._herder_alive():
                self._membership.poll_heartbeat()
            self._wait(_LONGEST_WAIT_S)
            return
        if not self._announced:
            self._announced = True
            self._listener.rejoin_needed()
        with self._condition:
            permitted = self._wishes.join_permitted
        if not permitted:
            self._wait(_LONGEST_WAIT_S)
        elif (joined := self._membership.join(_JOIN_SLICE_MS)) is not None:
            with self._condition:
                self._wishes.join_permitted = False
            self._announced = False
            self._listener.joined(joined)

    def _lose(self, reason: str) -> None:
        if not self._coordinator_lost:
            self._coordinator_lost = True
            _log.warning("%s; work given to this worker stops", reason)
            self._listener.coordinator_lost()

    def _wait(self, longest_s: float) -> None:
        with self._condition:
            if not self._wishes.look_again:
                self._condition.wait(longest_s)
            self._wishes.look_again = False
