"""`tasks kill stacks`: verbs that only pyconnect's own agents understand."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.batch import BatchStep, run_steps
from pyconnect_cli.acting.confirmation import Asks
from pyconnect_cli.acting.looks import task_shows
from pyconnect_cli.acting.wait import within_time
from pyconnect_cli.errors import WaitTimedOut
from pyconnect_cli.rest.agent_client import AgentClient, RunsElsewhere
from pyconnect_cli.rest.model import TaskId
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.tasks.task_id import task_of
from pyconnect_cli.verbs import BatchVerb

app = typer.Typer()

Answer = TypeVar("Answer")
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 1.0


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
    """Kill the process of a task, and wait until it has ended, at most --timeout (exit 124).

    The task becomes FAILED and can be restarted; its trace holds the stacks from before the end.
    Agents only: a Java worker cannot end a thread (exit 9).
    """
    session = session_of(context)
    chosen = [task_of(session, text) for text in tasks]

    def act(key: TaskId) -> None:
        at_owner(session, lambda agent: _kill(session, agent, key, force=force))

    steps = [
        BatchStep(
            name=str(key), done="killed", act=partial(act, key), look=partial(task_shows, key)
        )
        for key in chosen
    ]
    run_steps(session, "kill", steps, asks=Asks.ALWAYS, what="task")


def _kill(session: Session, agent: AgentClient, task: TaskId, *, force: bool) -> None:
    """Return when the process has ended; raise WaitTimedOut if it has not ended in time."""
    pid = agent.kill_task(task, force=force)
    pause = FIRST_PAUSE_S
    late = (
        f"the process of {task} has not ended in time; the worker goes on, --force ends it at once"
    )
    while pid is not None:
        with within_time(session, late):
            pids = {child.pid for child in agent.children()}
        if pid not in pids:
            return
        if session.budget.remaining_s() <= pause:
            raise WaitTimedOut(late, hint="wait longer with --timeout 10m")
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_S)


@app.command()
def stacks(
    context: typer.Context,
    task: Annotated[
        str, typer.Argument(metavar="CONNECTOR/TASK", help="task, for example orders/0")
    ],
) -> None:
    """Show the Python stacks of a task's process, for a task that hangs. Agents only."""
    session = session_of(context)
    key = task_of(session, task)
    text = at_owner(session, lambda agent: agent.task_stacks(key))
    if session.output.machine:
        session.output.document({"task": str(key), "stacks": text})
    else:
        session.output.line(text.rstrip("\n"))


def at_owner(session: Session, ask: Callable[[AgentClient], Answer]) -> Answer:
    """Ask any worker in force; if it names the task's worker, ask that one, once."""
    try:
        return ask(AgentClient(session.client.exchange))
    except RunsElsewhere as elsewhere:
        if elsewhere.worker_url is None:
            raise
        with AgentClient(session.exchange_with(elsewhere.worker_url)) as agent:
            return ask(agent)
