"""`pyconnect status`: one screen about a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.overview.gather import Watcher, hanging_of
from pyconnect_cli.overview.status import cluster_status, status_lines
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import CronVerb

app = typer.Typer(help="Show states, root causes of failures and lag of a cluster on one screen.")


@app.command(cls=CronVerb)
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
