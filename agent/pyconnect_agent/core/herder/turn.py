"""One decision in the making: the next state and the effects, collected while it is decided.

A `Turn` lives for one call of `decide` and is the only place where state is rewritten. The large
maps are copied at most once per turn; all stops of one turn become one `StopWork`, because they
share one graceful deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pyconnect_agent.core.herder.effects import Effect, StopWork, WakeAt
from pyconnect_agent.core.herder.events import Timer
from pyconnect_agent.core.herder.state import (
    NO_CONNECTOR_WORK,
    ConnectorWork,
    HerderState,
    Operation,
    Phase,
    Reconfiguration,
)
from pyconnect_agent.core.herder.waiters import StopWaiter, Waiter
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.reporting import Stage

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
        """The keys of this moment: changes while iterating are safe."""
        return tuple(self.current)

    def _writable(self) -> dict[K, V]:
        if self._copy is None:
            self._copy = dict(self._original)
        return self._copy


class Turn:
    """See the module; `state` is current for all fields without a draft here."""

    def __init__(self, state: HerderState, now_ms: int) -> None:
        self.state = state
        self.now_ms = now_ms
        self.work: MapDraft[str, ConnectorWork] = MapDraft(state.work)
        self.operations: MapDraft[int, Operation] = MapDraft(state.operations)
        self.lanes: MapDraft[str, tuple[int, ...]] = MapDraft(state.lanes)
        self.reconfigurations: MapDraft[str, Reconfiguration] = MapDraft(state.reconfigurations)
        self._waiters: MapDraft[int, Waiter] = MapDraft(state.waiters)
        self._effects: list[Effect] = []
        self._stopping_connectors: list[str] = []
        self._stopping_tasks: list[ConnectorTaskId] = []
        self.may_begin: deque[int] = deque()
        self._was_serving = state.serving
        self._was_starting = state.phase is Phase.STARTING

    def update(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes)

    def emit(self, *effects: Effect) -> None:
        self._effects.extend(effects)

    def wait_for(self, waiter: Waiter) -> int:
        """Reserve the id of an effect whose answer goes to `waiter`."""
        effect_id = self.new_id()
        self._waiters.set(effect_id, waiter)
        return effect_id

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

    def stop(self, connectors: Iterable[str] = (), tasks: Iterable[ConnectorTaskId] = ()) -> None:
        """Have work stopped at the end of the turn; the caller has marked it STOPPING."""
        self._stopping_connectors.extend(connectors)
        self._stopping_tasks.extend(tasks)

    @property
    def stops_pending(self) -> bool:
        return bool(self.state.stops_in_flight or self._stopping_connectors or self._stopping_tasks)

    def take_began_serving(self) -> bool:
        """Whether requests that could not begin before may begin now; True once."""
        state = self.state
        began = (state.serving and not self._was_serving) or (
            self._was_starting and state.phase is not Phase.STARTING
        )
        if began:
            self._was_serving, self._was_starting = True, False
        return began

    def begin_stage(self, description: str) -> Stage:
        stage = Stage(description=description, started_ms=self.now_ms)
        self.update(stage=stage)
        return stage

    def end_stage(self, stage: Stage | None) -> None:
        """Complete `stage` if it is still the latest one."""
        if stage is not None and self.state.stage == stage:
            self.update(stage=replace(stage, completed_ms=self.now_ms))

    def flush_stops(self) -> None:
        """Turn the collected stops into one effect."""
        if not self._stopping_connectors and not self._stopping_tasks:
            return
        connectors, tasks = tuple(self._stopping_connectors), tuple(self._stopping_tasks)
        self._stopping_connectors.clear()
        self._stopping_tasks.clear()
        effect_id = self.wait_for(StopWaiter(connectors=connectors, tasks=tasks))
        self.update(stops_in_flight=self.state.stops_in_flight + 1)
        self.emit(StopWork(effect_id=effect_id, connectors=connectors, tasks=tasks))

    def finish(self) -> tuple[HerderState, tuple[Effect, ...]]:
        self.flush_stops()
        self.update(
            work=self.work.current,
            operations=self.operations.current,
            lanes=self.lanes.current,
            reconfigurations=self.reconfigurations.current,
            waiters=self._waiters.current,
        )
        return self.state, tuple(self._effects)
