"""The worker's REST API as an ASGI application.

Corresponds to ``RestServer``'s Jersey applications and ``ConnectExceptionMapper``. Requests and
responses are Starlette's; the route is chosen as JAX-RS does (see `routing`). Lives on the event
loop; knows nothing of sockets (see `server`).

The application answers before the herder is ready: only resources that need the herder wait for it.
The log has one line per request: the extended NCSA format with the latency in milliseconds.
"""

import asyncio
import logging
import time
from collections.abc import Sequence

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pyconnect_agent.core.config.effective import shown_document
from pyconnect_agent.core.config.listeners import HeaderRule
from pyconnect_agent.core.config.variables import mask
from pyconnect_agent.core.errors import BadRequestError, ForbiddenError, InternalError
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.rest_access import ANY_CLIENT, ENDPOINTS, WORKERS
from pyconnect_agent.rest.access import (
    USER_HEADER,
    Caller,
    RestAccess,
    address_of,
    forwarded_caller,
)
from pyconnect_agent.rest.bodies import StreamedResponse
from pyconnect_agent.rest.errors import content_type, error_response
from pyconnect_agent.rest.exchange import HttpExchange, Services
from pyconnect_agent.rest.journaling import ChangeUnderWay
from pyconnect_agent.rest.resources import agent, connectors, root
from pyconnect_agent.rest.resources.root import VALIDATION
from pyconnect_agent.rest.response_headers import CrossOriginPolicy, apply_rules
from pyconnect_agent.rest.routing import Match, Route, Router, decode_segment, segments_of

ACCESS_LOG = logging.getLogger("pyconnect_agent.rest.access_log")
"""A logger with a name of its own, so that an operator can silence it alone."""
MAIN_ROUTES: tuple[Route, ...] = (*root.ROUTES, *connectors.ROUTES, *connectors.INTERNAL_ROUTES)
ADMIN_ROUTES: tuple[Route, ...] = (*root.LOGGER_ROUTES, *agent.ROUTES)
METRICS_ROUTES: tuple[Route, ...] = agent.METRICS_ROUTES
PREFLIGHT = "access-control-request-method"


class RestApplication:
    """The ASGI application, which answers requests with the resources of its routes."""

    def __init__(
        self,
        services: Services,
        routes: Sequence[Route],
        *,
        access: RestAccess | None = None,
        cross_origin: CrossOriginPolicy | None = None,
        header_rules: Sequence[HeaderRule] = (),
    ) -> None:
        self._services = services
        self._router = Router(routes)
        self._access = access
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
        _log_access(request, response, round((time.monotonic() - started_s) * 1000))

    async def _respond(self, request: Request) -> Response:
        try:
            response = await self._dispatch(request)
        except ClientDisconnect:
            raise
        except asyncio.CancelledError:
            # Only the server's stop cancels a request; the connection can still send an answer.
            response = error_response(InternalError("Worker is shutting down"))
        except Exception as error:  # noqa: BLE001  every failure becomes an answer
            response = error_response(error)
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is not None and not caller.sees_secrets:
            response = await self._without_secrets(response)
        if self._cross_origin is not None:
            self._cross_origin.apply(request.method, request.headers, response.headers)
        apply_rules(self._header_rules, response.headers, time.time())
        return response

    async def _dispatch(self, request: Request) -> Response:
        if {"content-length", "transfer-encoding"}.issubset(request.headers):
            # A proxy may see another end of this body, and take the rest for the next request.
            refused = error_response(
                BadRequestError("A request must not have Content-Length and Transfer-Encoding")
            )
            refused.headers["connection"] = "close"
            return refused
        segments = segments_of(request.scope["raw_path"].decode("latin-1"))
        # Two headers do not define one media type.
        types = ",".join(request.headers.getlist("content-type"))
        match = self._router.match(
            request.method,
            segments,
            content_type=content_type(types) if "content-type" in request.headers else None,
            accept=",".join(request.headers.getlist("accept")),
        )
        caller = request.state.caller = await self._caller(request, match)
        if isinstance(match, Response):
            return match
        now_s = asyncio.get_running_loop().time()
        with self._services.bodies.room() as room:
            exchange = HttpExchange(
                room=room,
                request=request,
                caller=caller,
                services=self._services,
                segments=tuple(map(decode_segment, segments)),
                parameters=match.parameters,
                deadline_s=now_s + self._services.request_timeout_ms / 1000,
                change=self._change(match),
            )
            journal, change = self._services.journal, exchange.change
            answering = _carried_out(exchange, match.route)
            if journal is None or change is None:
                return await answering
            return await journal.answer(exchange, change, answering)

    def _change(self, match: Match) -> ChangeUnderWay | None:
        """Return the change to record, None for a request that changes nothing or is a worker's."""
        route, journal = match.route, self._services.journal
        unrecorded = (
            route.method == "GET" or route in connectors.INTERNAL_ROUTES or route is VALIDATION
        )
        if unrecorded or journal is None:
            return None
        services, connector = self._services, match.parameters.get("connector")
        return journal.change(services.herder, connector, services.password_keys)

    async def _caller(self, request: Request, match: Match | Response) -> Caller:
        """Return the user; raise UnauthorizedError if there is none."""
        anyone = Caller(
            address=address_of(request), authorization=request.headers.get("authorization")
        )
        if self._access is None:
            # The worker that has forwarded the request may have users.
            herder = self._services.herder
            return forwarded_caller(request, herder) if USER_HEADER in request.headers else anyone
        if isinstance(match, Response):
            # Browsers send preflights without credentials.
            needs_none = PREFLIGHT in request.headers
        elif self._access.has_roles:
            # Workers sign their requests, and probes have no user.
            endpoint = ENDPOINTS.get((match.route.method, match.route.template), "")
            needs_none = endpoint[0] in (ANY_CLIENT, WORKERS)
        else:
            # Apache's extension asks probes for a password, too.
            admin = self._services.admin
            needs_none = match.route in connectors.INTERNAL_ROUTES or (
                match.route in agent.ROUTES and admin is not None and admin.access.has_credentials
            )
        return anyone if needs_none else await self._access.caller(request, self._services.herder)

    async def _without_secrets(self, response: Response) -> Response:
        """Hide secrets in an answer: values of secret names, and plain values of configs."""
        if isinstance(response, StreamedResponse):
            return response
        body = bytes(response.body)
        secrets = await self._services.password_keys.secrets(self._services.herder)
        try:
            document = json_text.loads(body)
        except ValueError:
            response.body = mask(body.decode(), secrets).encode()
        else:
            response.body = json_text.dumps(shown_document(document, secrets))
        response.headers["content-length"] = str(len(response.body))
        return response


def _log_access(request: Request, response: Response, latency_ms: int) -> None:
    if not ACCESS_LOG.isEnabledFor(logging.INFO):
        return
    target = request.scope.get("raw_path", b"").decode("ascii", "replace")
    if query := request.scope["query_string"].decode("ascii", "replace"):
        target = f"{target}?{query}"
    ACCESS_LOG.info(
        '%s - - [%s] "%s %s HTTP/%s" %d %d "%s" "%s" %d',
        address_of(request),
        time.strftime("%d/%b/%Y:%H:%M:%S %z"),
        request.method,
        target,
        request.scope["http_version"],
        response.status_code,
        response.sent_bytes if isinstance(response, StreamedResponse) else len(response.body),
        request.headers.get("referer", "-").replace('"', "'"),
        request.headers.get("user-agent", "-").replace('"', "'"),
        latency_ms,
    )


async def _carried_out(exchange: HttpExchange, route: Route) -> Response:
    """Return the answer of a resource; raise ForbiddenError if the user's role is not enough."""
    connector, user = exchange.parameters.get("connector"), exchange.caller.user
    if user is not None:
        exchange.refuse_foreign_page()
        if refusal := user.refusal(route.method, route.template, connector):
            raise ForbiddenError(refusal)
    if connector is not None:
        await exchange.begin_change(connector)
    return await route.resource(exchange)
