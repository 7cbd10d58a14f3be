"""`/connectors/{connector}/offsets` (KIP-875). There may be very many: not on the event loop."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from pyconnect_agent.core import json_text
from pyconnect_agent.core.connector_offsets import ConnectorOffset, offsets_json
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.herder.requests import ChangeOffsets
from pyconnect_agent.core.offset_changes import NOTHING_TO_ALTER, OffsetPair
from pyconnect_agent.rest.errors import NullBodyError
from pyconnect_agent.rest.exchange import Exchange, json_response
from pyconnect_agent.rest.forwarding import WorkerResponse
from pyconnect_agent.rest.media_types import JSON
from pyconnect_agent.rest.offsets_binding import (
    OFFSET_CLASS,
    OFFSETS_CLASS,
    Offsets,
    bind_offsets,
)
from pyconnect_agent.rest.routing import Route


async def get_offsets(exchange: Exchange) -> Response:
    offsets = await exchange.herder.connector_offsets(
        exchange.connector, timeout_ms=exchange.deadline.remaining_ms()
    )
    return Response(await asyncio.to_thread(_written, offsets), media_type=JSON)


async def alter_offsets(exchange: Exchange) -> Response:
    body = await exchange.json_body()
    offsets = _usable(await asyncio.to_thread(bind_offsets, body))
    return await _change(exchange, "PATCH", offsets, body)


async def reset_offsets(exchange: Exchange) -> Response:
    return await _change(exchange, "DELETE")


async def _change(
    exchange: Exchange,
    method: str,
    offsets: tuple[OffsetPair, ...] | None = None,
    body: bytes | None = None,
) -> Response:
    answer = await exchange.submit_or_forward(
        ChangeOffsets(connector=exchange.connector, offsets=offsets),
        method=method,
        path=("connectors", exchange.connector, "offsets"),
        body=body,
    )
    return json_response(answer.body if isinstance(answer, WorkerResponse) else {"message": answer})


def _usable(offsets: Offsets | None) -> tuple[OffsetPair, ...]:
    if offsets is None:
        raise NullBodyError(f"{OFFSETS_CLASS}.offsets()", "offsets")
    if not offsets:
        raise BadRequestError(NOTHING_TO_ALTER)
    usable = tuple(pair for pair in offsets if pair is not None)
    if len(usable) != len(offsets):
        raise NullBodyError(f"{OFFSET_CLASS}.partition()", "offset")
    return usable


def _written(offsets: tuple[ConnectorOffset, ...]) -> bytes:
    return json_text.dumps(offsets_json(offsets))


ROUTES = (
    Route("GET", "/connectors/{connector}/offsets", get_offsets),
    Route("PATCH", "/connectors/{connector}/offsets", alter_offsets),
    Route("DELETE", "/connectors/{connector}/offsets", reset_offsets),
)
