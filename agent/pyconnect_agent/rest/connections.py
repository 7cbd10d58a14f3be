"""One connection of a client, and how long it may keep the server waiting.

Layer: rest. uvicorn's protocol with bounds: of a head's size (`heads`), of the time until a head is
complete, of the time that a body may still be sent to a request that was answered already. A body
that is waited for has its request's time (`exchange`). Jetty closes a connection on which nothing
happens; a client that sends a byte now and then keeps it for ever. Lives on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from http import HTTPStatus
from typing import Any

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from pyconnect_agent.rest.errors import refused_page
from pyconnect_agent.rest.heads import HeadReader

LOG = logging.getLogger(__name__)

HEAD_TIMEOUT_S = 90.0
"""From the first byte of a head to its last, of the first one from the connection's making."""


class Connection(H11Protocol):
    """Reads requests of one client, one after another, and has them answered."""

    head_timeout_s = HEAD_TIMEOUT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.conn = self._reader = HeadReader()
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's
        super().connection_made(transport)
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

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  uvicorn's
        """Answer what is no request with a page, and end."""
        refused = self._reader.refused
        LOG.warning(
            "request is refused",
            extra={"client": self.client and self.client[0], "reason": str(refused)},
        )
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(refused_page(str(refused), refused.error_status_hint))
        self.transport.close()

    def _send(self, page: Response) -> None:
        response = h11.Response(
            status_code=page.status_code,
            reason=HTTPStatus(page.status_code).phrase,
            headers=[
                *self.server_state.default_headers,
                *page.raw_headers,
                (b"connection", b"close"),
            ],
        )
        body = b"" if self._reader.method == b"HEAD" else bytes(page.body)
        for event in (response, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")

    def _limit_wait(self) -> None:
        """Have a timer run while only the client can go on, and do not start it again meanwhile."""
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
