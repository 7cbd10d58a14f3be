"""`/connector-plugins`."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response

from pyconnect_agent.core.config.variables import has_variables
from pyconnect_agent.core.errors import (
    AgentError,
    BadRequestError,
    ForbiddenError,
    RequestTimedOutError,
)
from pyconnect_agent.rest.bodies import bind_config
from pyconnect_agent.rest.errors import NullBodyError, RestError, java_description
from pyconnect_agent.rest.exchange import HttpExchange, json_response
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
        # Here, and only here, Apache's worker leaves the final dot out.
        raise RequestTimedOutError(exc.message.removesuffix(".")) from exc
    except (AgentError, ConnectException) as exc:
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        raise RestError(status, java_description(exc)) from exc
    return json_response(infos.to_json())


def _short_name(plugin: str) -> str:
    """`FileStreamSourceConnector` and `FileStreamSource` mean the same."""
    return plugin.removesuffix("Connector")


VALIDATION = Route("PUT", "/connector-plugins/{plugin}/config/validate", validate_config)
ROUTES = (
    Route("GET", "/connector-plugins", list_plugins),
    Route("GET", "/connector-plugins/{plugin}/config", plugin_config),
    VALIDATION,
)
