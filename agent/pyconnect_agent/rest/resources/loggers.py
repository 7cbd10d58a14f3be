"""`/admin/loggers` (KIP-495, KIP-976)."""

from __future__ import annotations

import logging

from starlette.responses import Response

from pyconnect_agent.core.errors import BadRequestError, NotFoundError
from pyconnect_agent.core.log_lines import logger_name, parse_level
from pyconnect_agent.rest.bodies import bind_config
from pyconnect_agent.rest.errors import NullBodyError
from pyconnect_agent.rest.exchange import HttpExchange, empty_response, json_response
from pyconnect_agent.rest.routing import Route

LOG = logging.getLogger(__name__)


async def list_loggers(exchange: HttpExchange) -> Response:
    loggers = exchange.herder.loggers()
    return json_response({name: loggers[name].to_json() for name in sorted(loggers)})


async def get_logger_level(exchange: HttpExchange) -> Response:
    name = exchange.parameters["logger"]
    level = exchange.herder.loggers().get(logger_name(name))
    if level is None:
        raise NotFoundError(f"Logger {name} not found.")
    return json_response(level.to_json())


async def put_logger_level(exchange: HttpExchange) -> Response:
    exchange.refuse_foreign_page()
    namespace = exchange.parameters["logger"]
    body = await exchange.bind(bind_config)
    if body is None:
        raise NullBodyError("a level")
    text = body.get("level")
    if text is None:
        raise BadRequestError("Desired 'level' parameter was not specified in request.")
    level = parse_level(text)
    scope = exchange.query("scope") or "worker"
    match scope.lower():
        case "cluster":
            await exchange.herder.set_cluster_logger_level(namespace, level)
            return empty_response(204)
        case "worker":
            pass
        case _:
            LOG.warning(
                "unknown scope of a logger request; only this worker is changed",
                extra={"requested_scope": scope},
            )
    changed = await exchange.herder.set_logger_level(namespace, level)
    return json_response(list(changed))


ROUTES = (
    Route("GET", "/admin/loggers", list_loggers),
    Route("GET", "/admin/loggers/{logger}", get_logger_level),
    Route("PUT", "/admin/loggers/{logger}", put_logger_level),
)
