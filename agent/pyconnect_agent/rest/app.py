"""The worker's REST API as an ASGI application.

Layer: rest. Corresponds to ``RestServer``'s Jersey applications and ``ConnectExceptionMapper``.
Requests and responses are Starlette's; the route is chosen as JAX-RS does (see `routing`). Lives on
the event loop; knows nothing of sockets (see `server`).

It answers before the herder is ready: only resources that need the herder wait for it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pyconnect_agent.core.config.response_headers import HeaderRule
from pyconnect_agent.core.errors import BadRequestError, InternalError
from pyconnect_agent.rest.access_log import log_access
from pyconnect_agent.rest.errors import error_response
from pyconnect_agent.rest.exchange import Exchange, Services
from pyconnect_agent.rest.media_types import content_type
from pyconnect_agent.rest.resources import (
    agent,
    connector_state,
    connectors,
    internal,
    loggers,
    offsets,
    plugins,
    root,
)
from pyconnect_agent.rest.response_headers import CrossOriginPolicy, apply_rules
from pyconnect_agent.rest.routing import Route, Router
from pyconnect_agent.rest.targets import decode_segment, segments_of

MAIN_ROUTES: tuple[Route, ...] = (
    *root.ROUTES,
    *connectors.ROUTES,
    *connector_state.ROUTES,
    *offsets.ROUTES,
    *plugins.ROUTES,
    *internal.ROUTES,
)
ADMIN_ROUTES: tuple[Route, ...] = (*loggers.ROUTES, *agent.ROUTES)
METRICS_ROUTES: tuple[Route, ...] = agent.METRICS_ROUTES


class RestApplication:
    """Answers requests with the resources of its routes."""

    def __init__(
        self,
        services: Services,
        routes: Sequence[Route],
        *,
        cross_origin: CrossOriginPolicy | None = None,
        header_rules: Sequence[HeaderRule] = (),
    ) -> None:
        self._services = services
        self._router = Router(routes)
        self._cross_origin = cross_origin
        self._header_rules = header_rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(f"only HTTP requests are served, not {scope['type']}")
        started_s = time.monotonic()
        request = Request(scope, receive)
        try:
            response = await self._respond(request)
        except ClientDisconnect:
            return
        if request.method == "HEAD":
            # Content-Length stays that of the GET.
            response.body = b""
        await response(scope, receive, send)
        log_access(request, response, round((time.monotonic() - started_s) * 1000))

    async def _respond(self, request: Request) -> Response:
        try:
            response = await self._dispatch(request)
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:
            # Only the server's stop cancels a request; the connection still carries an answer.
            response = error_response(InternalError("Worker is shutting down"))
        except Exception as error:  # noqa: BLE001  every failure becomes an answer
            response = error_response(error)
        if self._cross_origin is not None:
            self._cross_origin.apply(request.method, request.headers, response.headers)
        apply_rules(self._header_rules, response.headers, time.time())
        return response

    async def _dispatch(self, request: Request) -> Response:
        if {"content-length", "transfer-encoding"}.issubset(request.headers):
            # A proxy may see another end of this body, and read the rest as the next request.
            refused = error_response(
                BadRequestError("A request must not have Content-Length and Transfer-Encoding")
            )
            refused.headers["connection"] = "close"
            return refused
        segments = segments_of(_raw_path(request))
        match = self._router.match(
            request.method,
            segments,
            content_type=_content_type(request),
            accept=",".join(request.headers.getlist("accept")),
        )
        if isinstance(match, Response):
            return match
        now_s = asyncio.get_running_loop().time()
        with self._services.bodies.room() as room:
            exchange = Exchange(
                room=room,
                request=request,
                services=self._services,
                segments=tuple(map(decode_segment, segments)),
                parameters=match.parameters,
                deadline_s=now_s + self._services.request_timeout_ms / 1000,
            )
            return await match.route.resource(exchange)


def _raw_path(request: Request) -> str:
    raw: bytes = request.scope["raw_path"]
    return raw.decode("latin-1")


def _content_type(request: Request) -> str | None:
    headers = request.headers.getlist("content-type")
    # Two headers do not give one media type.
    return content_type(",".join(headers)) if headers else None
