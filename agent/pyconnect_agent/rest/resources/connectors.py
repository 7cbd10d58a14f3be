"""Connectors and their configurations."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from pyconnect_agent.core.config.connector_keys import require_addressable
from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.core.herder.requests import (
    DeleteConnector,
    GetConnectorConfig,
    GetConnectorInfo,
    GetTaskConfigs,
    PatchConnectorConfig,
    PutConnectorConfig,
    PutResult,
)
from pyconnect_agent.core.ids import TargetState
from pyconnect_agent.core.reporting import ConnectorInfo, TaskInfo
from pyconnect_agent.rest.bodies import ConfigBody, bind_config, bind_create_request
from pyconnect_agent.rest.errors import NullBodyError
from pyconnect_agent.rest.exchange import HttpExchange, empty_response, json_response
from pyconnect_agent.rest.forwarding import WorkerResponse
from pyconnect_agent.rest.routing import Route
from pyconnect_agent.rest.targets import encode_segment

_INITIAL_STATE_NAMES = {
    TargetState.STARTED: "RUNNING",
    TargetState.PAUSED: "PAUSED",
    TargetState.STOPPED: "STOPPED",
}
# Java's String.trim() cuts these, and no other white space.
_TRIMMED = "".join(map(chr, range(0x21)))


async def list_connectors(exchange: HttpExchange) -> Response:
    names = tuple(filter(exchange.caller.may_see, exchange.herder.connectors()))
    if "expand" not in exchange.request.query_params:
        return json_response(list(names))
    kinds = set(exchange.request.query_params.getlist("expand"))
    expanded: dict[str, dict[str, Any]] = {}
    for name in names:
        entry: dict[str, Any] = {}
        if "status" in kinds:
            status = exchange.herder.connector_status(name)
            if status is None:
                continue
            entry["status"] = status.to_json()
        if "info" in kinds:
            entry["info"] = await exchange.herder.connector_info(name)
        expanded[name] = entry
    return json_response(expanded)


async def create_connector(exchange: HttpExchange) -> Response:
    body = await exchange.bind(bind_create_request)
    if body is None:
        raise NullBodyError("a connector's name and config")
    name = (body.name or "").strip(_TRIMMED)
    exchange.caller.require_connector(name)
    await exchange.begin_change(name)
    config = _with_name(body.config, name)
    forwarded_body: dict[str, object] = {"name": name, "config": config}
    if body.initial_state is not None:
        forwarded_body["initial_state"] = _INITIAL_STATE_NAMES[body.initial_state]
    answer = await exchange.submit_or_forward(
        PutConnectorConfig(
            connector=name,
            config=config,
            initial_state=body.initial_state,
            allow_replace=False,
        ),
        body=forwarded_body,
    )
    return _created(exchange, name, _info(answer))


async def get_connector(exchange: HttpExchange) -> Response:
    info: ConnectorInfo = await exchange.submit(GetConnectorInfo(connector=exchange.connector))
    return json_response(info.to_json())


async def delete_connector(exchange: HttpExchange) -> Response:
    await exchange.submit_or_forward(DeleteConnector(connector=exchange.connector))
    return empty_response(204)


async def get_config(exchange: HttpExchange) -> Response:
    config = await exchange.submit(GetConnectorConfig(connector=exchange.connector))
    return json_response(dict(config))


async def put_config(exchange: HttpExchange) -> Response:
    config = _with_name(await exchange.bind(bind_config), exchange.connector)
    answer = await exchange.submit_or_forward(
        PutConnectorConfig(connector=exchange.connector, config=config), body=config
    )
    created = answer.status == 201 if isinstance(answer, WorkerResponse) else answer.created
    if created:
        return _created(exchange, exchange.connector, _info(answer))
    return json_response(_info(answer))


async def patch_config(exchange: HttpExchange) -> Response:
    patch = await exchange.bind(bind_config)
    if patch is None:
        # Apache's worker checks this after its check for the connector.
        await exchange.submit(GetConnectorConfig(connector=exchange.connector))
        raise NullBodyError("a patch")
    answer = await exchange.submit_or_forward(
        PatchConnectorConfig(connector=exchange.connector, patch=patch), body=patch
    )
    return json_response(_info(answer))


async def get_tasks(exchange: HttpExchange) -> Response:
    tasks: tuple[TaskInfo, ...] = await exchange.submit(
        GetTaskConfigs(connector=exchange.connector)
    )
    return json_response([task.to_json() for task in tasks])


def _with_name(config: ConfigBody | None, name: str) -> ConfigBody:
    """Return the config with its name; BadRequestError when it has another one."""
    if config is None:
        raise NullBodyError("a connector config")
    require_addressable(name)
    included = config.get("name")
    if included is None:
        return {**config, "name": name}
    if included != name:
        raise BadRequestError(
            f"Connector name configuration ({included}) doesn't match connector name in the URL "
            f"({name})"
        )
    return config


def _info(answer: PutResult | WorkerResponse) -> Any:
    return answer.body if isinstance(answer, WorkerResponse) else answer.info.to_json()


def _created(exchange: HttpExchange, name: str, info: object) -> Response:
    request = exchange.request
    host = request.headers.get("host") or request.url.netloc
    location = f"{request.url.scheme}://{host}/connectors/{encode_segment(name)}"
    return json_response(info, 201, headers={"Location": location})


ROUTES = (
    Route("GET", "/connectors", list_connectors),
    Route("POST", "/connectors", create_connector),
    Route("GET", "/connectors/{connector}", get_connector),
    Route("DELETE", "/connectors/{connector}", delete_connector),
    Route("GET", "/connectors/{connector}/config", get_config),
    Route("PUT", "/connectors/{connector}/config", put_config),
    Route("PATCH", "/connectors/{connector}/config", patch_config),
    Route("GET", "/connectors/{connector}/tasks", get_tasks),
)
