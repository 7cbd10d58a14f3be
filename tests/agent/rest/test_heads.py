"""Heads as they are read, without a socket."""

from __future__ import annotations

import h11
import pytest

from pyconnect_agent.rest.heads import MAX_HEAD_BYTES, HeadReader, RefusedHead
from tests.support.request_heads import HOST, REFUSED, TAKEN, head


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("piece_bytes", [1, 7, 1_000_000])
def test_what_is_refused_is_refused_however_it_comes(name: str, piece_bytes: int) -> None:
    """At once or byte by byte: the status is the same, and is known by the end of the head."""
    request, status = REFUSED[name]
    with pytest.raises(RefusedHead) as refused:
        _read(request, piece_bytes)
    assert refused.value.error_status_hint == status


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_taken_is_a_request(name: str) -> None:
    """Up to the last byte that a head may have."""
    assert isinstance(_read(TAKEN[name], 1_000), h11.Request)


def test_a_head_that_does_not_end_is_refused_as_soon_as_it_is_too_large() -> None:
    """Whatever the rest of it would be, nobody keeps it."""
    reader = HeadReader()
    reader.receive_data(b"GET / HTTP/1.1\r\nX: " + b"a" * MAX_HEAD_BYTES)
    with pytest.raises(RefusedHead, match="Request Header Fields Too Large"):
        reader.next_event()


def test_the_page_can_say_what_is_wrong() -> None:
    """Where Jetty's reason is a sentence of its own."""
    for fields, reason in ((b"", "No Host"), (HOST * 2, "Duplicate Host Header")):
        with pytest.raises(RefusedHead, match=reason):
            _read(head(fields=fields), 1_000)


def _read(request: bytes, piece_bytes: int) -> object:
    reader = HeadReader()
    for begin in range(0, len(request), piece_bytes):
        reader.receive_data(request[begin : begin + piece_bytes])
        if (event := reader.next_event()) is not h11.NEED_DATA:
            return event
    raise AssertionError("the head has not ended")
