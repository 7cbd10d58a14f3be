"""`GET /` and `GET /health` (KIP-1017)."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from pyconnect_agent.core.errors import RequestTimedOutError
from pyconnect_agent.core.herder.requests import Probe
from pyconnect_agent.core.herder.requests.stages import stage_sentence
from pyconnect_agent.rest.exchange import Exchange, json_response
from pyconnect_agent.rest.routing import Route


async def server_info(exchange: Exchange) -> Response:
    return json_response(dict(exchange.herder.server_info().to_json()))


async def health(exchange: Exchange) -> Response:
    herder = exchange.herder
    try:
        await herder.submit(Probe(), timeout_ms=exchange.services.health_timeout_ms)
    except RequestTimedOutError:
        if herder.ready:
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            name = "unhealthy"
            text = (
                "Worker was unable to handle this request and may be unable to handle other "
                "requests."
            )
        else:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            name = "starting"
            text = "Worker is still starting up."
        stage = stage_sentence(herder.stage)
        return json_response({"status": name, "message": f"{text} {stage}".rstrip()}, status)
    return json_response(
        {
            "status": "healthy",
            "message": "Worker has completed startup and is ready to handle requests.",
        }
    )


ROUTES = (
    Route("GET", "/", server_info, any_content=True),
    Route("GET", "/health", health, any_content=True),
)
