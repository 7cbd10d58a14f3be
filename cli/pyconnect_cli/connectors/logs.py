"""`connectors logs`: a connector's log lines from all workers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

import typer

from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.acting.wait import looks
from pyconnect_cli.acting.workers import ask_workers, worker_urls
from pyconnect_cli.errors import PyconnectError, UsageError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.styles import printable
from pyconnect_cli.rest.agent_client import AgentClient, AgentLog, AgentLogLine, LogFilter
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import NameArgument, option

app = typer.Typer()

LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
PAUSE_S = 1.0
ROUNDS_PER_LOOK = 10


@dataclass(slots=True)
class Following:
    """The position up to which each worker's lines were printed; `urls`: all workers' addresses."""

    places: dict[str, AgentLog] = field(default_factory=dict)
    urls: list[str] = field(default_factory=list)
    rounds: int = 0

    def workers(self, session: Session) -> list[str]:
        """Return all addresses; look them up again now and then, because workers come and go."""
        if self.rounds % ROUNDS_PER_LOOK == 0:
            self.urls = worker_urls(session, everywhere=True)
        self.rounds += 1
        return self.urls

    def after(self, url: str) -> int:
        place = self.places.get(url)
        return 0 if place is None else place.following

    def take(self, url: str, log: AgentLog) -> bool:
        """Note an answer; return False if the worker was restarted since its last answer."""
        before = self.places.get(url)
        self.places[url] = log
        if before is None or before.epoch == log.epoch:
            return True
        del self.places[url]
        return False


@app.command()
def logs(
    context: typer.Context,
    name: NameArgument,
    *,
    task: Annotated[
        int | None, option("--task N", "number of one task, instead of all", least=0)
    ] = None,
    level: Annotated[
        str, option("--level LEVEL", "lowest level: DEBUG, INFO, WARN, ERROR")
    ] = "ALL",
    since: Annotated[
        str | None, option("--since TIME", "age of the oldest line, for example 10m")
    ] = None,
    tail: Annotated[int | None, option("--tail N", "number of the last lines", least=0)] = None,
    follow: Annotated[
        bool, option("--follow", "new lines too, until Ctrl-C, or --timeout when it is given")
    ] = False,
) -> None:
    """Print the last log lines of a connector and its tasks, those before a crash included.

    The command asks all workers and puts the lines in order of time. Agents only (exit 9): the log
    of a Java worker is a file on its host. -o ndjson prints an object for each line.
    """
    session = session_of(context)
    if level.upper() not in LEVELS:
        raise UsageError(f"`{level}` is not a level", hint=", ".join(LEVELS))
    since_ms = 0
    if since is not None:
        since_ms = max(0, int((time.time() - parse_duration(since, what="--since")) * 1000))
    wanted = LogFilter(connector=name, task=task, level=level.upper(), since_ms=since_ms)
    following = Following()
    failures: list[PyconnectError] = []
    newest = wanted if tail is None else replace(wanted, limit=tail)
    found = _ask(session, newest, following, failures)
    if not found:
        known_connector(session, name)
    for line in found if tail is None else found[len(found) - min(tail, len(found)) :]:
        _print(session, line)
    if failures and not following.places:
        raise failures[0]
    if not found and not follow:
        session.output.message("no lines")
    if follow:
        # A worker that did not answer is asked again later.
        for lines in looks(
            session, PAUSE_S, lambda: _ask(session, wanted, following, []), at_once=False
        ):
            for line in lines:
                _print(session, line)
        return
    for failure in failures[1:]:
        session.output.error(failure)
    if failures:
        raise failures[0]


def _ask(
    session: Session, wanted: LogFilter, following: Following, failures: list[PyconnectError]
) -> list[AgentLogLine]:
    """Return the lines of all workers that follow the printed ones, in order of time."""
    urls = following.workers(session)
    places: Mapping[str, int] = {url: following.after(url) for url in urls}

    def question(exchange: Exchange) -> AgentLog:
        return AgentClient(exchange).logs(wanted, after=places[exchange.urls[0]])

    lines: list[AgentLogLine] = []
    for url, answer in zip(urls, ask_workers(session, urls, question), strict=True):
        if isinstance(answer, PyconnectError):
            failures.append(answer)
        elif following.take(url, answer):
            lines += answer.lines
    return sorted(lines, key=lambda line: line.time_ms)


def _print(session: Session, line: AgentLogLine) -> None:
    moment = datetime.fromtimestamp(line.time_ms / 1000).astimezone()
    first, *below = line.text.splitlines() or [""]
    head = f"{moment:%Y-%m-%d %H:%M:%S}.{line.time_ms % 1000:03d} {line.level:5}"
    head = session.output.paint(head, _STYLES.get(line.level))
    parts = [f"{head} {line.name}  {printable(first)}", *(printable(rest) for rest in below)]
    text = "\n".join(parts)
    session.output.document(line.raw, text=text, name=line.name)


_STYLES = {"WARN": "warning", "ERROR": "bad", "FATAL": "bad"}
