"""One request on its way through a resource, with the services for the resource.

Lives on the event loop.

The values of a JSON text may take thirty times its bytes, so one body at a time is read. While
Python's JSON reader runs, no other thread does; the event loop, which renews leases, reads no body.
Apache's only limit is its heap.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from pyconnect_agent.core.clients.configs import MAX_REQUEST_BYTES
from pyconnect_agent.core.errors import RequestTimedOutError, ServiceUnavailableError
from pyconnect_agent.core.herder import requests
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.reporting import timed_out_text
from pyconnect_agent.herder.port import Herder, WorkerAdmin
from pyconnect_agent.rest.access import AdminAccess, Caller
from pyconnect_agent.rest.errors import JSON, BodyTooLargeError, UnsupportedBodyError, content_type
from pyconnect_agent.rest.forwarding import ForwardableRequest, Forwarder, WorkerResponse
from pyconnect_agent.rest.journaling import ChangeJournal, ChangeUnderWay, PasswordKeys
from pyconnect_agent.rest.response_headers import WebPages

ALL_BODIES_BYTES = 128 * 1024 * 1024
SMALL_BYTES = 16 * 1024
"""Size up to which reading a body takes less time than starting a thread."""


class BodyMemory:
    """A count of the bytes of the bodies of all requests under way."""

    def __init__(self, limit_bytes: int = ALL_BODIES_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._reading = asyncio.Lock()

    @contextmanager
    def room(self) -> Iterator[BodyRoom]:
        """Give room for the body of one request, until the request is answered."""
        room = BodyRoom(self)
        try:
            yield room
        finally:
            self._held_bytes -= room.held_bytes

    def take(self, size: int) -> None:
        """Raise ServiceUnavailableError if the bodies would take more than the limit."""
        if self._held_bytes + size > self._limit_bytes:
            raise ServiceUnavailableError(
                f"The bodies of the requests to this worker take more than {self._limit_bytes}"
                " bytes together. Send the request again later."
            )
        self._held_bytes += size

    async def read(self, bind: Callable[[bytes], Bound], body: bytes) -> Bound:
        """Return the result of `bind` for a body, or raise its error."""
        if len(body) <= SMALL_BYTES:
            return bind(body)
        async with self._reading:
            return await asyncio.to_thread(_bound, bind, body)


def _bound(bind: Callable[[bytes], Bound], body: bytes) -> Bound:
    # Collecting garbage while millions of values are made takes four times as long as making them,
    # and no other thread runs meanwhile. One body at a time is read, so no other call is under way.
    gc.disable()
    try:
        return bind(body)
    finally:
        gc.enable()


class BodyRoom:
    """The room for one request's body."""

    def __init__(self, memory: BodyMemory) -> None:
        self.memory = memory
        self.held_bytes = 0

    def take(self, size: int) -> None:
        """Count further bytes; raise ServiceUnavailableError if there is no room."""
        self.memory.take(size)
        self.held_bytes += size


Bound = TypeVar("Bound")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdminServices:
    """The admin interface of this worker, and the access to it."""

    worker: WorkerAdmin
    access: AdminAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Services for resources, the same for all requests.

    `max_config_bytes` limits a body with one config, `max_body_bytes` one with task configs or
    offsets, of which there may be many.
    """

    herder: Herder
    forwarder: Forwarder
    admin: AdminServices | None = None
    journal: ChangeJournal | None = None
    web_pages: WebPages = WebPages()  # noqa: RUF009  a value
    topic_tracking_enable: bool = True
    topic_tracking_allow_reset: bool = True
    request_timeout_ms: int = 90_000
    health_timeout_ms: int = 10_000
    max_config_bytes: int = 4 * MAX_REQUEST_BYTES
    max_body_bytes: int = ALL_BODIES_BYTES
    bodies: BodyMemory = field(default_factory=BodyMemory)
    password_keys: PasswordKeys = field(default_factory=PasswordKeys)


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpExchange:
    """A request with its route; `segments` and `parameters` of its path are decoded.

    `deadline_s` is on the clock of the event loop. `room` is for the body.
    """

    room: BodyRoom
    request: Request
    caller: Caller
    services: Services
    segments: tuple[str, ...]
    parameters: Mapping[str, str]
    deadline_s: float
    change: ChangeUnderWay | None = None

    @property
    def herder(self) -> Herder:
        return self.services.herder

    @property
    def connector(self) -> str:
        """The connector named in the path."""
        return self.parameters["connector"]

    def refuse_foreign_page(self) -> None:
        """Raise ForbiddenError for a change by a foreign web page."""
        self.services.web_pages.check(self.request.method, self.request.headers)

    def remaining_ms(self) -> int:
        """Return the time that the request has left, at least 1 ms, because 0 is not a timeout."""
        return max(1, round((self.deadline_s - asyncio.get_running_loop().time()) * 1000))

    async def submit(self, request: requests.Request) -> Any:
        """Ask the herder within the time that the request has left."""
        return await self.herder.submit(request, timeout_ms=self.remaining_ms())

    async def submit_or_forward(
        self,
        request: requests.Request,
        *,
        body: object = None,
        query: tuple[tuple[str, str], ...] = (),
    ) -> Any:
        """Do as `submit`, or forward the request and return the other worker's WorkerResponse.

        Method and path are the same, with this body and these query parameters.
        """

        def passing_on(method: str, target: str, body: bytes) -> dict[str, str]:
            """Return headers with the user, and let other changes of the connector continue."""
            if self.change is not None:
                self.change.pass_on()
            return self.caller.signed(self.herder, method, target, body)

        answer = await self.services.forwarder.complete_or_forward(
            self.submit(request),
            ForwardableRequest(
                method=self.request.method,
                path=self.segments,
                body=body,
                query=query,
                forward=self.forward,
                headers=passing_on,
            ),
        )
        if self.change is not None and isinstance(answer, WorkerResponse):
            self.change.answered(answer)
        return answer

    async def begin_change(self, connector: str) -> None:
        """Note the connector that the request will change."""
        if self.change is not None:
            await self.change.begin(connector, self.remaining_ms())

    async def body(self, limit_bytes: int) -> bytes:
        """Return the raw body.

        Raises RequestTimedOutError when the client does not send it in time, BodyTooLargeError, and
        ServiceUnavailableError while other bodies take the memory for it.
        """
        if int(self.request.headers.get("content-length", 0)) > limit_bytes:
            raise BodyTooLargeError(limit_bytes)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.remaining_ms() / 1000):
                async for part in self.request.stream():
                    size += len(part)
                    if size > limit_bytes:
                        raise BodyTooLargeError(limit_bytes)
                    self.room.take(len(part))
                    parts.append(part)
        except TimeoutError:
            raise RequestTimedOutError(timed_out_text(self.herder.stage)) from None
        body = b"".join(parts)
        self.caller.require_body(body)
        if self.change is not None:
            self.request.state.body = body
        return body

    async def bind(self, bind: Callable[[bytes], Bound]) -> Bound:
        """Bind the JSON body, which has one config at most.

        Raises UnsupportedBodyError for a body not declared as JSON, and as `body` does.
        """
        return await self.read(bind, await self.json_body(self.services.max_config_bytes))

    async def read(self, bind: Callable[[bytes], Bound], body: bytes) -> Bound:
        """Return the result of `bind` for a body; large bodies are read outside the event loop."""
        return await self.room.memory.read(bind, body)

    async def json_body(self, limit_bytes: int) -> bytes:
        """Return the raw body; raises UnsupportedBodyError for one not declared as JSON."""
        body = await self.body(limit_bytes)
        if body:
            header = self.request.headers.get("content-type")
            if header is None or content_type(header) != JSON:
                raise UnsupportedBodyError
        return body

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean query parameter: only `true`, in upper or lower case, is true."""
        value = self.query(name)
        return default if value is None else value.lower() == "true"

    def query(self, name: str) -> str | None:
        """Return a query parameter, the first of several as in JAX-RS; None if it is missing."""
        return next(iter(self.request.query_params.getlist(name)), None)

    @property
    def forward(self) -> bool | None:
        """The `forward` query parameter; None if a client sent the request."""
        return self.flag("forward") if "forward" in self.request.query_params else None


def json_response(
    value: object, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an answer with a JSON body as Jackson writes it."""
    return Response(json_text.dumps(value), status, headers=headers, media_type=JSON)


def empty_response(status: int) -> Response:
    """Return an answer without a body."""
    return Response(None, status)
