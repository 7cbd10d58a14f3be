"""`/connectors/{connector}/offsets` (KIP-875).

A connector may have very many offsets: threads read them, and a listing is sent while it is made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain

from starlette.responses import Response

from pyconnect_agent.core.config.effective import shown_document
from pyconnect_agent.core.herder.requests import ChangeOffsets
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.rest.bodies import check_offsets
from pyconnect_agent.rest.exchange import HttpExchange, json_response
from pyconnect_agent.rest.forwarding import WorkerResponse
from pyconnect_agent.rest.media_types import JSON
from pyconnect_agent.rest.routing import Route
from pyconnect_agent.rest.streamed import StreamedResponse

PART_BYTES = 256 * 1024


async def get_offsets(exchange: HttpExchange) -> Response:
    offsets = await exchange.herder.connector_offsets(
        exchange.connector, timeout_ms=exchange.remaining_ms()
    )
    parts = _written(offsets, shown=not exchange.caller.sees_secrets)
    first = await asyncio.to_thread(next, parts)
    if len(first) < PART_BYTES:
        return Response(first, media_type=JSON)
    if exchange.request.method == "HEAD":
        return Response(first + b"".join(parts), media_type=JSON)
    return StreamedResponse(chain((first,), parts), media_type=JSON)


async def alter_offsets(exchange: HttpExchange) -> Response:
    body = await exchange.json_body(exchange.services.max_body_bytes)
    await exchange.read(check_offsets, body)
    return await _change(exchange, body)


async def reset_offsets(exchange: HttpExchange) -> Response:
    return await _change(exchange)


async def _change(exchange: HttpExchange, offsets: bytes | None = None) -> Response:
    answer = await exchange.submit_or_forward(
        ChangeOffsets(connector=exchange.connector, offsets=offsets), body=offsets
    )
    return json_response(answer.body if isinstance(answer, WorkerResponse) else {"message": answer})


def _written(offsets: Iterable[ConnectorOffset], *, shown: bool) -> Iterator[bytes]:
    """Yield the answer's text in parts of at least `PART_BYTES`, but for the last one.

    `shown`: without values that may be secrets.
    """
    part = bytearray(b'{"offsets":[')
    separator = b""
    for offset in offsets:
        part += separator
        document = offset.to_json()
        part += json_text.dumps(shown_document(document, {}) if shown else document)
        separator = b","
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    part += b"]}"
    yield bytes(part)


ROUTES = (
    Route("GET", "/connectors/{connector}/offsets", get_offsets),
    Route("PATCH", "/connectors/{connector}/offsets", alter_offsets),
    Route("DELETE", "/connectors/{connector}/offsets", reset_offsets),
)
