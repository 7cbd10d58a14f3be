"""`tasks kill stacks`: what only pyconnect's own agents can do with a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.batch import Step, run_steps
from pyconnect_cli.acting.confirmation import Asks
from pyconnect_cli.acting.looks import task_shows
from pyconnect_cli.errors import WaitTimedOut
from pyconnect_cli.rest.agent_client import AgentChild, AgentClient, RunsElsewhere
from pyconnect_cli.rest.model import TaskId
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.tasks.task_id import parse_task
from pyconnect_cli.verbs import BatchChangingVerb

app = typer.Typer()

PAUSE_S = 0.2

Answer = TypeVar("Answer")


@app.command(cls=BatchChangingVerb)
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
    """Kill the process of a task and wait for its end. The FAILED task can be restarted.

    Agents only: a Java worker cannot end a thread (exit 9).
    """
    session = session_of(context)
    chosen = [parse_task(text) for text in tasks]

    def act(key: TaskId) -> str | None:
        def end(agent: AgentClient) -> None:
            before = {child.pid for child in _processes(agent, key)}
            agent.kill_task(key, force=force)
            _wait_for_end(session, agent, key, before)

        return at_owner(session, end)

    steps = [
        Step(name=str(key), done="killed", act=partial(act, key), look=partial(task_shows, key))
        for key in chosen
    ]
    run_steps(session, "kill", steps, asks=Asks.ALWAYS, what="task")


def _processes(agent: AgentClient, key: TaskId) -> list[AgentChild]:
    return [c for c in agent.children() if (c.connector, c.task) == (key.connector, key.task)]


def _wait_for_end(
    session: Session, agent: AgentClient, key: TaskId, before: Collection[int | None]
) -> None:
    """Return when the process has ended and the status says so; the task may run again by then."""
    while True:
        if not any(
            child.state == "RUNNING" if child.pid is None else child.pid in before
            for child in _processes(agent, key)
        ):
            return
        if session.budget.remaining_s() <= PAUSE_S:
            raise WaitTimedOut(
                f"{key} was told to end and still runs", hint="end it at once with --force"
            )
        time.sleep(PAUSE_S)


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
