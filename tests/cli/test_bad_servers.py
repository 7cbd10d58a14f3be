"""Servers that do not behave: answers that drip, never end, or are built to exhaust the client."""

import gzip
import re
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from pyconnect_cli.errors import ExitCode
from tests.cli.conftest import Run
from tests.support.cases import cases

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
Answer = Callable[[socket.socket], None]


@contextmanager
def server(answer: Answer) -> Iterator[str]:
    """Serve `answer` on every connection, after the head of the request; yields the URL."""
    ended = threading.Event()

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65536)
            answer(connection)

    def accept(listening: socket.socket) -> None:
        with suppress(OSError):
            while not ended.is_set():
                connection, _ = listening.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        ended.set()


def drip(connection: socket.socket, text: bytes) -> None:
    for _ in range(300):
        connection.sendall(text)
        time.sleep(0.05)


def dripping_body(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n[")
    drip(connection, b" ")


def dripping_head(connection: socket.socket) -> None:
    connection.sendall(HEAD)
    drip(connection, b"X-More: 1\r\n")


@cases("answer", dripping_body, dripping_head)
@cases("option", "--timeout", "--request-timeout")
def test_a_limit_holds_against_a_dripping_server(run: Run, answer: Answer, option: str) -> None:
    """A limit is for the whole answer, not for the time between two of its bytes."""
    with server(answer) as address:
        started = time.monotonic()
        ended = run("connectors", "list", option, "1s", address=address)
    assert time.monotonic() - started < 4
    assert ended.code == ExitCode.UNREACHABLE
    assert re.search(rf"no answer within [01][.0-9]*s \({option}\)", ended.err)


def test_an_answer_without_an_end_is_refused_before_it_fills_the_memory(run: Run) -> None:
    """An endless answer is refused at 128 MiB, and the error names the address."""

    def endless(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"\r\n[")
        while True:
            connection.sendall(b"1," * 500_000)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with server(endless) as address:
        ended = run("connectors", "list", address=address)
    assert ended.code == ExitCode.SERVER_ERROR
    assert f"{address}: the answer is larger than 128 MiB" in ended.err
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600_000


@cases("compressed, words", (True, "larger than 128 MiB"), (False, "compressed wrongly"))
def test_a_compressed_answer_is_measured(run: Run, compressed: bool, words: str) -> None:
    """The limit of size is for the answer after decompression."""
    body = gzip.compress(b"1," * 100_000_000, compresslevel=1) if compressed else b"not gzip"

    def answer(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"Content-Encoding: gzip\r\n\r\n" + body)

    with server(answer) as address:
        ended = run("connectors", "list", address=address)
    assert ended.code == ExitCode.SERVER_ERROR
    assert words in ended.err


@cases("status", "200 OK", "500 Server Error")
@cases("depth", 250, 900, 100_000)
@cases("verbose", (), ("-vv",))
def test_deep_json_is_an_answer_that_cannot_be_read(
    run: Run, status: str, depth: int, verbose: tuple[str, ...]
) -> None:
    """An answer with deep JSON is an error of the server and not an internal error."""
    head = HEAD.replace(b"200 OK", status.encode())

    def answer(connection: socket.socket) -> None:
        connection.sendall(head + b"\r\n" + b"[" * depth + b"]" * depth)

    with server(answer) as address:
        ended = run("connectors", "list", *verbose, address=address)
    assert ended.code == ExitCode.SERVER_ERROR
    assert "internal error" not in ended.err
    assert address in ended.err
    if status == "200 OK":
        assert "nested more than 200 deep" in ended.err


@cases("depth", 250, 900, 100_000)
def test_deep_json_of_a_user_names_its_file(run: Run, depth: int) -> None:
    """A file with deep JSON is refused before the first request."""
    with open("deep.json", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write('{"name": "c", "config": ' + "[" * depth + "]" * depth + "}")
    ended = run("connectors", "create", "-f", "deep.json")
    assert ended.code == ExitCode.USAGE
    assert (
        "deep.json: cannot be read: its arrays and objects are nested more than 200 deep"
        in ended.err
    )


@cases(
    "fault, words",
    (MemoryError(), "not enough memory"),
    (RecursionError("maximum recursion depth exceeded"), "nested too deep"),
)
def test_exhaustion_is_reported_in_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, fault: Exception, words: str
) -> None:
    """A lack of memory or stack is reported as such and not as an internal error."""

    def exhausted(*_: object) -> None:
        raise fault

    monkeypatch.setattr("pyconnect_cli.rest.client.ConnectClient.connector_views", exhausted)
    ended = run("connectors", "list")
    assert ended.code == ExitCode.SERVER_ERROR
    assert "internal error" not in ended.err
    assert words in ended.err
