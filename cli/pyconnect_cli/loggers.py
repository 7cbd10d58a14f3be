"""`pyconnect loggers`: log levels of running workers.

A request with a name sets the level of every known logger whose name begins with it, and `root`
sets all of them (KIP-495). A level cannot be removed: a logger without its own level gets the level
that it inherited before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from pyconnect_cli.errors import NotFound, PartialFailure, PyconnectError, Unreachable, UsageError
from pyconnect_cli.parsing.nouns import did_you_mean
from pyconnect_cli.parsing.values import format_duration, local_text, parse_duration
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.answers import LoggerLevel
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ChangingVerb, argument, option

app = typer.Typer(help="Read and set log levels of running workers.")

LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF", "ALL")

COLUMNS: Sequence[Column[LoggerLevel]] = (
    Column("LOGGER", lambda logger: logger.name),
    Column("LEVEL", lambda logger: logger.level or "-"),
    Column("SINCE", lambda it: "start" if (ms := it.last_modified) is None else local_text(ms)),
)

LoggerArgument = Annotated[str, argument("LOGGER", "name of the logger, or root")]


@app.command("list")
def list_loggers(context: typer.Context) -> None:
    """List the loggers whose level is set on the worker that answers."""
    session = session_of(context)
    loggers = session.client.loggers()
    document = {logger.name: logger.raw for logger in loggers}
    session.output.listing(COLUMNS, loggers, document=document)


@app.command()
def get(context: typer.Context, logger: LoggerArgument) -> None:
    """Show one logger's level."""
    session = session_of(context)
    try:
        found = session.client.logger(logger)
    except NotFound as exc:
        known = [each.name for each in session.client.loggers()]
        raise NotFound(
            f"logger `{logger}` has no level",
            hint=did_you_mean(logger, known)
            or "list the loggers that have one: pyconnect loggers list",
        ) from exc
    session.output.document(found.raw, text=found.level or "-", name=logger)


@app.command("set", cls=ChangingVerb)
def set_level(
    context: typer.Context,
    logger: LoggerArgument,
    level: Annotated[str, argument("LEVEL", ", ".join(LEVELS))],
    *,
    scope: Annotated[
        str,
        option("--scope SCOPE", "workers to change: `worker` (the one that answers) or `cluster`"),
    ] = "worker",
    duration: Annotated[
        str | None, option("--for TIME", "time after which the command sets the level back, as 15m")
    ] = None,
) -> None:
    """Set the level of a logger and of all loggers whose names begin with its name.

    With --for the command waits and then sets the levels back. A logger without its own level gets
    the level that it inherited. With `--scope cluster` all workers get the former levels of the
    worker that answers.
    """
    session = session_of(context)
    wanted = level.upper()
    if wanted not in LEVELS:
        raise UsageError(f"`{level}` is not a log level", hint=", ".join(LEVELS))
    if scope.lower() not in {"worker", "cluster"}:
        raise UsageError(f"--scope: `{scope}` is neither worker nor cluster")
    if duration is None:
        _set(session, session.client, logger, wanted, scope.lower())
        return
    seconds = parse_duration(duration, what="--for")
    client = _one_worker(session)
    before = {known.name: known.level for known in client.loggers() if known.level}
    try:
        # Inside `try`: a signal may arrive when the worker has set the level and not yet answered.
        _set(session, client, logger, wanted, scope.lower())
        session.output.message(f"for {format_duration(seconds)}; Ctrl-C sets it back at once")
        time.sleep(seconds)
    finally:
        session.renew_time()
        _restore(session, client, levels_to_restore(before, logger, wanted), scope.lower())


def _one_worker(session: Session) -> ConnectClient:
    """Return a client of the first worker that answers, because workers' levels differ."""
    *others, last = session.client.exchange.urls
    for url in others:
        client = session.client_of(url)
        try:
            client.worker_info()
        except Unreachable:
            continue
        return client
    return session.client_of(last)


def _restore(
    session: Session, client: ConnectClient, steps: Sequence[tuple[str, str]], scope: str
) -> None:
    """Set levels back; after a failure go on with the others. Raises PartialFailure at the end."""
    failed = []
    for name, level in steps:
        try:
            client.set_logger(name, level, scope=scope)
        except PyconnectError as error:
            session.output.error(error)
            failed.append(f"{name} to {level}")
        else:
            session.output.message(f"{name}: set back to {level}")
    if failed:
        raise PartialFailure(f"not set back: {', '.join(failed)}")


def _set(session: Session, client: ConnectClient, logger: str, level: str, scope: str) -> None:
    changed = client.set_logger(logger, level, scope=scope)
    if session.output.machine:
        session.output.document(changed if changed is not None else [logger])
    elif changed is None:
        session.output.line(f"{logger}: {level} on every worker")
    elif not changed:
        session.output.message(f"{logger}: already {level}")
    else:
        for name in changed:
            session.output.line(f"{name}: {level}")


ROOT = "root"


def levels_to_restore(
    before: Mapping[str, str], logger: str, level: str
) -> tuple[tuple[str, str], ...]:
    """Return the loggers to set, with their levels, in the order in which they have to be set.

    `before`: the levels of all known loggers before `logger` was set to `level`. The result is
    empty if no level changed.
    """
    name = ROOT if logger.lower() == ROOT else logger
    wanted = {known: before[known] for known in before if _affects(name, known)}
    wanted.setdefault(name, _inherited(before, name))
    return levels_to_set(wanted, dict.fromkeys(wanted, level))


def levels_to_set(
    wanted: Mapping[str, str], present: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return the loggers to set, with their levels, in the order in which they have to be set.

    A logger that only `present` has gets the level that it inherits.
    """
    every = {name: wanted.get(name) or _inherited(wanted, name) for name in {*wanted, *present}}
    now = {name: present.get(name) or _inherited(present, name) for name in every}
    steps = []
    # A level applies to all names that begin with the logger's name: set those after it.
    for known in sorted(every, key=lambda known: (known != ROOT, len(known), known)):
        if now[known] != every[known]:
            steps.append((known, every[known]))
            now.update({other: every[known] for other in now if _affects(known, other)})
    return tuple(steps)


def _affects(name: str, other: str) -> bool:
    return name == ROOT or other.startswith(name)


def _inherited(levels: Mapping[str, str], name: str) -> str:
    while name not in levels and name:
        name = name.rpartition(".")[0]
    return levels.get(name) or levels.get(ROOT, "INFO")
