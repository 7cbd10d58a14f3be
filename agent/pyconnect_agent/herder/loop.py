"""The one consumer of the herder's inbox: decide, perform the effects, take the next event.

Kafka: DistributedHerder's thread, without its waits. Everything happens on the event loop; other
threads post with `post_threadsafe`. A decision never waits. An effect that waits runs elsewhere,
and its answer is posted. Any failure here ends the worker: after a lost event the state of the
herder may be wrong.
"""

import asyncio
import contextlib
import itertools
import logging
from collections import deque
from collections.abc import Callable
from typing import Any

from pyconnect_agent.core.errors import InternalError, RequestTimedOutError
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.decide import decide
from pyconnect_agent.core.herder.effects import Abort, Effect, Reply
from pyconnect_agent.core.herder.events import Event
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.herder.requests.operations import SHUTTING_DOWN
from pyconnect_agent.core.herder.state import HerderState, MembershipPhase
from pyconnect_agent.core.ids import ConnectorTaskId, Instance, State
from pyconnect_agent.core.metric_values import DEFAULT_SAMPLING, Rebalances, Sampling
from pyconnect_agent.core.reporting import STACKS_FOLLOW, Reported
from pyconnect_agent.herder.port import WorkerClock
from pyconnect_agent.stores.status import StatusStore


class ChildEvents:
    """A `children.ports.ChildListener` for the herder. `track_topics`: `topic.tracking.enable`."""

    def __init__(
        self,
        post: Callable[[on.Event], None],
        statuses: StatusStore,
        clock: WorkerClock,
        *,
        track_topics: bool,
    ) -> None:
        self._post = post
        self._statuses = statuses
        self._clock = clock
        self._track_topics = track_topics

    def reported(self, item: Instance, report: Reported) -> None:
        if isinstance(item, ConnectorTaskId):
            kind, failed, changed = "task", "task has failed", "task changed state"
        else:
            kind, failed, changed = "connector", "connector has failed", "connector changed state"
        fields = {kind: str(item), "state": report.state.value}
        if report.state is State.FAILED:
            # The line of the last cause. Lines of stacks begin with blanks, and the stacks after a
            # kill are not causes.
            causes = (report.trace or "").partition(f"\n{STACKS_FOLLOW}")[0].splitlines()
            errors = [line for line in causes if line and not line[0].isspace()]
            LOG.error(failed, extra={**fields, "reason": errors[-1] if errors else ""})
        else:
            LOG.info(changed, extra=fields)
        self._post(on.InstanceReported(item=item, report=report))

    def task_start_asked(self, task_id: ConnectorTaskId, request_id: int) -> None:
        self._post(on.TaskStartAsked(task_id=task_id, request_id=request_id))

    def task_reconfiguration_requested(self, connector: str) -> None:
        self._post(on.ReconfigurationRequested(connector=connector))

    def topic_used(self, task_id: ConnectorTaskId, topic: str) -> None:
        if self._track_topics and not self._statuses.has_topic(task_id.connector, topic):
            now_ms = self._clock.now_ms()
            self._statuses.put_topic(task_id.connector, task_id.task, topic, now_ms)

    def config_ttl_expired(self, connector: str) -> None:
        LOG.info("a config provider's values expire", extra={"connector": connector})
        self._post(on.ConfigExpired(connector=connector))

    def lease_expired(self) -> None:
        # The group has removed this worker, or will do so. In both cases the worker joins again.
        LOG.warning("this worker was frozen or without its group for too long; it joins again")
        self._post(on.MembershipLost())


REPLY_GRACE_S = 5.0
"""The time after the herder's deadline for a request until its client stops waiting."""


class UnansweredRequests:
    """The requests without a reply; each is posted with its own id."""

    def __init__(self, post: Callable[[on.Event], None], clock: WorkerClock) -> None:
        self._post = post
        self._clock = clock
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._closed = False

    async def submit(self, request: Request, timeout_ms: int) -> Any:
        """Return the reply; the request defines its type. Raises a RequestError."""
        self.require_open()
        request_id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        self._post(
            on.RequestArrived(
                request_id=request_id,
                request=request,
                deadline_ms=self._clock.now_ms() + timeout_ms,
            )
        )
        try:
            async with asyncio.timeout(timeout_ms / 1000 + REPLY_GRACE_S):
                return await future
        except TimeoutError:
            raise RequestTimedOutError("Request timed out") from None
        finally:
            del self._waiting[request_id]

    def replied(self, reply: Reply) -> None:
        """Answer a request; a client that no longer waits gets no answer."""
        future = self._waiting.get(reply.request_id)
        if future is None or future.done():
            return
        if reply.error is not None:
            future.set_exception(reply.error)
        else:
            future.set_result(reply.result)

    def require_open(self) -> None:
        """Raise InternalError once the worker stops."""
        if self._closed:
            raise InternalError(SHUTTING_DOWN)

    def refuse(self) -> None:
        """Refuse all requests from now on."""
        self._closed = True

    def fail(self) -> None:
        """Answer the waiting requests with an error, because the herder does not run any more."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(InternalError(SHUTTING_DOWN))


LOG = logging.getLogger(__name__)

EVENTS_BETWEEN_YIELDS = 100
"""The number of events after which other tasks, such as REST requests, may run."""

IDLE_TICK_S = 1.0

Perform = Callable[[Effect], None]


class HerderAbortedError(Exception):
    """The herder has decided that the worker cannot go on."""


class HerderLoop:
    """The owner of the herder's state. `perform` starts an effect and returns at once."""

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
        """Return whether the loop has run within the time, with or without events; thread-safe."""
        return self._clock.now_ms() - self._ticked_ms <= within_ms

    @property
    def state(self) -> HerderState:
        return self._state

    def post(self, event: Event) -> None:
        """Put an event at the end of the inbox; on the event loop's thread only."""
        self._inbox.append(event)
        self._posted.set()

    def post_threadsafe(self, event: Event) -> None:
        """Post from another thread; events of one thread keep their order."""
        try:
            self._event_loop.call_soon_threadsafe(self.post, event)
        except RuntimeError:
            # The event loop is closed, because the worker has ended.
            LOG.debug("event came after the end", extra={"event_kind": type(event).__name__})

    async def run(self, perform: Perform) -> None:
        """Consume events until cancelled. HerderAbortedError if the worker cannot go on."""
        count = 0
        while True:
            while not self._inbox:
                # An idle loop stays `alive`.
                self._posted.clear()
                self._ticked_ms = self._clock.now_ms()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_TICK_S):
                        await self._posted.wait()
            while self._inbox:
                self._ticked_ms = self._clock.now_ms()
                self.step(perform)
                count += 1
                if count % EVENTS_BETWEEN_YIELDS == 0:
                    await asyncio.sleep(0)

    def step(self, perform: Perform) -> None:
        """Decide on the oldest event and perform its effects."""
        event, phase = self._inbox.popleft(), self._state.phase
        now_ms = self._clock.now_ms()
        self._state, effects = decide(self._state, event, now_ms)
        if self._state.phase is not phase:
            if self._state.phase is MembershipPhase.JOINING:
                self.rebalances.under_way(now_ms)
            elif self._state.phase is MembershipPhase.RESOLVED:
                self.rebalances.over(now_ms)
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
