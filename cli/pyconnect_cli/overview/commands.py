"""`pyconnect status`: one screen about a cluster; `pyconnect fleet`: a line about each of several.

Each cluster of a fleet is asked on a thread of its own, with the credentials of its context. A row
shows what is known when the time for a look is over, so no cluster delays the others.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Annotated

import typer

from pyconnect_cli.acting.wait import looks
from pyconnect_cli.errors import ExitCode, NotFound, PyconnectError, UsageError
from pyconnect_cli.overview.gather import Watcher, hanging_of
from pyconnect_cli.overview.rows import ClusterLook
from pyconnect_cli.overview.status import (
    CLUSTER_COLUMNS,
    LATE,
    ClusterRow,
    cluster_status,
    failures_first,
    status_lines,
)
from pyconnect_cli.parsing.values import format_duration, parse_duration
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.styles import cell_width
from pyconnect_cli.render.tables import empty_columns, fitted_columns
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.session import Session, session_of, session_of_context
from pyconnect_cli.verbs import CronVerb

status_app = typer.Typer(
    help="Show states, root causes of failures and lag of a cluster on one screen."
)


@status_app.command(cls=CronVerb)
def status(
    context: typer.Context,
    *,
    group_id: Annotated[
        str | None,
        typer.Option(
            "--group",
            metavar="NAME",
            help="group.id of the workers, to find their transactions (default: as the agents or"
            " the context report it)",
        ),
    ] = None,
) -> None:
    """Show states, root causes of failures and lag of a cluster on one screen.

    The command asks the given workers and those that connectors' statuses name. Lag and hanging
    transactions need --kafka-bootstrap. Exit 1: a worker is not healthy, a connector or task is
    FAILED, or a transaction hangs.
    """
    session = session_of(context)
    lag_known = bool(session.settings.kafka_bootstrap)
    _ = session.client  # made before the threads: its secrets are fetched once
    hanging = in_background(lambda: hanging_of(session, group_id))
    look = Watcher(session).look(lag=lag_known)
    found_hanging, doubts = hanging.result()
    look = replace(look, hanging=found_hanging, doubts=(*look.doubts, *doubts))
    found = cluster_status(look, context=session.settings.cluster, lag_known=lag_known)
    session.record = BatchRecord.of_checks("check", found.faults)
    style = session.output.style
    text = "\n".join(status_lines(found, width=style.width, colour=style.colour))
    if not session.output.silent(success=found.healthy):
        session.output.document(found.to_json(), text=text)
    if not found.healthy:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


fleet_app = typer.Typer(help="Show the clusters of all contexts, a line each, failures first.")

WITHIN_S = 5.0
SHARE = 0.6
"""The part of a look's time that one request may take, so that others can follow."""
UNLIMITED = 10_000
CLEARED = "\x1b[H\x1b[2J"


class FleetWatcher:
    """Looks at the clusters of several contexts as often as it is asked."""

    def __init__(
        self, session: Session, names: Sequence[str], *, within_s: float = WITHIN_S, brokers: bool
    ) -> None:
        self._within_s = within_s
        self._clusters = [
            _WatchedCluster(session, name, SHARE * within_s, brokers=brokers) for name in names
        ]

    def look(self) -> list[ClusterRow]:
        """Return a row for each cluster, failures first, when all have answered or in time."""
        wait([cluster.begin() for cluster in self._clusters], self._within_s)
        late = f"no answer within {format_duration(self._within_s)}"
        return failures_first(cluster.row(late) for cluster in self._clusters)

    def close(self) -> None:
        for cluster in self._clusters:
            cluster.session.close()


class _Doubts(Output):
    """The warnings of a cluster's questions, which are no lines of their own."""

    def __init__(self, style: OutputStyle) -> None:
        super().__init__(style)
        self.texts: list[str] = []

    def warning(self, text: str) -> None:
        self.texts.append(text)


class _WatchedCluster:
    """The cluster of one context. Its thread writes `_look` and `_fault`, the caller reads them."""

    def __init__(self, session: Session, name: str, request_s: float, *, brokers: bool) -> None:
        self.session = session_of_context(session, name)
        self.session.given.setdefault("request_timeout", f"{round(request_s * 1000)}ms")
        self.session.live = True
        self._output = self.session.output = _Doubts(OutputStyle())
        self._name = name
        self._brokers = brokers
        self._watcher: Watcher | None = None
        self._running: Future[None] | None = None
        self._look: ClusterLook | None = None
        self._fault = ""

    def begin(self) -> Future[None]:
        """Begin a look, unless the one before has not ended."""
        if self._running is None or self._running.done():
            self._look, self._fault = None, ""
            self._running = in_background(self._run)
        return self._running

    def row(self, late: str) -> ClusterRow:
        """Return what is known now; `late`: the reason of a cluster without an answer."""
        look = self._look
        if look is None:
            return ClusterRow(name=self._name, silence=self._fault or late)
        if self._running and not self._running.done():
            look = replace(look, doubts=(*look.doubts, f"{LATE}{late}"))
        lag_known = look.positions is not None
        status = cluster_status(look, context=self._name, lag_known=lag_known)
        return ClusterRow(name=self._name, status=status)

    def _run(self) -> None:
        session = self.session
        self._output.texts.clear()
        try:
            brokers = self._brokers and bool(session.settings.kafka_bootstrap)
            self._watcher = self._watcher or Watcher(session)
            for look in self._watcher.stages(lag=brokers):
                self._look = look
            if brokers and self._look:
                hanging, doubts = hanging_of(session, None)
                doubts = (*self._look.doubts, *doubts, *self._output.texts)
                self._look = replace(self._look, hanging=hanging, doubts=doubts)
        except PyconnectError as error:
            self._fault = error.message.removeprefix("no worker answers: ")
        except Exception as fault:  # noqa: BLE001 - a fault of one cluster is its row
            self._fault = f"{type(fault).__name__}: {fault}"


@fleet_app.command(cls=CronVerb)
def fleet(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[CONTEXT]…", help="contexts (default: all)")
    ] = None,
    *,
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="time for the answers of all clusters")
    ] = f"{WITHIN_S:.0f}s",
    no_brokers: Annotated[
        bool, typer.Option("--no-brokers", help="no questions to brokers: no lag, no transactions")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", help="the table again and again, until Ctrl-C or for --timeout when given"
        ),
    ] = False,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="time between two looks of --watch")
    ] = "5s",
) -> None:
    """Show the clusters of all contexts, a line each, failures first.

    All clusters are asked at once. A cluster without an answer in time is shown as unreachable and
    delays no other. Lag and hanging transactions are those of contexts that name brokers. Exit 1: a
    cluster is not healthy.
    """
    session = session_of(context)
    if session.given.get("context") or session.given.get("url"):
        raise UsageError(
            "fleet takes the names of contexts as arguments, and no --context or --url"
        )
    files = session.settings.files
    chosen = list(dict.fromkeys(names or files.context_names()))
    for name in chosen:
        files.find_context(name)
    if not chosen:
        raise NotFound("no context is defined", hint="pyconnect context set NAME --url URL")
    within_s = parse_duration(within, what="--within")
    watcher = FleetWatcher(session, chosen, within_s=within_s, brokers=not no_brokers)
    try:
        if watch:
            pause_s = parse_duration(interval, what="--interval")
            for rows in looks(session, pause_s, watcher.look):
                _show(session, rows, live=True)
            return
        rows = watcher.look()
    finally:
        with suppress(PyconnectError):
            watcher.close()
    session.record = BatchRecord.of_checks(
        "check", {row.name: (row.cause or row.health) if row.broken else None for row in rows}
    )
    healthy = not any(row.broken for row in rows)
    if not session.output.silent(success=healthy):
        _show(session, rows)
    if not healthy:
        raise PyconnectError("", exit_code=ExitCode.NEGATIVE)


def _show(session: Session, rows: Sequence[ClusterRow], *, live: bool = False) -> None:
    """Print the table, or a document; a live one replaces the one before on a terminal."""
    output = session.output
    moment = {"time": datetime.now().astimezone().isoformat(timespec="seconds")} if live else {}
    if live and not output.machine and sys.stdout.isatty():
        sys.stdout.write(CLEARED)
    documents = [{**moment, **row.to_json()} for row in rows]
    columns, width = CLUSTER_COLUMNS, output.style.width
    if output.style.format == "table" and not output.style.columns:
        texts = [[column.title, *map(column.value, rows)] for column in columns]
        widths = [max(map(cell_width, each)) for each in texts]
        kept, _ = fitted_columns(columns, widths, width or UNLIMITED, empty_columns(columns, rows))
        columns = [columns[at] for at in kept]
    output.listing(columns, rows, document=documents)
