"""Status, target states, restarts and topics of connectors."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from pyconnect_agent.core.errors import ForbiddenError, NotFoundError
from pyconnect_agent.core.herder.requests import (
    RestartConnector,
    RestartConnectorAndTasks,
    RestartTask,
    SetTargetState,
    StopConnector,
)
from pyconnect_agent.core.ids import ConnectorTaskId, TargetState
from pyconnect_agent.core.reporting import task_status_json
from pyconnect_agent.rest.errors import ResourceNotFoundError
from pyconnect_agent.rest.exchange import Exchange, empty_response, json_response
from pyconnect_agent.rest.forwarding import WorkerResponse
from pyconnect_agent.rest.routing import Route

_INT_RANGE = range(-(2**31), 2**31)


async def get_status(exchange: Exchange) -> Response:
    status = exchange.herder.connector_status(exchange.connector)
    if status is None:
        raise NotFoundError(f"No status found for connector {exchange.connector}")
    return json_response(status.to_json())


async def get_task_status(exchange: Exchange) -> Response:
    task_id = _task_id(exchange)
    status = exchange.herder.task_status(task_id.connector, task_id.task)
    if status is None:
        raise NotFoundError(f"No status found for task {task_id}")
    return json_response(task_status_json(task_id.task, status))


async def pause(exchange: Exchange) -> Response:
    return await _set_target_state(exchange, TargetState.PAUSED)


async def resume(exchange: Exchange) -> Response:
    return await _set_target_state(exchange, TargetState.STARTED)


async def stop(exchange: Exchange) -> Response:
    await exchange.submit_or_forward(StopConnector(connector=exchange.connector))
    return empty_response(204)


async def restart(exchange: Exchange) -> Response:
    """Restart the connector instance alone, or what the flags select (KIP-745)."""
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


async def restart_task(exchange: Exchange) -> Response:
    await exchange.submit_or_forward(RestartTask(task_id=_task_id(exchange)))
    return empty_response(204)


async def get_topics(exchange: Exchange) -> Response:
    _refuse_without_tracking(exchange)
    topics = exchange.herder.active_topics(exchange.connector)
    return json_response({exchange.connector: {"topics": list(topics)}})


async def reset_topics(exchange: Exchange) -> Response:
    _refuse_without_tracking(exchange)
    if not exchange.services.topic_tracking_allow_reset:
        raise ForbiddenError("Topic tracking reset is disabled.")
    await exchange.herder.reset_active_topics(exchange.connector)
    return empty_response(202)


async def _set_target_state(exchange: Exchange, target_state: TargetState) -> Response:
    await exchange.submit(SetTargetState(connector=exchange.connector, target_state=target_state))
    return empty_response(202)


def _refuse_without_tracking(exchange: Exchange) -> None:
    if not exchange.services.topic_tracking_enable:
        raise ForbiddenError("Topic tracking is disabled.")


def _task_id(exchange: Exchange) -> ConnectorTaskId:
    text = exchange.parameters["task"]
    try:
        # Like Java, but not Python: no underscores, no blanks.
        number = int(text) if "_" not in text and text == text.strip() else None
    except ValueError:
        number = None
    if number is None or number not in _INT_RANGE:
        raise ResourceNotFoundError
    return ConnectorTaskId(exchange.connector, number)


ROUTES = (
    Route("GET", "/connectors/{connector}/status", get_status),
    Route("GET", "/connectors/{connector}/tasks/{task}/status", get_task_status),
    Route("PUT", "/connectors/{connector}/pause", pause),
    Route("PUT", "/connectors/{connector}/resume", resume),
    Route("PUT", "/connectors/{connector}/stop", stop),
    Route("POST", "/connectors/{connector}/restart", restart),
    Route("POST", "/connectors/{connector}/tasks/{task}/restart", restart_task),
    Route("GET", "/connectors/{connector}/topics", get_topics),
    Route("PUT", "/connectors/{connector}/topics/reset", reset_topics),
)
