"""`pyconnect health`: the health that each worker reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer

from pyconnect_cli.acting.workers import WorkerHealth, worker_urls, workers_health
from pyconnect_cli.errors import ExitCode, PyconnectError
from pyconnect_cli.render.outcomes import BatchRecord
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column, worker_column
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import AllWorkersOption, CronVerb

app = typer.Typer(help="Check the health of each worker.")

COLUMNS: Sequence[Column[WorkerHealth]] = (
    worker_column(lambda worker: worker.url),
    Column("STATUS", lambda worker: worker.status, style=state_style),
    Column("VERSION", lambda worker: worker.agent_version or worker.version or "-"),
    Column("MESSAGE", lambda worker: worker.message, prose=True),
)


@app.command(cls=CronVerb)
def health(context: typer.Context, *, all_workers: AllWorkersOption = False) -> None:
    """Check the health of each worker.

    The command asks every given address; exit 1 if a worker is not healthy.
    """
    session = session_of(context)
    urls = worker_urls(session, everywhere=all_workers)
    answers = workers_health(session, urls)
    session.record = BatchRecord.of_checks(
        "check",
        {
            answer.url: None if answer.status == "healthy" else f"{answer.status}: {answer.message}"
            for answer in answers
        },
    )
    healthy = all(answer.status == "healthy" for answer in answers)
    if not session.output.silent(success=healthy):
        session.output.listing(
            COLUMNS,
            answers,
            document=[asdict(answer) for answer in answers],
            names=[answer.url for answer in answers],
        )
    if not healthy:
        unreachable = all(answer.status == "unreachable" for answer in answers)
        raise PyconnectError(
            "", exit_code=ExitCode.UNREACHABLE if unreachable else ExitCode.NEGATIVE
        )
