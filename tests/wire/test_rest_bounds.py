"""What a client can make the REST server keep, and for how long."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pyconnect_agent.core.herder.requests.messages import GetConnectorInfo
from pyconnect_agent.rest.connections import Connection
from pyconnect_agent.rest.server import RestServer
from tests.support.eventually import eventually
from tests.support.fake_herder import FakeHerder
from tests.support.request_heads import (
    HOST,
    REFUSED,
    TAKEN,
    TIMEOUT_S,
    exchange,
    head,
    status_of,
)
from tests.support.rest_client import call_app, call_url
from tests.support.rest_services import application, rest_config, serving

pytestmark = pytest.mark.wire

JSON_BODY = b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def worker_url() -> Iterator[str]:
    with serving(rest_config(), FakeHerder()) as server:
        yield server.advertised_url


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[RestServer]:
    """A server that waits half a second for a head."""
    monkeypatch.setattr(Connection, "head_timeout_s", 0.5)
    with serving(rest_config(), FakeHerder()) as server:
        yield server


@pytest.mark.parametrize("name", REFUSED)
def test_what_apaches_worker_refuses_gets_a_page_and_the_end(name: str, worker_url: str) -> None:
    """The connection is closed: where the next request would begin is not known."""
    request, status = REFUSED[name]
    answer = exchange(worker_url, request)
    assert status_of(answer) == status
    assert b"content-type: text/html;charset=iso-8859-1\r\n" in answer
    assert b"connection: close\r\n" in answer.lower()
    assert f"<h2>HTTP ERROR {status} ".encode() in answer


@pytest.mark.parametrize("name", TAKEN)
def test_what_apaches_worker_takes_is_answered(name: str, worker_url: str) -> None:
    """By a resource, or with Connect's own 404."""
    assert status_of(exchange(worker_url, TAKEN[name])) in (200, 404)


def test_a_refused_head_request_has_no_body(worker_url: str) -> None:
    """As no answer to HEAD has one."""
    answer = exchange(worker_url, head(b"connectors", method=b"HEAD"))
    assert status_of(answer) == 400
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}xx0\r\n\r\n", b"-2\r\n{}\r\n", b"2;" + b"a" * 20_000],
    ids=["size", "end", "sign", "extension"],
)
def test_chunks_that_are_none_end_the_connection(body: bytes, worker_url: str) -> None:
    """The request has begun by then; it gets a page instead of an answer."""
    begin = head(
        b"/connectors", HOST + JSON_BODY + b"Transfer-Encoding: chunked\r\n", method=b"POST"
    )
    answer = exchange(worker_url, begin + body)
    assert status_of(answer) in (400, 431)
    assert answer.count(b"HTTP/1.1 ") == 1


def test_what_follows_a_body_is_the_next_request(worker_url: str) -> None:
    """And is refused as such when it is none; the first one is answered."""
    begin = head(b"/connectors", HOST + JSON_BODY + b"Content-Length: 2\r\n", method=b"POST")
    answer = exchange(worker_url, begin + b"{} and more\r\n\r\n")
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"500", b"400"]


@pytest.mark.parametrize(
    "begin",
    [b"", b"GET / HT", b"GET / HTTP/1.1\r\nX: ", head() + b"GET / HTTP/1.1\r\nX: "],
    ids=["nothing", "half a line", "half a head", "half a second head"],
)
def test_a_head_has_its_time_however_often_a_byte_comes(
    begin: bytes, impatient: RestServer
) -> None:
    """Whoever sends slowly enough would keep its connection for ever."""
    with _connected(impatient) as connection:
        connection.sendall(begin)
        _drip_until_closed(connection)


def test_an_answered_request_may_not_be_sent_on_for_ever(impatient: RestServer) -> None:
    """The rest of a body that nobody reads has the time of a head."""
    with _connected(impatient) as connection:
        connection.sendall(head(b"/nowhere", HOST + b"Content-Length: 100000\r\n", method=b"PUT"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 404 ")
        _drip_until_closed(connection)


def test_a_request_that_is_worked_on_has_more_time_than_its_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when the client has sent the begin of its next one already."""
    monkeypatch.setattr(Connection, "head_timeout_s", 0.1)
    gave_up: list[int] = []
    monkeypatch.setattr(Connection, "_give_up", lambda given: gave_up.append(given.client[1]))
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
    """Between requests it may rest, for uvicorn's time."""
    with _connected(impatient) as connection:
        for _ in range(3):
            connection.sendall(head())
            eventually(lambda: b"}" in connection.recv(65_536), TIMEOUT_S)


@pytest.mark.parametrize("length", [{"Content-Length": "11"}, {}], ids=["told", "untold"])
def test_a_body_that_is_too_large_is_refused(length: dict[str, str]) -> None:
    """Before it is read when its length is told, at the limit otherwise."""
    answer = call_app(
        application(FakeHerder(), max_body_bytes=10),
        "POST",
        "/connectors",
        b"{}" + b" " * 9,
        {"Content-Type": "application/json", **length},
    )
    assert answer.status == 413
    assert answer.message == "The body of the request is larger than 10 bytes. Send it in parts."


def test_a_large_body_is_taken(worker_url: str) -> None:
    """Limits of heads are not limits of bodies."""
    body = b'{"name":"' + b"a" * 3_000_000 + b'"}'
    answer = call_url(worker_url, "POST", "/connectors", body, {"Content-Type": "application/json"})
    assert answer.status != 413
    assert answer.json()["error_code"] == answer.status


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
