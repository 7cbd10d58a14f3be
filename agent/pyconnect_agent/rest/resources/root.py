"""`/`, `/health` (KIP-1017), `/connector-plugins`, `/admin/loggers` (KIP-495, KIP-976)."""

import logging
from http import HTTPStatus

from starlette.responses import Response

from pyconnect_agent.core.config.variables import has_variables
from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    RequestTimedOutError,
)
from pyconnect_agent.core.herder.requests import Probe
from pyconnect_agent.core.log_lines import logger_name, parse_level
from pyconnect_agent.core.reporting import stage_sentence
from pyconnect_agent.rest.bodies import bind_config
from pyconnect_agent.rest.errors import NullBodyError, RestError, java_description
from pyconnect_agent.rest.exchange import HttpExchange, empty_response, json_response
from pyconnect_agent.rest.routing import Route
from pyconnect_api.errors import ConnectException


async def list_plugins(exchange: HttpExchange) -> Response:
    connectors_only = exchange.flag("connectorsOnly", default=True)
    plugins = exchange.herder.plugins(connectors_only=connectors_only)
    return json_response([plugin.to_json() for plugin in plugins])


async def plugin_config(exchange: HttpExchange) -> Response:
    keys = await exchange.herder.plugin_config(
        exchange.parameters["plugin"], exchange.query("version")
    )
    return json_response(list(keys))


async def validate_config(exchange: HttpExchange) -> Response:
    plugin = exchange.parameters["plugin"]
    config = await exchange.bind(bind_config)
    if config is None:
        raise NullBodyError("a connector config")
    if not exchange.caller.sees_secrets and any(map(has_variables, config.values())):
        raise ForbiddenError(
            "Only editors and admins may validate references to config providers: validation"
            " resolves them and runs the plugin with their values."
        )
    connector_class = config.get("connector.class")
    if connector_class is not None and not _short_name(connector_class).endswith(
        _short_name(plugin)
    ):
        raise BadRequestError(
            f"Included connector type {connector_class} does not match request type {plugin}"
        )
    try:
        infos = await exchange.herder.validate(config, timeout_ms=exchange.remaining_ms())
    except RequestTimedOutError as exc:
        # Only here does Apache's worker leave the final dot out.
        raise RequestTimedOutError(exc.message.removesuffix(".")) from exc
    except (AgentError, ConnectException) as exc:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        raise RestError(status, java_description(exc)) from exc
    return json_response(infos.to_json())


def _short_name(plugin: str) -> str:
    """Return a plugin's name without `Connector`, which names the same class."""
    return plugin.removesuffix("Connector")


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


async def server_info(exchange: HttpExchange) -> Response:
    return json_response(dict(exchange.herder.server_info().to_json()))


async def health(exchange: HttpExchange) -> Response:
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


VALIDATION = Route("PUT", "/connector-plugins/{plugin}/config/validate", validate_config)
ROUTES = (
    Route("GET", "/", server_info, any_content=True),
    Route("GET", "/health", health, any_content=True),
    Route("GET", "/connector-plugins", list_plugins),
    Route("GET", "/connector-plugins/{plugin}/config", plugin_config),
    VALIDATION,
)
LOGGER_ROUTES = (
    Route("GET", "/admin/loggers", list_loggers),
    Route("GET", "/admin/loggers/{logger}", get_logger_level),
    Route("PUT", "/admin/loggers/{logger}", put_logger_level),
)
