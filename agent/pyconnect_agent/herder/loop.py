"""The one consumer of the herder's inbox: decide, perform, next.

Layer: herder. Kafka: DistributedHerder's thread, without its waits. Everything happens on the event
loop; other threads post with `post_threadsafe`. A decision never waits. An effect that waits runs
elsewhere, and its answer is posted. Any failure here ends the worker: after a lost event the state
of the herder may be wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable

from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import Abort, Effect
from pyconnect_agent.core.herder.events import Event
from pyconnect_agent.core.herder.state import HerderState, MembershipPhase
from pyconnect_agent.core.metrics.sampled import DEFAULT_SAMPLING, Rebalances, Sampling
from pyconnect_agent.herder.clock import WorkerClock

LOG = logging.getLogger(__name__)

EVENTS_BETWEEN_YIELDS = 100
"""Maximum of events in one turn, so that a burst does not delay the REST layer."""

IDLE_TICK_S = 1.0

Perform = Callable[[Effect], None]


class HerderAbortedError(Exception):
    """The herder decided that the worker cannot go on."""


class HerderLoop:
    """Owns the herder's state. `perform` starts an effect and returns at once."""

    def __init__(
        self, state: HerderState, clock: WorkerClock, sampling: Sampling = DEFAULT_SAMPLING
    ) -> None:
        self._state = state
        self._clock = clock
        self._inbox: deque[Event] = deque()
        self._posted = asyncio.Event()
        self.rebalances = Rebalances(sampling)
        self._event_loop = asyncio.get_running_loop()
        self._ticked_ms = clock.now_ms()

    def alive(self, within_ms: int) -> bool:
        """Return whether the loop ran within the time, with events or without; thread-safe."""
        return self._clock.now_ms() - self._ticked_ms <= within_ms

    @property
    def state(self) -> HerderState:
        return self._state

    def post(self, event: Event) -> None:
        """Put an event at the end of the inbox; on the event loop's thread only."""
        self._inbox.append(event)
        self._posted.set()

    def post_threadsafe(self, event: Event) -> None:
        """Do as `post` from another thread; events of one thread keep their order."""
        try:
            self._event_loop.call_soon_threadsafe(self.post, event)
        except RuntimeError:
            # The event loop is closed: the worker has ended meanwhile.
            LOG.debug("event came after the end", extra={"event_kind": type(event).__name__})

    async def run(self, perform: Perform) -> None:
        """Consume until cancelled. HerderAbortedError if the herder cannot continue."""
        count = 0
        while True:
            await self._wait_for_event()
            while self._inbox:
                self._ticked_ms = self._clock.now_ms()
                self.step(perform)
                count += 1
                if count % EVENTS_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)

    async def _wait_for_event(self) -> None:
        """Return when the inbox has an event; while idle, keep `alive` up to date."""
        while not self._inbox:
            self._posted.clear()
            self._ticked_ms = self._clock.now_ms()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_TICK_S):
                    await self._posted.wait()

    def step(self, perform: Perform) -> None:
        """Decide on the oldest event and perform its effects."""
        event, phase = self._inbox.popleft(), self._state.phase
        self._state, effects = decide(self._state, event, self._clock.now_ms())
        if self._state.phase is not phase:
            self._phase_changed()
        if LOG.isEnabledFor(logging.DEBUG):
            kinds = ",".join(type(effect).__name__ for effect in effects)
            extra = {
                "decided_on": type(event).__name__,
                "effects": kinds,
                "phase": self._state.phase.name,
            }
            LOG.debug("decided", extra=extra)
        for effect in effects:
            if isinstance(effect, Abort):
                raise HerderAbortedError(effect.reason)
            perform(effect)

    def _phase_changed(self) -> None:
        now_ms = self._clock.now_ms()
        match self._state.phase:
            case MembershipPhase.JOINING:
                self.rebalances.under_way(now_ms)
            case MembershipPhase.RESOLVED:
                self.rebalances.over(now_ms)
            case _:
                pass
