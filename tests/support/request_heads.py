"""Heads of requests that a worker refuses, and some at the edge that it takes, byte by byte."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

HOST = b"Host: worker:8083\r\n"
CLOSE = b"Connection: close\r\n"
TIMEOUT_S = 60


def head(
    target: bytes = b"/",
    fields: bytes = HOST,
    *,
    method: bytes = b"GET",
    version: bytes = b"HTTP/1.1",
) -> bytes:
    """Return a request without body."""
    return method + b" " + target + b" " + version + b"\r\n" + fields + b"\r\n"


def _sized(size: int, *, target: int = 1) -> bytes:
    """Return a request of `size` bytes in all, `target` of them in its target."""
    bare = head(b"/" + b"a" * (target - 1), HOST + CLOSE + b"X: \r\n")
    return bare.replace(b"X: ", b"X: " + b"a" * (size - len(bare)))


REFUSED: Mapping[str, tuple[bytes, int]] = {
    "target too long": (head(b"/connectors?x=" + b"a" * 8_192), 414),
    "target far too long": (head(b"/" + b"a" * 300_000), 414),
    "one byte too many": (_sized(8_193), 431),
    "field too large": (head(fields=HOST + b"X: " + b"a" * 300_000 + b"\r\n"), 431),
    "name of a field too large": (head(fields=HOST + b"X" * 9_000 + b": 1\r\n"), 431),
    "too many fields": (head(fields=HOST + b"X: 1\r\n" * 5_000), 431),
    "together too large": (_sized(10_000, target=5_000), 431),
    "method too long": (head(method=b"A" * 10_000), 431),
    "unknown version": (head(version=b"HTTP/1.2"), 505),
    "no host": (head(fields=b""), 400),
    "two hosts": (head(fields=HOST + HOST), 400),
    "blank host": (head(fields=b"Host:\r\n"), 400),
    "host with a space": (head(fields=b"Host: a b\r\n"), 400),
    "port that is no number": (head(fields=b"Host: a:b\r\n"), 400),
    "another host in the target": (head(b"http://other:1/connectors"), 400),
    "target without slash": (head(b"connectors"), 400),
    "space in the target": (head(b"/a b"), 400),
    "control character in the target": (head(b"/a\x01"), 400),
    "control character in a field": (head(fields=HOST + b"X: a\x01b\r\n"), 400),
    "null in a field": (head(fields=HOST + b"X: a\0b\r\n"), 400),
    "space before the colon": (head(fields=HOST + b"X : 1\r\n"), 400),
    "no colon": (head(fields=HOST + b"X\r\n"), 400),
    "no name of a field": (head(fields=HOST + b": 1\r\n"), 400),
    "first field is folded": (head(fields=b" X: 1\r\n" + HOST), 400),
    "method with a bracket": (head(method=b"G(T"), 400),
    "no method": (b" / HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    "start of TLS": (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 99 + b"\r\n\r\n",
        400,
    ),
    "two lengths": (head(fields=HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n"), 400),
    "negative length": (head(fields=HOST + b"Content-Length: -1\r\n"), 400),
    "length that is no number": (head(fields=HOST + b"Content-Length: one\r\n"), 400),
    "length without end": (head(fields=HOST + b"Content-Length: " + b"9" * 30 + b"\r\n"), 400),
    "length of a body in chunks": (
        head(fields=HOST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        400,
    ),
    "expectation nobody knows": (head(fields=HOST + b"Expect: miracle\r\n"), 417),
}
"""By what is wrong: the bytes and the status that Apache's worker answers with before it closes."""

TAKEN: Mapping[str, bytes] = {
    "as large as it may be": _sized(8_192),
    "target as long as it may be": _sized(8_192, target=8_100),
    "many fields": head(fields=HOST + CLOSE + b"X: 1\r\n" * 1_000),
    "lines that end without return": head(fields=HOST + CLOSE).replace(b"\r\n", b"\n"),
    "Latin-1 in a field": head(fields=HOST + CLOSE + b"X: \xe4\xff\r\n"),
    "address in brackets": head(fields=b"Host: [::1]:8083\r\n" + CLOSE),
    "host in the target": head(b"http://worker:8083/", HOST + CLOSE),
    "HTTP/1.0 without host": head(fields=b"", version=b"HTTP/1.0"),
}
"""What is answered by a resource, or by that there is none."""


def status_of(answer: bytes) -> int:
    """Return the status of an answer's first line."""
    return int(answer.split(b" ", 2)[1])


def exchange(url: str, request: bytes) -> bytes:
    """Send bytes and return all that comes until the server closes the connection.

    TimeoutError when it does not.
    """
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), TIMEOUT_S) as connection:
        received = bytearray()
        try:
            connection.sendall(request)
            while part := connection.recv(65_536):
                received += part
        except ConnectionError:
            # It closed with something unread.
            pass
        return bytes(received)
