"""`tasks kill stacks`: what only pyconnect's own agents can do with a task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.batch import BatchStep, confirm_steps, run_steps
from pyconnect_cli.acting.looks import task_shows
from pyconnect_cli.rest.agent_client import AgentClient, RunsElsewhere
from pyconnect_cli.rest.model import TaskId
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.tasks.task_id import parse_task
from pyconnect_cli.verbs import BatchVerb

app = typer.Typer()

Answer = TypeVar("Answer")


@app.command(cls=BatchVerb)
def kill(
    context: typer.Context,
    tasks: Annotated[
        list[str], typer.Argument(metavar="CONNECTOR/TASK…", help="task, for example orders/0")
    ],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="SIGKILL at once, without a graceful stop")
    ] = False,
) -> None:
    """Kill the process of a task. The task becomes FAILED and can be restarted.

    Agents only: a Java worker cannot end a thread (exit 9).
    """
    session = session_of(context)
    chosen = [parse_task(text) for text in tasks]
    confirm_steps(session, "kill", [str(key) for key in chosen], what="task")

    def act(key: TaskId) -> str | None:
        return at_owner(session, lambda agent: agent.kill_task(key, force=force))

    steps = [
        BatchStep(
            name=str(key), done="being killed", act=partial(act, key), look=partial(task_shows, key)
        )
        for key in chosen
    ]
    run_steps(session, "kill", steps)


@app.command()
def stacks(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="CONNECTOR/TASK", help="task, for example orders/0")
    ],
) -> None:
    """Show the Python stacks of a task's process, for a task that hangs. Agents only."""
    session = session_of(context)
    key = parse_task(task)
    text = at_owner(session, lambda agent: agent.task_stacks(key))
    if session.output.machine:
        session.output.document({"task": str(key), "stacks": text})
    else:
        session.output.line(text.rstrip("\n"))


def at_owner(session: Session, ask: Callable[[AgentClient], Answer]) -> Answer:
    """Ask any worker in force; where it points to another one, that one, once."""
    try:
        return ask(AgentClient(session.client.exchange))
    except RunsElsewhere as elsewhere:
        if elsewhere.worker_url is None:
            raise
        with AgentClient(session.exchange_with(elsewhere.worker_url)) as agent:
            return ask(agent)
