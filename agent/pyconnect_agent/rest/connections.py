"""One connection of a client, with limits of the server's waits.

Layer: rest. uvicorn's protocol with two more limits: the time until a head is complete, and the
time for the rest of a body after the answer to its request. uvicorn limits the time between
requests, h11 the size of a head; `exchange` limits the time and the size of a body. Lives on the
event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from pyconnect_agent.core.rest_access import subject_text
from pyconnect_agent.rest.access import CERTIFICATE

HEAD_TIMEOUT_S = 90.0
"""From the first byte of a head to its last; for the first head from the connection's start."""
MAX_HEAD_BYTES = 8_192
"""Limit of a head that arrives in parts; one in a single part is at most one socket read."""


class HttpConnection(H11Protocol):
    """Reads requests of one client, one after another, and passes them to the application."""

    head_timeout_s = HEAD_TIMEOUT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's
        super().connection_made(transport)
        if certificate := transport.get_extra_info("peercert"):
            subject = subject_text(certificate.get("subject", ()))
            self.app_state = {**self.app_state, CERTIFICATE: subject}
        self._limit_wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._limit_wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            self._limit_wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer bytes that are not a request, and close the connection."""
        # h11 raises if the answer to the request has begun already.
        with contextlib.suppress(h11.LocalProtocolError):
            super().send_400_response(msg)
        self.transport.close()

    def _limit_wait(self) -> None:
        """Run a timer while the server waits for the client, without a restart meanwhile."""
        waits_for_head = self.conn.their_state is h11.IDLE
        if self.transport.is_closing() or not (waits_for_head or self.conn.our_state is h11.DONE):
            self._end_wait()
        elif self._patience is None:
            self._patience = self.loop.call_later(self.head_timeout_s, self._give_up)

    def _end_wait(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self.timeout_keep_alive_handler()
