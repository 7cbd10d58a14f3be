"""Requests of workers to the leader (KIP-507, KIP-618).

The body is parsed first, then the signature is checked, then the request runs. The signature of a
body that is too large for one config is checked before.
"""

from __future__ import annotations

from starlette.responses import Response

from pyconnect_agent.core.herder.requests import FenceZombies, SubmitTaskConfigs
from pyconnect_agent.rest.bodies import bind_task_configs
from pyconnect_agent.rest.errors import NullBodyError
from pyconnect_agent.rest.exchange import Exchange, empty_response
from pyconnect_agent.rest.routing import Route


async def put_task_configs(exchange: Exchange) -> Response:
    services = exchange.services
    body = await exchange.body(services.max_body_bytes)
    if len(body) > services.max_config_bytes:
        exchange.herder.verify_internal_request(body, exchange.request.headers)
    configs = await exchange.read(bind_task_configs, body)
    exchange.herder.verify_internal_request(body, exchange.request.headers)
    if configs is None:
        raise NullBodyError("a list of task configs")
    complete = tuple(config for config in configs if config is not None)
    if len(complete) != len(configs):
        raise NullBodyError("task configs that are not null")
    await exchange.submit_or_forward(
        SubmitTaskConfigs(connector=exchange.connector, configs=complete),
        body=list(configs),
    )
    return empty_response(204)


async def fence_zombies(exchange: Exchange) -> Response:
    body = await exchange.body(exchange.services.max_config_bytes)
    exchange.herder.verify_internal_request(body, exchange.request.headers)
    await exchange.submit_or_forward(FenceZombies(connector=exchange.connector))
    return empty_response(204)


ROUTES = (
    Route("POST", "/connectors/{connector}/tasks", put_task_configs, any_content=True),
    Route("PUT", "/connectors/{connector}/fence", fence_zombies, any_content=True),
)
