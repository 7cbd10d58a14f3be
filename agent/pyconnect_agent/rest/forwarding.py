"""Requests to other workers.

Corresponds to ``RestClient`` and ``HerderRequestHandler``. Lives on the event loop. At most two
hops: the `forward` value of a request decides whether it may be sent on.

The herder uses `WorkerClient` too, for its signed internal requests. httpx is imported with the
first request: most workers never send one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from pyconnect_agent.core.errors import (
    ConflictError,
    ForbiddenError,
    ForwardableError,
    InternalError,
    NoAnswerError,
)
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.rest.errors import PERMANENT_HEADER, RelayedError
from pyconnect_agent.rest.routing import encode_segment

if TYPE_CHECKING:
    import httpx

LOG = logging.getLogger(__name__)

# This timeout is for the connection alone. A target answers within its own 90 s, and the margin
# lets its own error arrive.
CONNECT_TIMEOUT_S = 15.0
ANSWER_TIMEOUT_S = 100.0

JOURNAL_HEADER = "Pyconnect-Journal"
"""Header of answers to other workers: the journal has the change."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WorkerResponse:
    """A success: status and decoded JSON body (None for 204 and for an empty body).

    `journaled`: the worker has recorded the change.
    """

    status: int
    body: Any
    journaled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardableRequest:
    """A request to forward: `path` has decoded segments, `query` follows `forward` in order.

    `body`: bytes are sent unchanged, other values as JSON. `headers` makes the user's headers from
    method, target and body.
    """

    method: str
    path: tuple[str, ...]
    body: object = None
    query: tuple[tuple[str, str], ...] = ()
    forward: bool | None = None
    headers: Callable[[str, str, bytes], Mapping[str, str]] = lambda _method, _target, _body: {}


class WorkerClient:
    """A client for requests to other workers' REST servers.

    `ssl_context` makes the context for `https` targets; it is called once, when first needed.
    `refusal_text` says whose certificate may be refused, for the text of a failed connection.
    """

    def __init__(
        self,
        ssl_context: Callable[[], ssl.SSLContext] | None = None,
        refusal_text: Callable[[str], str] | None = None,
    ) -> None:
        self._make_ssl_context = ssl_context
        self._refusal_text = refusal_text
        self._clients: dict[bool, httpx.AsyncClient] = {}

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> WorkerResponse:
        """Return the worker's answer if its status is 2xx.

        Raises RelayedError for an error answer of the worker, NoAnswerError without an answer,
        InternalError for an answer that cannot be read.
        """
        import httpx

        sent_headers = {
            "Accept": "application/json",
            "User-Agent": "kafka-connect",
            **({} if body is None else {"Content-Type": "application/json"}),
            **(headers or {}),
        }
        client = self._client(url)
        try:
            response = await client.request(method, url, content=body, headers=sent_headers)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as exc:
            reason = f"{type(exc).__name__}: {exc}"
            # A connection also ends like this when the client's certificate is refused.
            ended = isinstance(exc, (httpx.RemoteProtocolError, httpx.ReadError)) or "SSL" in reason
            if ended and self._refusal_text is not None and url.lower().startswith("https:"):
                reason = f"{reason}; {self._refusal_text(reason)}"
            raise NoAnswerError(_io_text(reason)) from exc
        permanent = PERMANENT_HEADER in response.headers
        journaled = JOURNAL_HEADER in response.headers
        try:
            answer = _understood(response.status_code, response.content, permanent=permanent)
        except RelayedError as error:
            error.journaled = journaled
            raise
        return replace(answer, journaled=journaled)

    async def close(self) -> None:
        for client in self._clients.values():
            await client.aclose()
        self._clients.clear()

    def _client(self, url: str) -> httpx.AsyncClient:
        import httpx

        is_https = url.lower().startswith("https:")
        client = self._clients.get(is_https)
        if client is None:
            verify: ssl.SSLContext | bool = False
            if is_https:
                make_context = self._make_ssl_context or ssl.create_default_context
                try:
                    verify = make_context()
                # Errors of settings, files and certificates have no common class.
                except Exception as exc:
                    raise InternalError(f"Failed to start RestClient: {exc}") from exc
            client = httpx.AsyncClient(
                verify=verify,
                timeout=httpx.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                follow_redirects=False,
                # Proxies in the environment are for other clients, not for requests between
                # workers.
                trust_env=False,
            )
            self._clients[is_https] = client
        return client


class Forwarder:
    """A forwarder runs requests here, or sends them to the worker that the herder names."""

    def __init__(self, client: WorkerClient) -> None:
        self._client = client

    async def complete_or_forward(
        self, local: Awaitable[Result], request: ForwardableRequest
    ) -> Result | WorkerResponse:
        """Return the local result, or the answer of the worker that the herder names.

        Raises the errors of `local`, and ConflictError if the request may not be sent on.
        """
        try:
            return await local
        except ForwardableError as exc:
            target_url, reason = exc.target_url, exc.message
        if request.forward is False:
            LOG.error(
                "request did not reach its worker within two hops",
                extra={"method": request.method, "path": "/".join(request.path), "reason": reason},
            )
            raise ConflictError(
                "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
            )
        if not target_url:
            raise ConflictError(
                "Cannot complete request momentarily due to no known leader URL, likely because "
                "a rebalance was underway."
            )
        url = forward_url(target_url, request)
        LOG.debug("request is forwarded", extra={"method": request.method, "url": url})
        body = request.body
        sent = (
            body
            if body is None or isinstance(body, bytes)
            else await asyncio.to_thread(json_text.dumps, body)
        )
        target = url.removeprefix(target_url.rstrip("/"))
        headers = request.headers(request.method, target, sent or b"")
        return await self._client.send(request.method, url, body=sent, headers=headers)


def forward_url(target_url: str, request: ForwardableRequest) -> str:
    """Return the URL of the next hop; a request of a worker gets `forward=false`, the last hop."""
    path = "/".join(encode_segment(segment) for segment in request.path)
    pairs = [("forward", "true" if request.forward is None else "false"), *request.query]
    query = "&".join(f"{name}={value}" for name, value in pairs)
    return f"{target_url.rstrip('/')}/{path}?{query}"


def _understood(status: int, content: bytes, *, permanent: bool) -> WorkerResponse:
    if status == 204:
        return WorkerResponse(status, None)
    if 200 <= status < 300:
        return WorkerResponse(status, _json(content) if content else None)
    if status < 400:
        raise InternalError(f"Unexpected status code when handling forwarded request: {status}")
    if status == HTTPStatus.UNAUTHORIZED and not content.startswith(b"{"):
        # Apache's extension answers with a text.
        raise ForbiddenError(
            "The worker that carries the request out does not admit its user (401). A user with a"
            " token or a certificate needs a password of its name there (rest.extension.classes)."
        )
    envelope = _json(content)
    if not isinstance(envelope, dict) or not isinstance(envelope.get("error_code"), int):
        raise _io_error(f"status {status} without an error message")
    code, message = envelope["error_code"], envelope.get("message")
    raise RelayedError(status, message, error_code=code, permanent=permanent)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError as exc:
        raise _io_error(f"the answer is not JSON: {exc}") from exc


def _io_error(detail: str) -> InternalError:
    return InternalError(_io_text(detail))


def _io_text(detail: str) -> str:
    return f"IO Error trying to forward REST request: {detail}"
