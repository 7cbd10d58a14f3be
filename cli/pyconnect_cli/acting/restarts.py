"""Automatic restarts of a connector and its tasks, as reported by their agents."""

from __future__ import annotations

import time
from collections.abc import Mapping

from pyconnect_cli.acting.workers import ask_workers, urls_with
from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.parsing.durations import format_duration
from pyconnect_cli.rest.agent_client import AgentChild, AgentClient, AutomaticRestarts
from pyconnect_cli.rest.model import ConnectorStatus
from pyconnect_cli.session import Session

_ENDED = {
    "permanent": "the error has to be corrected first",
    "killed": "killed by a user",
    "limit": "no more attempts",
}

Restarts = Mapping[int | None, AutomaticRestarts]
"""By task number; None is the connector."""


def automatic_restarts(session: Session, name: str, status: ConnectorStatus | None) -> Restarts:
    """Ask the workers that the status names; Java workers restart nothing by themselves."""
    if status is None:
        return {}
    try:
        AgentClient(session.client.exchange).info()
    except PyconnectError:
        return {}
    items = (status.connector, *status.tasks)
    urls = urls_with(session, {item.worker_id for item in items if item.worker_id})
    found: dict[int | None, AutomaticRestarts] = {}
    for answer in ask_workers(session, urls, lambda exchange: AgentClient(exchange).children()):
        if isinstance(answer, PyconnectError):
            continue
        for child in answer:
            if child.connector == name and child.restarts is not None:
                found[child.task] = _further(found.get(child.task), child)
    return found


def describe_restarts(restarts: AutomaticRestarts | None) -> str:
    """Return attempts and the time to the next one in one cell; `-` without attempts."""
    if restarts is None or restarts.policy == "never":
        return "-"
    text = f"{restarts.attempts} of {restarts.max_attempts}"
    if restarts.next_ms is not None:
        wait_s = max(0.0, restarts.next_ms / 1000 - time.time())
        return f"{text}, next in {format_duration(wait_s)}"
    ended = _ENDED.get(restarts.ended or "")
    return f"{text}, {ended}" if ended else text


def _further(known: AutomaticRestarts | None, child: AgentChild) -> AutomaticRestarts:
    """Return the worker's report that has attempts: a task that just moved has two reports."""
    assert child.restarts is not None
    if known is None or child.restarts.next_ms is not None or child.restarts.attempts:
        return child.restarts
    return known


def restarts_document(restarts: Restarts) -> list[dict[str, object]]:
    """Return an entry for the connector (`task` null) and each task."""
    ordered = sorted(restarts, key=lambda task: -1 if task is None else task)
    return [{"task": task, **restarts[task].raw} for task in ordered]
