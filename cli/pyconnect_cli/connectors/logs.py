"""`connectors logs dlq`: a connector's log lines from all workers, and a sink's dead letters.

A worker adds error and origin as headers of a dead letter if the connector has
errors.deadletterqueue.context.headers.enable (KIP-298).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated

import typer

from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.acting.wait import looks
from pyconnect_cli.acting.workers import ask_workers, worker_urls
from pyconnect_cli.errors import PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.kafka.cluster import kafka_cluster
from pyconnect_cli.kafka.reader import TopicRecord, some_records
from pyconnect_cli.parsing.arguments import NameArgument
from pyconnect_cli.parsing.durations import parse_duration
from pyconnect_cli.render.styles import counted, printable
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.agent_client import AgentClient, AgentLog, AgentLogLine, LogFilter
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.topics.commands import (
    DEFAULT_MAX,
    PURPOSE,
    FromBeginningOption,
    MaxOption,
    record_json,
    shown_bytes,
    shown_time,
)
from pyconnect_clients.connect_names import DEAD_LETTER_TOPIC

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
        """Return all addresses; the lookup is repeated, because workers come and go."""
        if self.rounds % ROUNDS_PER_LOOK == 0:
            self.urls = worker_urls(session, everywhere=True)
        self.rounds += 1
        return self.urls

    def after(self, url: str) -> int:
        place = self.places.get(url)
        return 0 if place is None else place.following

    def take(self, url: str, log: AgentLog) -> bool:
        """Note an answer; return False if the worker was restarted since the answer before."""
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
        int | None,
        typer.Option("--task", metavar="N", min=0, help="number of one task, instead of all"),
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help="lowest level: DEBUG, INFO, WARN, ERROR")
    ] = "ALL",
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="age of the oldest line, for example 10m"),
    ] = None,
    tail: Annotated[
        int | None, typer.Option("--tail", metavar="N", min=0, help="number of the last lines")
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="new lines too, until Ctrl-C, or --timeout when it is given"),
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
    """Return the lines of all workers that come after what was printed, in order of time."""
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


HEADERS = "errors.deadletterqueue.context.headers.enable"
PREFIX = "__connect.errors."


def context_of(record: TopicRecord) -> dict[str, str | None]:
    """Return the headers that the worker added, by name without their prefix."""
    return {
        name.removeprefix(PREFIX): None if data is None else data.decode(errors="replace")
        for name, data in record.headers
        if name.startswith(PREFIX)
    }


def _from(record: TopicRecord) -> str:
    known = context_of(record)
    if "topic" not in known:
        return "-"
    return f"{known['topic']}:{known.get('partition')}@{known.get('offset')}"


def _error(record: TopicRecord) -> str:
    known = context_of(record)
    name = (known.get("exception.class.name") or "").rpartition(".")[2]
    return ": ".join(text for text in (name, known.get("exception.message")) if text) or "-"


COLUMNS: Sequence[Column[TopicRecord]] = (
    Column("PARTITION", lambda record: str(record.partition), right=True, wide=True),
    Column("OFFSET", lambda record: str(record.offset), right=True),
    Column("TIME", lambda record: shown_time(record.timestamp_ms), whole=True),
    Column("FROM", _from, whole=True),
    Column("TASK", lambda record: context_of(record).get("task.id") or "-", wide=True),
    Column("STAGE", lambda record: context_of(record).get("stage") or "-"),
    Column("ERROR", _error, prose=True),
    Column("KEY", lambda record: shown_bytes(record.key), wide=True),
    Column("VALUE", lambda record: shown_bytes(record.value), prose=True, wide=True),
)


@app.command("dlq")
def dead_letters(
    context: typer.Context,
    name: NameArgument,
    *,
    most: MaxOption = DEFAULT_MAX,
    from_beginning: FromBeginningOption = False,
) -> None:
    """Show the newest records of a sink's dead letter queue with their errors.

    Needs --kafka-bootstrap. With -o json each record has its error with the stack trace.
    """
    session = session_of(context)
    config = known_connector(session, name).config
    topic = config.get(DEAD_LETTER_TOPIC)
    if not topic:
        raise PreconditionFailed(
            f"{name} has no dead letter queue: {DEAD_LETTER_TOPIC} is not set",
            hint="only sinks have one; it also needs errors.tolerance=all",
        )
    settings = kafka_cluster(session, PURPOSE).librdkafka()
    found = some_records(settings, topic, most, newest=not from_beginning)
    records = [r for r in found if context_of(r).get("connector.name", name) == name]
    if len(records) < len(found):
        others = len(found) - len(records)
        session.output.message(
            f"left out: {counted(others, 'record')} of other connectors in {topic}"
        )
    if records and not any(map(context_of, records)):
        session.output.warning(f"{topic} does not say why: set {HEADERS}=true for new records")
    session.output.listing(
        COLUMNS,
        records,
        document=[{**record_json(record), "error": context_of(record)} for record in records],
        names=[f"{record.topic}-{record.partition}@{record.offset}" for record in records],
        empty=f"{topic} has no record of {name}",
    )
