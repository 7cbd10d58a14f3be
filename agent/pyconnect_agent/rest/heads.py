"""Heads of requests as Jetty 12 takes them: not too large, and with one meaning only.

Layer: rest, pure. h11 reads them; what it lets through and Jetty does not is refused here, because
two servers that read one request differently can be played off against each other.
"""

from __future__ import annotations

import re
from http import HTTPStatus

import h11

MAX_HEAD_BYTES = 8_192
"""Of request line and header fields together: Jetty's `requestHeaderSize`."""

_VERSIONS = (b"1.0", b"1.1")
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_HOST_AND_PORT = re.compile(rb"(?:\[[0-9A-Za-z:.%]+\]|[^\s:/?#@\\\[\]]+)(?::[0-9]*)?")
_AUTHORITY = re.compile(rb"[A-Za-z][A-Za-z0-9+.\-]*://([^/?#]*)")
_REASONS = {
    "Missing mandatory Host: header": "No Host",
    "Found multiple Host: headers": "Duplicate Host Header",
}


class RefusedHead(h11.RemoteProtocolError):
    """The server answers with a page instead of a resource; the message is its reason phrase."""

    def __init__(self, reason: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(reason, error_status_hint=status)


class HeadReader(h11.Connection):
    """A server's connection that refuses what Jetty refuses, with Jetty's statuses."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MAX_HEAD_BYTES)
        self.refused = RefusedHead("Bad Request")
        """The error that was raised last."""
        self.method = b""
        """Of the request that came last."""

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return what came next. Raises RefusedHead."""
        try:
            event = super().next_event()
            if isinstance(event, h11.Request):
                self.method = event.method
                _check(event)
        except RefusedHead as refused:
            self.refused = refused
            raise
        except h11.RemoteProtocolError as error:
            self.refused = self._refusal(error)
            raise self.refused from error
        return event

    def _refusal(self, error: h11.RemoteProtocolError) -> RefusedHead:
        if error.error_status_hint != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
            return RefusedHead(_REASONS.get(str(error), "Bad Request"))
        method, separator, rest = self.trailing_data[0].partition(b" ")
        target = rest.split(None, 1)[0] if separator and rest.strip() else b""
        return _too_large(method, target)


def _check(request: h11.Request) -> None:
    method, target, headers = request.method, request.target, request.headers
    fields = sum(len(name) + len(value) + len(": \r\n") for name, value in headers)
    if len(method) + len(target) + len("  HTTP/1.1\r\n\r\n") + fields > MAX_HEAD_BYTES:
        raise _too_large(method, target)
    if request.http_version not in _VERSIONS:
        raise RefusedHead("Unknown Version", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
    if any(_CONTROL.search(value) for _, value in headers):
        raise RefusedHead("Illegal character")
    _check_framing({name for name, _ in headers})
    _check_host(target, next((value for name, value in headers if name == b"host"), None))
    if not _names_a_resource(method, target):
        raise RefusedHead("Bad Request")
    if any(name == b"expect" and value.lower() != b"100-continue" for name, value in headers):
        raise RefusedHead("Expectation Failed", HTTPStatus.EXPECTATION_FAILED)


def _too_large(method: bytes, target: bytes) -> RefusedHead:
    if len(method) + len(" ") + len(target) > MAX_HEAD_BYTES >= len(method):
        return RefusedHead("URI Too Long", HTTPStatus.REQUEST_URI_TOO_LONG)
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return RefusedHead("Request Header Fields Too Large", status)


def _check_framing(names: set[bytes]) -> None:
    if {b"content-length", b"transfer-encoding"} <= names:
        raise RefusedHead("Transfer-Encoding and Content-Length")


def _check_host(target: bytes, host: bytes | None) -> None:
    """HTTP/1.0 needs none; h11 has seen to that HTTP/1.1 has one."""
    if host is None:
        return
    if not host:
        raise RefusedHead("Blank Host")
    if not _HOST_AND_PORT.fullmatch(host):
        raise RefusedHead("Bad HostPort")
    absolute = _AUTHORITY.match(target)
    if absolute and absolute[1].lower() != host.lower():
        raise RefusedHead("Authority!=Host")


def _names_a_resource(method: bytes, target: bytes) -> bool:
    return (
        target.startswith(b"/")
        or _AUTHORITY.match(target) is not None
        or (method, target) == (b"OPTIONS", b"*")
        or method == b"CONNECT"
    )
