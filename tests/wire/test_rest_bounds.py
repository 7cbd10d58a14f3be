"""Bounds on the memory and the time that a client can take from the REST server."""

import asyncio
import os
import resource
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from pyconnect_agent.core.herder.requests import GetConnectorInfo
from pyconnect_agent.rest.exchange import BodyMemory
from pyconnect_agent.rest.server import MAX_HEAD_BYTES, HttpConnection, RestServer
from tests.support.agents.rest_client import Answer, acall_app, call_app, call_url
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.fakes.fake_herder import FakeHerder
from tests.support.fakes.rest_services import application, rest_config, serving

pytestmark = pytest.mark.wire

HOST = b"Host: worker:8083\r\n"
JSON_BODY = b"Content-Type: application/json\r\n"
TIMEOUT_S = 60


def head(target: bytes = b"/", fields: bytes = HOST, *, method: bytes = b"GET") -> bytes:
    """Return a request without a body."""
    return method + b" " + target + b" HTTP/1.1\r\n" + fields + b"\r\n"


REFUSED: Mapping[str, bytes] = {
    "a target that does not end": b"GET /" + b"a" * MAX_HEAD_BYTES,
    "a field that does not end": b"GET / HTTP/1.1\r\nX: " + b"a" * MAX_HEAD_BYTES,
    "fields that do not end": b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * (MAX_HEAD_BYTES // 6),
    "no host": head(fields=b""),
    "two hosts": head(fields=HOST + HOST),
    "space in the target": head(b"/a b"),
    "control character in the target": head(b"/a\x01"),
    "null in a field": head(fields=HOST + b"X: a\0b\r\n"),
    "space before the colon": head(fields=HOST + b"X : 1\r\n"),
    "no colon": head(fields=HOST + b"X\r\n"),
    "first field is folded": head(fields=b" X: 1\r\n" + HOST),
    "method with a bracket": head(method=b"G(T"),
    "start of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 99 + b"\r\n\r\n",
    "two lengths": head(fields=HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n"),
    "negative length": head(fields=HOST + b"Content-Length: -1\r\n"),
    "length that is no number": head(fields=HOST + b"Content-Length: one\r\n"),
    "length and chunks": head(
        fields=HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", method=b"POST"
    )
    + b"0\r\n\r\n",
    "unknown transfer encoding": head(fields=HOST + b"Transfer-Encoding: gzip, chunked\r\n"),
}
"""Bytes that are not a request, by their mistake."""


@pytest.fixture(scope="module")
def worker_url() -> Iterator[str]:
    with serving(rest_config(), FakeHerder()) as server:
        yield server.advertised_url


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    """A server that waits half a second for a head."""
    monkeypatch.setattr(HttpConnection, "head_timeout_s", 0.5)
    with serving(rest_config(), FakeHerder()) as server:
        yield server


@pytest.mark.parametrize("name", REFUSED)
def test_bytes_that_are_not_a_request_are_refused(name: str, worker_url: str) -> None:
    """Bytes that are not a request get a 400 and end the connection."""
    answer = exchange(worker_url, REFUSED[name])
    assert status_of(answer) == 400
    assert b"connection: close\r\n" in answer.lower()


def test_a_head_of_usual_size_is_taken(worker_url: str) -> None:
    """A head with the headers of proxies is within the limit."""
    fields = HOST + b"Connection: close\r\n" + b"X: " + b"a" * (MAX_HEAD_BYTES - 100) + b"\r\n"
    assert status_of(exchange(worker_url, head(fields=fields))) == 200


@cases(
    "body",
    b"zz\r\n{}\r\n0\r\n\r\n",
    b"2\r\n{}xx0\r\n\r\n",
    b"-2\r\n{}\r\n",
    b"2;" + b"a" * 20_000,
    ids=["size", "end", "sign", "extension"],
)
def test_chunks_that_are_none_end_the_connection(body: bytes, worker_url: str) -> None:
    """A wrong chunk ends the connection with one answer, a 400."""
    begin = head(
        b"/connectors", HOST + JSON_BODY + b"Transfer-Encoding: chunked\r\n", method=b"POST"
    )
    answer = exchange(worker_url, begin + body)
    assert status_of(answer) == 400
    assert answer.count(b"HTTP/1.1 ") == 1


def test_bytes_after_a_body_are_the_next_request(worker_url: str) -> None:
    """Bytes after a body are the next request, and get a 400 if they are not one."""
    begin = head(b"/connectors", HOST + JSON_BODY + b"Content-Length: 2\r\n", method=b"POST")
    answer = exchange(worker_url, begin + b"{} and more\r\n\r\n")
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"500", b"400"]


@cases(
    "begin",
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nX: ",
    head() + b"GET / HTTP/1.1\r\nX: ",
    ids=["nothing", "half a line", "half a head", "half a second head"],
)
def test_a_head_has_its_time_whatever_comes(begin: bytes, impatient: RestServer) -> None:
    """A client that sends a head slowly loses its connection."""
    with _connected(impatient) as connection:
        connection.sendall(begin)
        _drip_until_closed(connection)


def test_an_answered_request_may_not_be_sent_on_for_ever(impatient: RestServer) -> None:
    """After an answer the rest of the body has the time of a head."""
    with _connected(impatient) as connection:
        connection.sendall(head(b"/nowhere", HOST + b"Content-Length: 100000\r\n", method=b"PUT"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404 ")
        _drip_until_closed(connection)


def test_a_request_has_more_time_than_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may take longer than a head, even if the next one has begun to arrive."""
    monkeypatch.setattr(HttpConnection, "head_timeout_s", 0.1)
    gave_up: list[int] = []
    monkeypatch.setattr(HttpConnection, "_give_up", lambda given: gave_up.append(given.client[1]))
    herder = FakeHerder()
    herder.held = {GetConnectorInfo}
    with serving(rest_config(), herder) as server, _connected(server) as connection:
        connection.sendall(head(b"/connectors/held") + b"GET / HT")
        eventually(lambda: herder.submitted, TIMEOUT_S)
        with _connected(server) as idle:
            idle_port = idle.getsockname()[1]
            eventually(lambda: idle_port in gave_up, TIMEOUT_S)
        assert gave_up == [idle_port]


def test_a_connection_that_is_used_stays(impatient: RestServer) -> None:
    """A connection may be idle between requests for uvicorn's time."""
    with _connected(impatient) as connection:
        for _ in range(3):
            connection.sendall(head())
            eventually(lambda: b"}" in connection.recv(65_536), TIMEOUT_S)


@cases("length", {"Content-Length": "11"}, {}, ids=["told", "untold"])
@cases("limit", "max_config_bytes", "max_body_bytes")
def test_a_body_that_is_too_large_is_refused(limit: str, length: dict[str, str]) -> None:
    """A too large body is refused before it is read if its length is known, else at the limit."""
    method, path = (
        ("POST", "/connectors") if "config" in limit else ("PATCH", "/connectors/c/offsets")
    )
    answer = call_app(
        application(FakeHerder(), client=None, **{limit: 10}),
        method,
        path,
        b"{}" + b" " * 9,
        {"Content-Type": "application/json", **length},
    )
    assert answer.status == 413
    assert answer.message is not None
    assert answer.message.startswith("The body of the request is larger than 10 bytes, the limit")


def test_bodies_that_are_too_large_together_are_refused() -> None:
    """Bodies that are too large together are refused with 503, which a client may repeat."""
    bodies = BodyMemory(10)
    app = application(FakeHerder(), bodies=bodies)
    headers = {"Content-Type": "application/json"}
    with bodies.room() as room:
        room.take(9)
        answer = call_app(app, "POST", "/connectors", b"{}", headers)
        assert (answer.status, "more than 10 bytes together" in str(answer.message)) == (503, True)
    for _ in range(9):
        assert call_app(app, "POST", "/connectors", b"{}", headers).status != 503


NESTED = b"[" + b"[]," * 15_000_000 + b"[]]"
LARGE: Mapping[str, tuple[str, str, bytes, int]] = {
    "a config": ("PUT", "/connectors/c/config", NESTED, 413),
    "a validation": ("PUT", "/connector-plugins/c/config/validate", NESTED, 413),
    "offsets": ("PATCH", "/connectors/c/offsets", b'{"offsets":' + NESTED + b"}", 500),
    "one large offset": ("PATCH", "/connectors/c/offsets", b'{"offsets":[' + NESTED + b"]}", 500),
    "task configs without a signature": ("POST", "/connectors/c/tasks", NESTED, 400),
}


@pytest.mark.parametrize("kind", LARGE)
def test_large_bodies_neither_stop_the_event_loop_nor_fill_the_memory(kind: str) -> None:
    """Eight large bodies at once do not stop the loop, which renews all tasks' leases."""
    method, path, body, status = LARGE[kind]
    app = application(FakeHerder())
    delays: list[float] = []

    async def tick() -> None:
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            await asyncio.sleep(0.01)
            delays.append(loop.time() - began)

    async def ask() -> list[Answer]:
        ticking = asyncio.create_task(tick())
        headers = {"Content-Type": "application/json"}
        calls = (acall_app(app, method, path, body, headers) for _ in range(8))
        answers = await asyncio.gather(*calls)
        ticking.cancel()
        return list(answers)

    before = psutil.Process().memory_info().rss
    peak = _PeakMemory()
    with peak:
        answers = asyncio.run(ask())
    assert {answer.status for answer in answers} <= {status, 503}
    assert max(delays, default=0) < 10
    assert peak.rss - before < 1 << 29


class _PeakMemory(threading.Thread):
    """A thread that samples the memory of this process."""

    def __init__(self) -> None:
        super().__init__()
        self.rss = 0
        self._done = threading.Event()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        while not self._done.wait(0.01):
            self.rss = max(self.rss, psutil.Process().memory_info().rss)


def test_a_large_body_is_taken(worker_url: str) -> None:
    """A body may be larger than the limit of heads."""
    body = b'{"name":"' + b"a" * 3_000_000 + b'"}'
    answer = call_url(worker_url, "POST", "/connectors", body, {"Content-Type": "application/json"})
    assert answer.status != 413
    assert answer.json()["error_code"] == answer.status


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """A limit of 400 descriptors more than are open."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Path(os.devnull).open() as newest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest.fileno() + 400, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_connections_leave_descriptors_for_the_worker(
    impatient: RestServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections above the limit are closed at once, with one line in the log."""
    monkeypatch.setattr(HttpConnection, "head_timeout_s", TIMEOUT_S)
    with ExitStack() as clients:
        refused = 0
        while refused < 20:
            refused += _is_refused(clients.enter_context(_connected(impatient)))
        taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(32)]
    for descriptor in taken:
        os.close(descriptor)
    eventually(lambda: call_url(impatient.advertised_url, "GET", "/").status == 200, TIMEOUT_S)
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("few_descriptors")
def test_a_lack_of_descriptors_is_logged_once(
    impatient: RestServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A lack of descriptors is logged once, and later clients are served again."""
    clients = [socket.socket() for _ in range(10)]
    taken: list[int] = []
    with suppress(OSError):
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    try:
        for client in clients:
            client.settimeout(TIMEOUT_S)
            client.connect(("127.0.0.1", impatient.listeners[0].port))
            assert _is_refused(client)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        for client in clients:
            client.close()
    eventually(lambda: call_url(impatient.advertised_url, "GET", "/").status == 200, TIMEOUT_S)
    assert len(caplog.records) == 1


def _is_refused(connection: socket.socket) -> bool:
    """Send a request; return whether the server closed the connection without an answer."""
    try:
        connection.sendall(head())
        return connection.recv(65_536) == b""
    except ConnectionError:
        return True


def status_of(answer: bytes) -> int:
    """Return the status of an answer's first line."""
    return int(answer.split(b" ", 2)[1])


def exchange(url: str, request: bytes) -> bytes:
    """Send bytes and return the answer up to the end of the connection.

    Raises TimeoutError when the server does not close it.
    """
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        connection.sendall(request)
        received = bytearray()
        try:
            while part := connection.recv(65_536):
                received += part
        except ConnectionError:
            # The server closed the connection before it had read the whole request.
            pass
        return bytes(received)


@contextmanager
def _connected(server: RestServer) -> Iterator[socket.socket]:
    address = ("127.0.0.1", server.listeners[0].port)
    with socket.create_connection(address, TIMEOUT_S) as connection:
        yield connection


def _drip_until_closed(connection: socket.socket) -> None:
    connection.settimeout(0.05)

    def closed() -> bool:
        try:
            connection.sendall(b"a")
            return connection.recv(65_536) == b""
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    eventually(closed, TIMEOUT_S)
