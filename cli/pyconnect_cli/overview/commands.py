"""`pyconnect status`: one screen about a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.overview.gather import Watcher, hanging_transactions
from pyconnect_cli.overview.status import HANGING_DOUBT, cluster_status, status_lines
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.rest.endpoint import in_background
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import CronVerb

if TYPE_CHECKING:
    from pyconnect_cli.kafka.model import OpenProducer

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


def hanging_of(
    session: Session, group_id: str | None
) -> tuple[tuple[OpenProducer, ...] | None, tuple[str, ...]]:
    """Return the hanging transactions, None where they are not known, and why."""
    if not session.settings.kafka_bootstrap:
        return None, ()
    from pyconnect_cli.transactions.find import MIN_IDLE

    idle_ms = round(parse_duration(MIN_IDLE) * 1000)
    try:
        return hanging_transactions(session, group_id, idle_ms), ()
    except PyconnectError as error:
        reason = f"{error.message} ({error.hint})" if error.hint else error.message
        return None, (f"{HANGING_DOUBT}: {reason}",)
