"""Requests to each single worker of a cluster, all at once; automatic restarts by agents."""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit

from pyconnect_cli.errors import (
    NotFound,
    OutOfTime,
    PreconditionFailed,
    PyconnectError,
    Unreachable,
    UsageError,
)
from pyconnect_cli.parsing.values import format_duration
from pyconnect_cli.rest.agent_client import AgentClient, AutomaticRestarts
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.endpoint import base_url, in_background
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.rest.model import ConnectCluster, ConnectorStatus
from pyconnect_cli.session import Session

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHealth:
    """One worker; `status` is healthy, starting, unhealthy, unreachable or failed.

    `version` is that of Kafka's REST interface. `agent`: the worker is an agent, not a Java worker;
    False if it did not answer. `agent_version`: an agent's own version, empty for a Java worker.
    """

    url: str
    status: str
    message: str
    version: str = ""
    agent: bool = False
    agent_version: str = ""


def worker_urls(session: Session, *, everywhere: bool) -> list[str]:
    """Return the addresses in force; with `everywhere` also those that statuses name."""
    if everywhere:
        return urls_with(session, assigned_workers(session.client.connector_statuses().values()))
    return list(session.client.exchange.urls)


def urls_with(session: Session, workers: Iterable[str]) -> list[str]:
    """Return the addresses in force and those of `workers`, one for each worker."""
    urls = list(session.client.exchange.urls)
    known = {address for url in urls for address in _addresses(url)}
    for url in _urls_of(session, workers):
        addresses = _addresses(url)
        if not addresses & known:
            known |= addresses
            urls.append(url)
    return urls


def _urls_of(session: Session, workers: Iterable[str]) -> Iterator[str]:
    """Yield the addresses of workers; one that advertises no address cannot be asked."""
    scheme = urlsplit(session.client.exchange.urls[0]).scheme
    for worker in sorted(workers):
        with suppress(UsageError):
            base_url(url := f"{scheme}://{worker}")
            yield url


def _addresses(url: str) -> set[tuple[str, int]]:
    """Return the resolved addresses of a URL: `localhost` and `127.0.0.1` are one worker."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return {(host, port)}
    return {(str(address[0]), port) for *_, address in found}


def connect_cluster(session: Session, statuses: Iterable[ConnectorStatus | None]) -> ConnectCluster:
    """Return the identity of the Connect cluster; the context has the group of Java workers.

    `statuses` name workers of this cluster.
    """
    exchange = session.client.exchange
    group_id = None
    if session.worker.agent:
        with suppress(PyconnectError):
            group_id = AgentClient(exchange).config().get("group.id")
    return ConnectCluster(
        group_id=group_id or session.settings.group or "",
        workers=frozenset({*assigned_workers(statuses), *map(address_of, exchange.urls)}),
    )


def address_of(url: str) -> str:
    """Return an address in the form of statuses: `host:port`."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"


def ask_workers(
    session: Session, urls: Sequence[str], question: Callable[[Exchange], Answer]
) -> list[Answer | PyconnectError]:
    """Ask all workers at once, so that a worker that hangs does not delay the others."""
    _ = session.endpoint  # secrets are fetched once, before the threads

    def ask(url: str) -> Answer:
        exchange = session.exchange_with(url)
        try:
            return question(exchange)
        finally:
            exchange.close()

    return ask_all(urls, ask)


def workers_health(session: Session, urls: Sequence[str]) -> list[WorkerHealth]:
    """Ask all workers at once for their health; a failed request is a result, not an error."""
    answers = ask_workers(session, urls, worker_health)
    return [
        WorkerHealth(url=url, status="failed", message=answer.message)
        if isinstance(answer, PyconnectError)
        else answer
        for url, answer in zip(urls, answers, strict=True)
    ]


def worker_health(exchange: Exchange) -> WorkerHealth:
    """Ask the one worker of an exchange; a failed request is a result, not an error."""
    (url,) = exchange.urls
    client = ConnectClient(exchange)
    try:
        info = client.worker_info()
        try:
            health = client.health()
            status, message = health.status, health.message
        except (NotFound, PreconditionFailed):
            # Workers before 4.0 have no /health; only their answer shows that they run.
            status, message = "healthy", "answers; it has no /health yet"
        return WorkerHealth(
            url=url,
            status=status,
            message=message,
            version=info.version,
            agent=info.agent,
            agent_version=info.agent_version,
        )
    except (Unreachable, OutOfTime) as exc:
        return WorkerHealth(url=url, status="unreachable", message=exc.message)
    except PyconnectError as exc:
        return WorkerHealth(url=url, status="failed", message=exc.message)


def assigned_workers(statuses: Iterable[ConnectorStatus | None]) -> set[str]:
    """Return the workers (`host:port`) that statuses name."""
    return {
        item.worker_id
        for status in statuses
        if status
        for item in (status.connector, *status.tasks)
        if item.worker_id
    }


Item = TypeVar("Item")


def ask_all(
    items: Sequence[Item], question: Callable[[Item], Answer], *, at_once: int | None = None
) -> list[Answer | PyconnectError]:
    """Ask all at once, or `at_once` of them; return answers in the order of the items.

    An error is in the place of an answer.
    """

    def ask(item: Item) -> Answer | PyconnectError:
        try:
            return question(item)
        except PyconnectError as error:
            return error

    found: list[Answer | PyconnectError] = []
    for start in range(0, len(items), at_once or len(items) or 1):
        part = items[start : start + (at_once or len(items))]
        futures = [in_background(partial(ask, item)) for item in part]
        found += [future.result() for future in futures]
    return found


_ENDED = {
    "permanent": "the error has to be corrected first",
    "killed": "killed by a user",
    "limit": "no more attempts",
}

Restarts = Mapping[int | None, AutomaticRestarts]
"""Automatic restarts by task number; None is the connector."""


def automatic_restarts(session: Session, name: str, status: ConnectorStatus | None) -> Restarts:
    """Ask the workers that the status names; Java workers restart nothing by themselves."""
    if status is None:
        return {}
    try:
        AgentClient(session.client.exchange).info()
    except PyconnectError:
        return {}
    items = (status.connector, *status.tasks)
    workers = {item.worker_id for item in items if item.worker_id}
    urls = urls_with(session, workers)
    if len(session.client.exchange.urls) > 1:
        # Skip given workers without a part of the connector: one of them may be frozen.
        named = {address for url in _urls_of(session, workers) for address in _addresses(url)}
        urls = [url for url in urls if _addresses(url) & named]
    found: dict[int | None, AutomaticRestarts] = {}
    for answer in ask_workers(session, urls, lambda exchange: AgentClient(exchange).children()):
        if isinstance(answer, PyconnectError):
            continue
        for child in answer:
            new = child.restarts
            if child.connector != name or new is None:
                continue
            # Two workers report a task that has just moved: the report with attempts counts.
            if child.task not in found or new.next_ms is not None or new.attempts:
                found[child.task] = new
    return found


def describe_restarts(restarts: AutomaticRestarts | None) -> str:
    """Return attempts and the time until the next one as a table cell; `-` without attempts."""
    if restarts is None or restarts.policy == "never":
        return "-"
    text = f"{restarts.attempts} of {restarts.max_attempts}"
    if restarts.next_ms is not None:
        wait_s = max(0.0, restarts.next_ms / 1000 - time.time())
        return f"{text}, next in {format_duration(wait_s)}"
    ended = _ENDED.get(restarts.ended or "")
    return f"{text}, {ended}" if ended else text


def restarts_document(restarts: Restarts) -> list[dict[str, object]]:
    """Return an entry for the connector (`task` null) and each task."""
    ordered = sorted(restarts, key=lambda task: -1 if task is None else task)
    return [{"task": task, **restarts[task].raw} for task in ordered]
