"""`/connectors/{connector}/offsets` (KIP-875)."""

from __future__ import annotations

from starlette.responses import Response

from pyconnect_agent.core.connector_offsets import offsets_json
from pyconnect_agent.rest.exchange import Exchange, json_response
from pyconnect_agent.rest.routing import Route


async def get_offsets(exchange: Exchange) -> Response:
    offsets = await exchange.herder.connector_offsets(
        exchange.connector, timeout_ms=exchange.deadline.remaining_ms()
    )
    return json_response(offsets_json(offsets))


ROUTES = (Route("GET", "/connectors/{connector}/offsets", get_offsets),)
