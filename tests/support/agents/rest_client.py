"""Requests exactly as written, to an ASGI application or a server; and a worker's REST API.

httpx and similar clients normalise paths, and many tests are about such paths.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from tests.support.eventually import eventually

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
        """The message of an error envelope."""
        message: str | None = self.json()["message"]
        return message


def call_app(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Return an application's answer to a request as uvicorn would pass it, without a socket."""
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
    """Return a server's answer to a request; the connection is closed afterwards."""
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


JSON = {"Content-Type": "application/json"}
WAIT_S = 150


def is_momentary(answer: Answer) -> bool:
    """Return whether an answer refuses only during a rebalance: clients should repeat the request.

    Reads in Apache's worker have no 409 of their own: theirs is a 500.
    """
    return (answer.status == 409 and "momentarily" in answer.text) or (
        answer.status in (409, 500) and "a rebalance is expected" in answer.text
    )


class Addressed(Protocol):
    """A worker's process, or the address of a shared one."""

    @property
    def url(self) -> str: ...


Process = TypeVar("Process", bound=Addressed)


class WorkerRest(Generic[Process]):
    """A worker with the calls of a client; its URL is looked up at each request."""

    def __init__(self, process: Process) -> None:
        self.process = process

    @property
    def url(self) -> str:
        return self.process.url

    def call(self, method: str, path: str, body: object = None) -> Answer:
        text = None if body is None else json.dumps(body)
        headers = JSON if body is not None else {}
        return call_url(self.url, method, path, text, headers)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request, and repeat it as long as a rebalance refuses it."""
        return eventually(
            lambda: None if is_momentary(found := self.call(method, path, body)) else found,
            WAIT_S,
            lambda: f"{method} {path}: {self.call(method, path, body).text}",
        )

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.text
        return answer.json()

    def do(self, method: str, path: str, body: object = None) -> None:
        """Send a request that must succeed."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, answer.text

    def create(self, name: str, config: Mapping[str, str], **members: str) -> Answer:
        body = {"name": name, "config": dict(config), **members}
        answer = self.ask("POST", "/connectors", body)
        assert answer.status == 201, answer.text
        return answer

    def states(self, name: str) -> tuple[str, ...]:
        """Return the states of the connector and its tasks; empty if there is no status."""
        answer = self.call("GET", f"/connectors/{name}/status")
        if answer.status in (404, 409):
            return ()
        status = answer.json()
        return (status["connector"]["state"], *(task["state"] for task in status["tasks"]))

    def wait_for_states(self, name: str, *states: str, timeout_s: float = WAIT_S) -> None:
        eventually(
            lambda: self.states(name) == states,
            timeout_s,
            lambda: f"{states}: {self.call('GET', f'/connectors/{name}/status').text}",
        )

    def start_with(self, name: str, config: Mapping[str, str], *states: str) -> None:
        """Stop a connector in order, and start it with another configuration.

        No task of the former configuration is left when the first of the new one starts.
        """
        self.do("PUT", f"/connectors/{name}/stop")
        self.wait_for_states(name, "STOPPED")
        self.do("PUT", f"/connectors/{name}/config", dict(config))
        self.do("PUT", f"/connectors/{name}/resume")
        self.wait_for_states(name, *states)
