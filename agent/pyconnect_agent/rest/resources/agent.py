"""`/agent`: the admin interface of this worker alone.

A Java worker has no such interface. Requests are not forwarded: each concerns this worker.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import Response

from pyconnect_agent.core.errors import AgentError, BadRequestError, NotAssignedError
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.java_text import json_text
from pyconnect_agent.core.journal import JournalQuestion, selected
from pyconnect_agent.core.log_lines import LEVELS, LogQuestion, known_level
from pyconnect_agent.herder.port import WorkerAdmin
from pyconnect_agent.rest.errors import TEXT, ResourceNotFoundError, RunsElsewhereError
from pyconnect_agent.rest.exchange import HttpExchange, json_response
from pyconnect_agent.rest.routing import Route

LOG = logging.getLogger(__name__)

SMALL_BODY_BYTES = 65_536
PHASE_MEMBERS = ("phase", "run_id", "expect_config_sha256")


async def about(exchange: HttpExchange) -> Response:
    return json_response(await _worker(exchange).about())


async def effective_config(exchange: HttpExchange) -> Response:
    return json_response([value.to_json() for value in _worker(exchange).config()])


async def children(exchange: HttpExchange) -> Response:
    return json_response(await _worker(exchange).children())


async def connectors(exchange: HttpExchange) -> Response:
    return json_response(_worker(exchange).connectors())


async def acls(exchange: HttpExchange) -> Response:
    phase = exchange.request.query_params.get("phase")
    return json_response(await _worker(exchange).acls(phase))


async def metrics(exchange: HttpExchange) -> Response:
    from pyconnect_agent.process.exposition import prometheus_text

    return Response(prometheus_text(await _worker(exchange).metrics()), media_type=TEXT)


async def metrics_json(exchange: HttpExchange) -> Response:
    return json_response([metric.to_json() for metric in await _worker(exchange).metrics()])


async def kill_task(exchange: HttpExchange) -> Response:
    force = _flag(await exchange.body(SMALL_BODY_BYTES), "force")
    task_id = _task_id(exchange)
    try:
        pid = _worker(exchange).kill(task_id, force=force)
    except NotAssignedError as error:
        raise _elsewhere(exchange, error) from error
    return json_response(
        {"connector": task_id.connector, "task": task_id.task, "force": force, "pid": pid},
        HTTPStatus.ACCEPTED,
    )


async def task_stacks(exchange: HttpExchange) -> Response:
    try:
        text = await _worker(exchange).stacks(_task_id(exchange))
    except NotAssignedError as error:
        raise _elsewhere(exchange, error) from error
    return Response(text, media_type=TEXT)


async def logs(exchange: HttpExchange) -> Response:
    given: dict[str, Any] = {}
    for name, text in exchange.request.query_params.items():
        if name == "level":
            given[name] = known_level(text)
            if given[name] is None:
                raise BadRequestError(f"level={text}: must be one of {', '.join(LEVELS)}.")
        elif name not in _LOG_NUMBERS:
            raise BadRequestError(f"{name} is not a parameter: level, {', '.join(_LOG_NUMBERS)}.")
        elif _is_number(text):
            given[name] = int(text)
        else:
            raise BadRequestError(f"{name}={text}: must be a number that is not negative.")
    question = LogQuestion(connector=exchange.connector, **given)
    return json_response(_worker(exchange).logs(question))


async def drain(exchange: HttpExchange) -> Response:
    undrain = _flag(await exchange.body(SMALL_BODY_BYTES), "undrain")
    _worker(exchange).drain(undrain=undrain)
    return json_response({"undrain": undrain}, HTTPStatus.ACCEPTED)


async def journal(exchange: HttpExchange) -> Response:
    """Answer with the newest selected records that the user may see, in the order of time."""
    changes = exchange.services.journal
    if changes is None:
        raise BadRequestError(
            "This worker keeps no journal: set agent.journal.topic or agent.journal.file."
        )
    given: dict[str, Any] = {}
    for name, text in exchange.request.query_params.items():
        if name in ("connector", "user"):
            given[name] = text
        elif name in ("since_ms", "limit") and _is_number(text):
            given[name] = int(text)
        else:
            raise BadRequestError(
                f"{name}={text}: parameters are connector, user, and the numbers since_ms, limit."
            )
    question, caller = JournalQuestion(**given), exchange.caller

    def may_see(record: Mapping[str, Any]) -> bool:
        connector = record.get("connector")
        limited = caller.user is not None and "*" not in caller.user.connectors
        return not limited if connector is None else caller.may_see(connector)

    timeout_ms = exchange.remaining_ms()
    found = await asyncio.to_thread(
        lambda: selected(changes.journal.read(question.since_ms, timeout_ms), question, may_see)
    )
    return json_response({"shared": changes.journal.shared, "records": found})


async def change_phase(exchange: HttpExchange) -> Response:
    """Answer first, then restart, so that the client gets the answer."""
    document, names = _document(await exchange.body(SMALL_BODY_BYTES)), PHASE_MEMBERS
    if not isinstance(document, dict) or document.keys() != set(names):
        raise BadRequestError(f"The body must be an object with {', '.join(names)}.")
    values = [document[name] for name in names]
    if not all(isinstance(value, str) for value in values):
        raise BadRequestError(f"{', '.join(names)} must be texts.")
    worker = _worker(exchange)
    answer = await worker.change_phase(*values)
    response = json_response(answer, HTTPStatus.ACCEPTED)
    response.background = BackgroundTask(_restart, worker)
    return response


async def _restart(worker: WorkerAdmin) -> None:
    try:
        worker.restart_for_phase()
    except AgentError as error:
        LOG.error("worker could not be restarted", extra={"reason": error.message})


def _worker(exchange: HttpExchange) -> WorkerAdmin:
    assert exchange.services.admin is not None
    return exchange.services.admin.worker


def _task_id(exchange: HttpExchange) -> ConnectorTaskId:
    text = exchange.parameters["task"]
    if not _is_number(text):
        raise ResourceNotFoundError
    return ConnectorTaskId(exchange.connector, int(text))


def _is_number(text: str) -> bool:
    """Return whether a text is a number of at most 64 bits that is not negative."""
    return text.isascii() and text.isdecimal() and len(text) < LONG_DIGITS


def _flag(body: bytes, name: str) -> bool:
    """Return the value of the only member that a body may have, or False.

    Raises BadRequestError for other bodies. Connect's own endpoints are less strict, but a mistyped
    `{"undrian": true}` must not drain.
    """
    if not body.strip():
        return False
    document = _document(body)
    value = document.get(name, False) if isinstance(document, dict) else None
    if not isinstance(document, dict) or document.keys() - {name} or not isinstance(value, bool):
        raise BadRequestError(f'The body must be empty or {{"{name}": true|false}}.')
    return value


def _document(body: bytes) -> object:
    try:
        return json_text.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError(f"The body is not JSON: {error}") from error


def _elsewhere(exchange: HttpExchange, error: NotAssignedError) -> RunsElsewhereError:
    path = exchange.request.scope["raw_path"].decode("latin-1")
    url = None if error.target_url is None else error.target_url.rstrip("/") + path
    return RunsElsewhereError(error.message, url)


def guarded(route: Route) -> Route:
    """Return the route with a check of the admin interface's credentials.

    The role of a user of `agent.rest.users` is checked before.
    """

    async def check_and_answer(exchange: HttpExchange) -> Response:
        admin = exchange.services.admin
        if admin is None:
            raise ResourceNotFoundError
        if exchange.caller.user is None:
            await admin.access.check(exchange.request)
        # A browser sends credentials that it knows with the requests of each page.
        exchange.refuse_foreign_page()
        return await route.resource(exchange)

    return replace(route, resource=check_and_answer)


LONG_DIGITS = 19
_TASK = "/agent/tasks/{connector}/{task}"
_LOG_NUMBERS = ("task", "since_ms", "after", "limit")
_ROUTES = (
    Route("GET", "/agent", about, any_content=True),
    Route("GET", "/agent/config", effective_config, any_content=True),
    Route("GET", "/agent/tasks", children, any_content=True),
    Route("GET", "/agent/connectors", connectors, any_content=True),
    Route("GET", "/agent/metrics", metrics, any_content=True, produces=TEXT),
    Route("GET", "/agent/metrics.json", metrics_json, any_content=True),
    Route("GET", "/agent/acls", acls, any_content=True),
    Route("GET", "/agent/journal", journal, any_content=True),
    Route("POST", f"{_TASK}/kill", kill_task),
    Route("GET", f"{_TASK}/stacks", task_stacks, any_content=True, produces=TEXT),
    Route("GET", "/agent/connectors/{connector}/logs", logs, any_content=True),
    Route("POST", "/agent/drain", drain),
    Route("POST", "/agent/phase", change_phase),
)
ROUTES = tuple(map(guarded, _ROUTES))
METRICS_ROUTES = (Route("GET", "/metrics", metrics, any_content=True, produces=TEXT),)
