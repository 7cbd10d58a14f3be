"""Sends requests exactly as written: to an ASGI application, or to a server over a socket.

httpx and its like normalise paths, and that is what many tests are about.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp

TIMEOUT_S = 95


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a worker; header names in lower case, values of equal names joined by commas."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str | None:
        """Of an error envelope."""
        message: str | None = self.json()["message"]
        return message


def call_app(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Answer one request by an application, without a socket, as uvicorn would hand it over."""
    return asyncio.run(acall_app(app, method, target, body, headers))


async def acall_app(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Do as `call_app` on the running loop."""
    raw_path, _, query = target.partition("?")
    content = body.encode() if isinstance(body, str) else body or b""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw_path,
        "raw_path": raw_path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [
            (name.lower().encode(), value.encode("latin-1"))
            for name, value in {"Host": "worker:8083", **(headers or {})}.items()
        ],
        "client": ("127.0.0.1", 1234),
        "server": ("127.0.0.1", 8083),
    }
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start = next(message for message in sent if message["type"] == "http.response.start")
    received = b"".join(
        message.get("body", b"") for message in sent if message["type"] == "http.response.body"
    )
    pairs = [(name.decode(), value.decode("latin-1")) for name, value in start["headers"]]
    return Answer(start["status"], _joined(pairs), received)


def call_url(
    base_url: str,
    method: str,
    target: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    ssl_context: ssl.SSLContext | None = None,
) -> Answer:
    """Answer one request by a server; the connection is closed afterwards."""
    address = urlsplit(base_url)
    host, port = address.hostname or "", address.port
    connection: HTTPConnection
    if address.scheme == "https":
        connection = HTTPSConnection(host, port, timeout=TIMEOUT_S, context=ssl_context)
    else:
        connection = HTTPConnection(host, port, timeout=TIMEOUT_S)
    content = body.encode() if isinstance(body, str) else body
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        if content is not None:
            connection.putheader("Content-Length", str(len(content)))
        connection.endheaders(content)
        response = connection.getresponse()
        return Answer(response.status, _joined(response.getheaders()), response.read())
    finally:
        connection.close()


def _joined(pairs: list[tuple[str, str]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs:
        key = name.lower()
        headers[key] = f"{headers[key]},{value}" if key in headers else value
    return headers
