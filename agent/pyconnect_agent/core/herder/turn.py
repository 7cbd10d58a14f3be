"""One decision in progress: the next state and the effects, collected while it is made.

A `Turn` lives for one call of `decide` and is the only place where state is rewritten. The large
maps are copied at most once per turn; the stops of one turn are collected and become one
`StopWork`, because they share one graceful deadline.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    InternalError,
    NotFoundError,
    NotLeaderError,
    PrivilegedRecordTooLargeError,
    PrivilegedWriteError,
    RequestError,
)
from pyconnect_agent.core.herder.effects import Awaited, Effect, ReadConfigToEnd, Reply, WakeAt
from pyconnect_agent.core.herder.state import (
    FINISHED_ONCE_BEGUN,
    NO_CONNECTOR_WORK,
    WRITING,
    ConnectorWork,
    HerderState,
    MembershipPhase,
    Operation,
    Reconfiguration,
    Step,
)
from pyconnect_agent.core.herder.steps import Request, Resume, Timer, Waiter
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.reporting import Reported, Stage, Status

K = TypeVar("K")
V = TypeVar("V")


class MapDraft(Generic[K, V]):
    """A mapping that is copied at its first change."""

    __slots__ = ("_copy", "_original")

    def __init__(self, original: Mapping[K, V]) -> None:
        self._original = original
        self._copy: dict[K, V] | None = None

    @property
    def current(self) -> Mapping[K, V]:
        return self._original if self._copy is None else self._copy

    def get(self, key: K) -> V | None:
        return self.current.get(key)

    def set(self, key: K, value: V) -> None:
        self._writable()[key] = value

    def discard(self, key: K) -> None:
        if key in self.current:
            del self._writable()[key]

    def keys_now(self) -> tuple[K, ...]:
        """Return the present keys as a tuple: the mapping may change during an iteration."""
        return tuple(self.current)

    def _writable(self) -> dict[K, V]:
        if self._copy is None:
            self._copy = dict(self._original)
        return self._copy


class Turn:
    """One decision in progress; `state` is current for all fields that have no draft here."""

    def __init__(self, state: HerderState, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.work: MapDraft[str, ConnectorWork] = MapDraft(state.work)
        self.operations: MapDraft[int, Operation] = MapDraft(state.operations)
        self.lanes: MapDraft[str, tuple[int, ...]] = MapDraft(state.lanes)
        self.reconfigurations: MapDraft[str, Reconfiguration] = MapDraft(state.reconfigurations)
        self._waiters: MapDraft[int, Waiter] = MapDraft(state.waiters)
        self._effects: list[Effect] = []
        self.stopping_connectors: list[str] = []
        self.stopping_tasks: list[ConnectorTaskId] = []
        self.failed: list[tuple[str, int | None]] = []
        self.may_begin: deque[int] = deque()
        self._was_serving = state.serving
        self._was_starting = state.phase is MembershipPhase.STARTING

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def ask(self, effect: Awaited, then: Waiter) -> None:
        """Emit an effect whose answer goes to `then`."""
        effect_id = self.new_id()
        self._waiters.set(effect_id, then)
        self.emit(replace(effect, effect_id=effect_id))

    def read_to_end(self) -> ReadConfigToEnd:
        return ReadConfigToEnd(timeout_ms=self.state.settings.worker_sync_timeout_ms)

    def new_id(self) -> int:
        number = self.state.next_id
        self.update(next_id=number + 1)
        return number

    def take_waiter(self, effect_id: int) -> Waiter | None:
        waiter = self._waiters.get(effect_id)
        self._waiters.discard(effect_id)
        return waiter

    def wake_at(self, at_ms: int, timer: Timer) -> None:
        self.emit(WakeAt(at_ms=at_ms, timer=timer))

    def work_of(self, connector: str) -> ConnectorWork:
        return self.work.get(connector) or NO_CONNECTOR_WORK

    def put_work(self, connector: str, work: ConnectorWork) -> None:
        if work.empty:
            self.work.discard(connector)
        else:
            self.work.set(connector, work)

    def status(self, report: Reported) -> Status:
        """Return a report as a status of this worker in the current generation."""
        return Status(
            state=report.state,
            worker_id=self.state.settings.worker_id,
            generation=self.state.status_generation,
            trace=report.trace,
            version=report.version,
        )

    def stop(self, connectors: Iterable[str] = (), tasks: Iterable[ConnectorTaskId] = ()) -> None:
        """Stop work at the end of the turn; the caller has marked it STOPPING."""
        self.stopping_connectors.extend(connectors)
        self.stopping_tasks.extend(tasks)

    @property
    def stops_pending(self) -> bool:
        return bool(self.state.stops_in_flight or self.stopping_connectors or self.stopping_tasks)

    def take_began_serving(self) -> bool:
        """Return whether waiting requests may begin from now on; True once."""
        state = self.state
        began = (state.serving and not self._was_serving) or (
            self._was_starting and state.phase is not MembershipPhase.STARTING
        )
        if began:
            self._was_serving, self._was_starting = True, False
        return began

    @property
    def writes_in_flight(self) -> bool:
        return any(operation.step in WRITING for operation in self.operations.current.values())

    def begin_stage(self, description: str) -> Stage:
        stage = Stage(description=description, started_ms=self.now_ms)
        self.update(stage=stage)
        return stage

    def end_stage(self, stage: Stage | None) -> None:
        """Complete `stage` if it is still the latest one."""
        if stage is not None and self.state.stage == stage:
            self.update(stage=replace(stage, completed_ms=self.now_ms))

    def enqueue(self, request_id: int, request: Request, *, deadline_ms: int | None) -> None:
        lane = request.lane
        operation = Operation(
            request_id=request_id, request=request, deadline_ms=deadline_ms, lane=lane
        )
        self.operations.set(request_id, operation)
        if lane is not None:
            self.lanes.set(lane, (*(self.lanes.get(lane) or ()), request_id))
        self.may_begin.append(request_id)

    def proceed(
        self,
        operation: Operation,
        step: Step,
        stage: str,
        effect: Awaited | None = None,
        **changes: Any,
    ) -> Operation:
        """Set the operation's step until `effect` is answered; return the changed operation."""
        begun = replace(operation, step=step, stage=self.begin_stage(stage), **changes)
        self.operations.set(operation.request_id, begun)
        if effect is not None:
            self.ask(effect, Resume(request_id=operation.request_id))
        return begun

    def begin_again(self, operation: Operation) -> None:
        """Queue the operation again: a rebalance began before it had written anything."""
        queued = replace(operation, step=Step.QUEUED, stage=None)
        self.operations.set(operation.request_id, queued)

    def succeed(self, operation: Operation, result: Any = None) -> None:
        self._end(operation, Reply(request_id=operation.request_id, result=result))

    def fail(self, operation: Operation, error: Exception) -> None:
        self._end(operation, Reply(request_id=operation.request_id, error=request_error(error)))

    def leads(self, operation: Operation, otherwise: str) -> bool:
        """Return whether this worker leads; if not, the operation has failed."""
        if not self.state.is_leader:
            self.fail(operation, self.not_leader(otherwise))
        return self.state.is_leader

    def not_leader(self, text: str) -> NotLeaderError:
        return NotLeaderError(text, target_url=self.state.leader_url)

    def exists(self, operation: Operation, connector: str, otherwise: str = "") -> bool:
        """Return whether the connector is configured; if not, the operation has failed."""
        if self.state.snapshot.contains(connector):
            return True
        self.fail(operation, NotFoundError(otherwise or f"Connector {connector} not found"))
        return False

    def first_in_lane(self, lane: str) -> Operation | None:
        """Return the operation of a lane that has begun or is about to."""
        queue = self.lanes.get(lane)
        return self.operations.get(queue[0]) if queue else None

    def refused_in_dispute(self, operation: Operation) -> bool:
        """Fail an operation that has to write during a dispute, unless it has begun to write."""
        if not operation.request.leaders_write or operation.step in FINISHED_ONCE_BEGUN:
            return False
        error = self.state.dispute()
        if error is not None:
            self.fail(operation, error)
        return error is not None

    def forget(self, operation: Operation) -> None:
        """Remove the operation, and let the next one in its lane begin."""
        self.operations.discard(operation.request_id)
        if operation.lane is None:
            return
        queue = self.lanes.get(operation.lane) or ()
        rest = tuple(number for number in queue if number != operation.request_id)
        if rest:
            self.lanes.set(operation.lane, rest)
            self.may_begin.append(rest[0])
        else:
            self.lanes.discard(operation.lane)

    def leave_lane(self, operation: Operation) -> None:
        """Let the connector's next operation begin; this one only waits for others' results."""
        self.forget(operation)
        self.operations.set(operation.request_id, replace(operation, lane=None))

    def _end(self, operation: Operation, reply: Reply) -> None:
        self.end_stage(operation.stage)
        if operation.wants_answer:
            self.emit(reply)
        self.forget(operation)

    def finish(self) -> tuple[HerderState, tuple[Effect, ...]]:
        self.update(
            work=self.work.current,
            operations=self.operations.current,
            lanes=self.lanes.current,
            reconfigurations=self.reconfigurations.current,
            waiters=self._waiters.current,
        )
        return self.state, tuple(self._effects)


def request_error(error: Exception) -> RequestError:
    """Return the client's answer about a failed effect."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, PrivilegedRecordTooLargeError):
        return BadRequestError(error.message)
    if isinstance(error, PrivilegedWriteError):
        return InternalError(
            "Failed to write to config topic; this may be due to a transient error and the request"
            " can be safely retried"
        )
    if isinstance(error, AgentError):
        return InternalError(error.message, permanent=error.permanent)
    return InternalError(str(error) or type(error).__name__)
