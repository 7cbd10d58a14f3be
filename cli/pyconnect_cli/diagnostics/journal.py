"""`pyconnect journal`: the changing requests that agents have recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from pyconnect_cli.acting.workers import ask_workers, worker_urls
from pyconnect_cli.errors import PyconnectError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.styles import printable
from pyconnect_cli.render.tables import Column
from pyconnect_cli.rest.agent_client import AgentClient, AgentJournal, RecordedChange
from pyconnect_cli.rest.exchange import Exchange
from pyconnect_cli.session import Session, session_of

app = typer.Typer(help="Show which user has changed what on the agents of a cluster.")


@app.callback()
def journal() -> None:
    """Show which user has changed what on the agents of a cluster."""


SinceOption = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="age of the oldest change, for example 24h"),
]
UserOption = Annotated[
    str | None, typer.Option("--user", metavar="USER", help="user that has sent the request")
]
MaxOption = Annotated[
    int, typer.Option("--max", metavar="N", min=1, help="most changes, the newest ones")
]
DEFAULT_MAX = 1_000


def change_text(change: RecordedChange) -> str:
    """Say what a request has changed, or what it has asked for."""
    if change.changed_config:
        before, after = change.before or {}, change.after or {}
        keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
        if change.before is None:
            return "created"
        return "deleted" if change.after is None else f"config: {', '.join(keys)}"
    text = f"{change.method} {change.path}"
    return f"{text}: {change.error}" if change.error else text


def _time(change: RecordedChange) -> str:
    return f"{datetime.fromtimestamp(change.time_ms / 1000).astimezone():%Y-%m-%d %H:%M:%S}"


def recorded_changes(
    session: Session,
    *,
    connector: str | None = None,
    user: str | None = None,
    since: str | None = None,
    most: int = DEFAULT_MAX,
) -> list[RecordedChange]:
    """Return the selected changes, the oldest first.

    One agent is asked for a journal that the group shares, all for journals in files.
    """
    since_ms = None
    if since is not None:
        since_ms = max(0, int((time.time() - parse_duration(since, what="--since")) * 1000))

    def question(exchange: Exchange) -> AgentJournal:
        return AgentClient(exchange).journal(
            connector=connector, user=user, since_ms=since_ms, limit=most
        )

    urls = worker_urls(session, everywhere=True)
    found: dict[str, RecordedChange] = {}
    failure: PyconnectError | None = None
    answered = False
    for some in (urls[:1], urls[1:]):
        for answer in ask_workers(session, some, question):
            if isinstance(answer, PyconnectError):
                failure = failure or answer
            elif answer.shared:
                return list(answer.records)
            else:
                answered = True
                found |= {record.id: record for record in answer.records}
    if failure is not None and not answered:
        raise failure
    if failure is not None:
        session.output.error(failure)
    return sorted(found.values(), key=lambda record: (record.time_ms, record.number))[-most:]


def show_changes(session: Session, changes: Sequence[RecordedChange], *, connector: bool) -> None:
    named: Sequence[Column[RecordedChange]] = (
        Column("CONNECTOR", lambda change: change.connector or "-"),
    )
    session.output.listing(
        (
            Column("NUMBER", lambda change: str(change.number), right=True),
            Column("TIME", _time, whole=True),
            Column("USER", lambda change: printable(change.user or "-")),
            Column("FROM", lambda change: change.address, wide=True),
            *(named if connector else ()),
            Column("CHANGE", lambda change: printable(change_text(change)), prose=True),
            Column("STATUS", lambda change: str(change.status), right=True),
        ),
        changes,
        document=[change.raw for change in changes],
        names=[str(change.number) for change in changes],
        empty="no change is recorded",
    )


@app.command("list")
def list_changes(
    context: typer.Context,
    *,
    user: UserOption = None,
    since: SinceOption = None,
    most: MaxOption = DEFAULT_MAX,
) -> None:
    """List changing requests: user, address, change and answer, the oldest first.

    Agents only (exit 9), with agent.journal.topic or agent.journal.file. With -o json each change
    has the configurations before and after, with secrets hidden.
    """
    session = session_of(context)
    changes = recorded_changes(session, user=user, since=since, most=most)
    show_changes(session, changes, connector=True)
