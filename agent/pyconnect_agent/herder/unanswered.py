"""The requests that the herder's loop has not answered yet.

Layer: herder. Called on the event loop only.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from pyconnect_agent.core.errors import InternalError, RequestTimedOutError
from pyconnect_agent.core.herder import events as on
from pyconnect_agent.core.herder.effects import Reply
from pyconnect_agent.core.herder.requests import Request
from pyconnect_agent.core.herder.requests.operations import SHUTTING_DOWN
from pyconnect_agent.herder.clock import WorkerClock

REPLY_GRACE_S = 5.0
"""Time after the herder's own deadline until a client stops waiting for a herder that hangs."""


class UnansweredRequests:
    """Posts each request with an id of its own, and hands its reply to the client."""

    def __init__(self, post: Callable[[on.Event], None], clock: WorkerClock) -> None:
        self._post = post
        self._clock = clock
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._ids = itertools.count(1)
        self._closed = False

    async def submit(self, request: Request, timeout_ms: int) -> Any:
        """Return the reply; the type is the request's. Raises a RequestError."""
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
        """Answer a request; a client that no longer waits is left out."""
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
        """Answer those that still wait: the herder does not run any more."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(InternalError(SHUTTING_DOWN))
