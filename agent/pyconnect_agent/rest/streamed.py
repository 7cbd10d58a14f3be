"""An answer that is written while it is sent, for bodies too large to be in memory at once.

Layer: rest. The length of the body is unknown: HTTP/1.1 sends it in chunks. An error after the
first part closes the connection, because the status was already sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class StreamedResponse(Response):
    """Threads read `parts`, one part at a time, as fast as the client reads."""

    def __init__(self, parts: Iterator[bytes], *, media_type: str) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._parts = parts
        self.sent_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})
        while part := await asyncio.to_thread(next, self._parts, b""):
            self.sent_bytes += len(part)
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


def sent_bytes(response: Response) -> int:
    return response.sent_bytes if isinstance(response, StreamedResponse) else len(response.body)
