"""Connectors: configurations, states, restarts, topics and offsets; requests to the leader.

A connector may have very many offsets (KIP-875): threads read them, and a listing is sent while it
is made. In a request to the leader (KIP-507, KIP-618) the body is parsed first, then the signature
is checked, then the request runs. The signature of a body that is too large for one config is
checked before.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from starlette.responses import Response

from pyconnect_agent.core.config.connector_config import require_addressable
from pyconnect_agent.core.config.effective import shown_document
from pyconnect_agent.core.errors import BadRequestError, ForbiddenError, NotFoundError
from pyconnect_agent.core.herder.requests import (
    ChangeOffsets,
    DeleteConnector,
    FenceZombies,
    GetConnectorConfig,
    GetConnectorInfo,
    GetTaskConfigs,
    PatchConnectorConfig,
    PutConnectorConfig,
    PutResult,
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    SetTargetState,
    StopConnector,
    SubmitTaskConfigs,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.offsets.connector_offsets import ConnectorOffset
from pyconnect_agent.core.reporting import ConnectorInfo, TaskInfo, task_status_json
from pyconnect_agent.rest.bodies import (
    ConfigBody,
    StreamedResponse,
    bind_config,
    bind_create_request,
    bind_task_configs,
    check_offsets,
)
from pyconnect_agent.rest.errors import JSON, NullBodyError, ResourceNotFoundError
from pyconnect_agent.rest.exchange import HttpExchange, empty_response, json_response
from pyconnect_agent.rest.forwarding import WorkerResponse
from pyconnect_agent.rest.routing import Route, encode_segment


async def put_task_configs(exchange: HttpExchange) -> Response:
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
        SubmitTaskConfigs(connector=exchange.connector, configs=complete), body=list(configs)
    )
    return empty_response(204)


async def fence_zombies(exchange: HttpExchange) -> Response:
    body = await exchange.body(exchange.services.max_config_bytes)
    exchange.herder.verify_internal_request(body, exchange.request.headers)
    await exchange.submit_or_forward(FenceZombies(connector=exchange.connector))
    return empty_response(204)


PART_BYTES = 256 * 1024


async def get_offsets(exchange: HttpExchange) -> Response:
    offsets = await exchange.herder.connector_offsets(
        exchange.connector, timeout_ms=exchange.remaining_ms()
    )
    secrets = None
    if not exchange.caller.sees_secrets:
        secrets = await exchange.services.password_keys.secrets(exchange.herder)
    parts = _written(offsets, secrets)
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


def _written(
    offsets: Iterable[ConnectorOffset], secrets: Mapping[str, str] | None
) -> Iterator[bytes]:
    """Yield the answer's text in parts of `PART_BYTES` or more, apart from the last part.

    `secrets` of `shown_document` are hidden; None: all is shown.
    """
    part = bytearray(b'{"offsets":[')
    separator = b""
    for offset in offsets:
        part += separator
        document = offset.to_json()
        part += json_text.dumps(document if secrets is None else shown_document(document, secrets))
        separator = b","
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    part += b"]}"
    yield bytes(part)


_INT_RANGE = range(-(2**31), 2**31)


async def get_status(exchange: HttpExchange) -> Response:
    status = exchange.herder.connector_status(exchange.connector)
    if status is None:
        raise NotFoundError(f"No status found for connector {exchange.connector}")
    return json_response(status.to_json())


async def get_task_status(exchange: HttpExchange) -> Response:
    task_id = _task_id(exchange)
    status = exchange.herder.task_status(task_id.connector, task_id.task)
    if status is None:
        raise NotFoundError(f"No status found for task {task_id}")
    return json_response(task_status_json(task_id.task, status))


async def pause(exchange: HttpExchange) -> Response:
    return await _set_target_state(exchange, TargetState.PAUSED)


async def resume(exchange: HttpExchange) -> Response:
    return await _set_target_state(exchange, TargetState.STARTED)


async def stop(exchange: HttpExchange) -> Response:
    await exchange.submit_or_forward(StopConnector(connector=exchange.connector))
    return empty_response(204)


async def restart(exchange: HttpExchange) -> Response:
    """Restart only the connector instance, or the selection of the flags (KIP-745)."""
    include_tasks = exchange.flag("includeTasks")
    only_failed = exchange.flag("onlyFailed")
    if not include_tasks and not only_failed:
        await exchange.submit_or_forward(RestartConnector(connector=exchange.connector))
        return empty_response(204)
    answer = await exchange.submit_or_forward(
        RestartConnectorAndTasks(
            connector=exchange.connector, only_failed=only_failed, include_tasks=include_tasks
        ),
        query=(
            ("includeTasks", str(include_tasks).lower()),
            ("onlyFailed", str(only_failed).lower()),
        ),
    )
    state: Any = answer.body if isinstance(answer, WorkerResponse) else answer.to_json()
    return json_response(state, 202)


async def restart_task(exchange: HttpExchange) -> Response:
    await exchange.submit_or_forward(RestartTask(task_id=_task_id(exchange)))
    return empty_response(204)


async def get_topics(exchange: HttpExchange) -> Response:
    _refuse_without_tracking(exchange)
    topics = exchange.herder.active_topics(exchange.connector)
    return json_response({exchange.connector: {"topics": list(topics)}})


async def reset_topics(exchange: HttpExchange) -> Response:
    _refuse_without_tracking(exchange)
    if not exchange.services.topic_tracking_allow_reset:
        raise ForbiddenError("Topic tracking reset is disabled.")
    await exchange.herder.reset_active_topics(exchange.connector)
    return empty_response(202)


async def _set_target_state(exchange: HttpExchange, target_state: TargetState) -> Response:
    await exchange.submit(SetTargetState(connector=exchange.connector, target_state=target_state))
    return empty_response(202)


def _refuse_without_tracking(exchange: HttpExchange) -> None:
    if not exchange.services.topic_tracking_enable:
        raise ForbiddenError("Topic tracking is disabled.")


def _task_id(exchange: HttpExchange) -> ConnectorTaskId:
    text = exchange.parameters["task"]
    try:
        # Like Java and unlike Python, this takes no underscores and no blanks.
        number = int(text) if "_" not in text and text == text.strip() else None
    except ValueError:
        number = None
    if number is None or number not in _INT_RANGE:
        raise ResourceNotFoundError
    return ConnectorTaskId(exchange.connector, number)


_INITIAL_STATE_NAMES = {
    TargetState.STARTED: "RUNNING",
    TargetState.PAUSED: "PAUSED",
    TargetState.STOPPED: "STOPPED",
}
# Java's String.trim() cuts these characters, and no other white space.
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
            connector=name, config=config, initial_state=body.initial_state, allow_replace=False
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
        # Apache's worker checks the connector first.
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
    """Return the config with its name; BadRequestError if the config has another name."""
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
    Route("GET", "/connectors/{connector}/status", get_status),
    Route("GET", "/connectors/{connector}/tasks/{task}/status", get_task_status),
    Route("PUT", "/connectors/{connector}/pause", pause),
    Route("PUT", "/connectors/{connector}/resume", resume),
    Route("PUT", "/connectors/{connector}/stop", stop),
    Route("POST", "/connectors/{connector}/restart", restart),
    Route("POST", "/connectors/{connector}/tasks/{task}/restart", restart_task),
    Route("GET", "/connectors/{connector}/topics", get_topics),
    Route("PUT", "/connectors/{connector}/topics/reset", reset_topics),
    Route("GET", "/connectors/{connector}/offsets", get_offsets),
    Route("PATCH", "/connectors/{connector}/offsets", alter_offsets),
    Route("DELETE", "/connectors/{connector}/offsets", reset_offsets),
)
INTERNAL_ROUTES = (
    Route("POST", "/connectors/{connector}/tasks", put_task_configs, any_content=True),
    Route("PUT", "/connectors/{connector}/fence", fence_zombies, any_content=True),
)
"""Requests of workers to the leader."""
