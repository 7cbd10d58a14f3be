"""`pyconnect top`: a live view of a cluster, for a terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from pyconnect_cli.errors import Interrupted, PreconditionFailed, UsageError
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.session import session_of

app = typer.Typer(help="Watch and operate a cluster in a live view.")

SHORTEST_S = 0.5


@app.command()
def top(
    context: typer.Context,
    *,
    interval: Annotated[
        str, typer.Option("--interval", metavar="TIME", help="time between two updates of the view")
    ] = "2s",
) -> None:
    """Watch and operate a cluster in a live view.

    The view shows connectors with their states, rates, lag, memory and the root causes of
    failures; enter leads to the tasks. Keys are those of k9s; `?` lists them. A key that changes
    something shows the plan of its verb and asks. Lag needs --kafka-bootstrap, rates and memory
    come from agents.

    The view needs the extra [top].
    """
    session = session_of(context)
    interval_s = parse_duration(interval, what="--interval")
    if interval_s < SHORTEST_S:
        raise UsageError(f"--interval: `{interval}` is too short", hint="the shortest is 500ms")
    if find_spec("textual") is None:
        from pyconnect_clients.installation import install_command

        raise PreconditionFailed(
            "the live view needs the library textual, which is not installed",
            hint=f"install the extra [top]: {install_command('top')}; without it: pyconnect status",
        )
    # The library draws on stderr.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        raise PreconditionFailed(
            "the live view needs a terminal", hint="for scripts: pyconnect status -o json"
        )
    from pyconnect_cli.top.source import ClusterSource
    from pyconnect_cli.top.view import Top

    session.live = True
    view = Top(ClusterSource(session), interval_s)
    view.run()
    if view.fault is not None:
        raise view.fault
    if view.interrupted:
        raise Interrupted("interrupted")
