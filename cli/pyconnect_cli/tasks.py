"""`pyconnect tasks`: the tasks of connectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated, TypeVar

import typer

from pyconnect_cli.acting.batch import Asks, BatchStep, run_steps, task_shows
from pyconnect_cli.acting.selection import (
    Selection,
    known_connector,
    listed_views,
    read_views,
    selected_views,
    selection_from,
    texts,
)
from pyconnect_cli.acting.wait import LONGER, wait_if_asked, wait_until, within_time
from pyconnect_cli.acting.workers import ask_workers, assigned_workers, urls_with
from pyconnect_cli.connectors.show import trace_lines
from pyconnect_cli.errors import NotFound, PyconnectError, UsageError, WaitTimedOut
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column, state_column, worker_column
from pyconnect_cli.rest.agent_client import AgentClient, RunsElsewhere
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.rest.model import ConnectorView, TaskId, TaskState, root_cause
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import (
    ActingVerb,
    BatchVerb,
    NamesArgument,
    SelectingVerb,
    argument,
    option,
)

app = typer.Typer(help="List, inspect, restart and kill tasks.")

Row = tuple[TaskId, TaskState]
FEW_NAMES = 5
TaskArgument = Annotated[str, argument("CONNECTOR/TASK", "task, for example orders/0")]
COLUMNS: Sequence[Column[Row]] = (
    Column("TASK", lambda row: str(row[0]), distinct=True),
    state_column("STATE", lambda row: row[1].state),
    worker_column(lambda row: row[1].worker_id),
    Column("VERSION", lambda row: row[1].version or "", wide=True),
    Column("ERROR", lambda row: root_cause(row[1].trace or ""), prose=True),
)


@app.command("list", cls=SelectingVerb)
def list_tasks(context: typer.Context, names: NamesArgument = None) -> None:
    """List tasks with their states; --state and --worker apply to the tasks."""
    session = session_of(context)
    states = {state.upper() for state in texts(session.given, "state")}
    workers = texts(session.given, "worker")
    given = {k: v for k, v in session.given.items() if k not in {"state", "worker"}}
    selection = selection_from(given, names or ())
    rows = [
        row
        for view in listed_views(session, selection)
        for row in _rows(view)
        if (not states or row[1].state in states) and (not workers or row[1].worker_id in workers)
    ]
    session.output.listing(
        COLUMNS,
        rows,
        document=[{"connector": key.connector, **state.raw} for key, state in rows],
        names=[str(key) for key, _ in rows],
        empty="no tasks",
    )


@app.command()
def describe(context: typer.Context, task: TaskArgument) -> None:
    """Show state, trace and configuration of one task."""
    session = session_of(context)
    key = task_of(session, task)
    known_connector(session, key.connector)
    try:
        state = session.client.task_status(key.connector, key.task)
    except NotFound as exc:
        raise NotFound(
            f"task `{key}` does not exist or has no status yet",
            hint=f"list them: pyconnect tasks list {key.connector}",
        ) from exc
    configs = {entry.id: entry.config for entry in session.client.task_configs(key.connector)}
    config = mask_config(configs.get(key, {}))
    if session.output.machine:
        session.output.document({"status": state.raw, "config": config}, name=str(key))
        return
    output = session.output
    lines = key_value_lines(
        {
            "task": str(key),
            "state": state.state,
            "worker": state.worker_id,
            "version": state.version or "-",
        },
        painted={"state": output.paint(state.state, state_style(state.state))},
    )
    if state.trace:
        lines += ["", output.paint("trace", "bad")]
        lines += trace_lines(state.trace)
    lines += ["", output.paint("config", "strong")]
    lines += key_value_lines({k: v or "" for k, v in sorted(config.items())}, indent="  ")
    for line in lines:
        output.line(line)


@app.command(cls=ActingVerb)
def restart(
    context: typer.Context,
    tasks: Annotated[
        list[str] | None, argument("[CONNECTOR/TASK]…", "tasks to restart, instead of a selection")
    ] = None,
) -> None:
    """Restart tasks by name, or the FAILED tasks of the selected connectors."""
    session = session_of(context)
    states: dict[TaskId, str] = {}
    if tasks:
        chosen = [task_of(session, text) for text in tasks]
        names = tuple(dict.fromkeys(key.connector for key in chosen))
        read_views(session, Selection(names=names))  # raises NotFound for an unknown connector
    else:
        views = selected_views(session, ())
        states = {key: "FAILED" for view in views for key, s in _rows(view) if s.state == "FAILED"}
        chosen = [*states]
        if not chosen:
            session.output.message("no task of the selection is FAILED")
            return

    def act(key: TaskId) -> None:
        session.client.restart_task(key.connector, key.task)

    steps = [
        BatchStep(
            name=str(key),
            done="restarted",
            act=partial(act, key),
            look=partial(task_shows, key),
            changes=(f"{states[key]} -> restarted",) if key in states else (),
        )
        for key in chosen
    ]
    run_steps(session, "restart", steps, what="task")
    goals = dict.fromkeys((key.connector for key in chosen), "RUNNING")
    wait_if_asked(session, goals, restarted=True)


def _rows(view: ConnectorView) -> list[Row]:
    if view.status is None:
        return []
    return [(TaskId(connector=view.name, task=state.id), state) for state in view.status.tasks]


Answer = TypeVar("Answer")


@app.command(cls=BatchVerb)
def kill(
    context: typer.Context,
    tasks: Annotated[list[str], argument("CONNECTOR/TASK…", "task, for example orders/0")],
    *,
    force: Annotated[bool, option("--force", "SIGKILL at once, without a graceful stop")] = False,
) -> None:
    """Kill the process of a task, and wait until it has ended, at most --timeout (exit 124).

    The task becomes FAILED and can be restarted; its trace holds the stacks from before the end.
    Tasks that share its process (agent.isolation) end too with --force, or when it does not stop in
    time; the question names them. Agents only: a Java worker cannot end a thread (exit 9).
    """
    session = session_of(context)
    chosen = [task_of(session, text) for text in tasks]

    def act(key: TaskId) -> None:
        at_owner(session, lambda agent: _kill(session, agent, key, force=force))

    def shared_with(key: TaskId) -> tuple[str, ...]:
        workers: set[str] = set()
        if not session.settings.yes:
            with suppress(NotFound):  # `act` reports it
                workers = assigned_workers([session.client.connector_status(key.connector)])
        for answer in ask_workers(
            session, urls_with(session, workers), lambda it: AgentClient(it).children()
        ):
            children = () if isinstance(answer, PyconnectError) else answer
            pids = {child.pid for child in children if child.name == str(key)} - {None}
            others = [child.name for child in children if child.pid in pids]
            if len(others) > 1:
                others.remove(str(key))
                more = f" and {len(others) - FEW_NAMES} more" if len(others) > FEW_NAMES else ""
                ends = "also ends" if force else "may also end"
                return (f"its process is shared: {ends} {', '.join(others[:FEW_NAMES])}{more}",)
        return ()

    steps = [
        BatchStep(
            name=str(key),
            done="killed",
            act=partial(act, key),
            look=partial(task_shows, key),
            changes=shared_with(key),
        )
        for key in chosen
    ]
    run_steps(session, "kill", steps, asks=Asks.ALWAYS, what="task")


def _kill(session: Session, agent: AgentClient, task: TaskId, *, force: bool) -> None:
    """Return when the process has ended; raise WaitTimedOut if it has not ended in time."""
    pid = agent.kill_task(task, force=force)
    late = partial(
        WaitTimedOut,
        f"the process of {task} has not ended in time; the worker goes on, --force ends it at once",
        hint=LONGER,
    )

    def named_pids() -> set[tuple[str, int | None]]:
        # Others may share the process.
        return {(child.name, child.pid) for child in agent.children()}

    with within_time(session, late):
        wait_until(session, lambda: pid is None or (str(task), pid) not in named_pids(), late)


@app.command()
def stacks(context: typer.Context, task: TaskArgument) -> None:
    """Show the Python stacks of a task's process, for a task that hangs. Agents only."""
    session = session_of(context)
    key = task_of(session, task)
    text = at_owner(session, lambda agent: agent.task_stacks(key))
    if session.output.machine:
        session.output.document({"task": str(key), "stacks": text})
    else:
        session.output.line(text.rstrip("\n"))


def at_owner(session: Session, ask: Callable[[AgentClient], Answer]) -> Answer:
    """Ask a worker in force; if it names the worker that runs the task, ask that worker once."""
    try:
        return ask(AgentClient(session.client.exchange))
    except RunsElsewhere as elsewhere:
        if elsewhere.worker_url is None:
            raise
        with AgentClient(session.exchange_with(elsewhere.worker_url)) as agent:
            return ask(agent)


def task_of(session: Session, text: str) -> TaskId:
    """Return the task of `connector/0` or `connector-0`; UsageError for other texts.

    `t-1` is not task 1 of `t` if a connector has that name.
    """
    for separator in "/-":
        connector, _, number = text.rpartition(separator)
        if not connector or not re.fullmatch("[0-9]{1,9}", number):
            continue
        task = TaskId(connector=connector, task=int(number))
        if separator == "-" and session.client.exists(text):
            raise UsageError(
                f"`{text}` is the name of a connector, not of a task",
                hint=f"task {task.task} of connector {connector} is {task}; tasks of {text}:"
                f" pyconnect tasks list {text}",
            )
        return task
    raise UsageError(
        f"`{text}` is not the name of a task", hint="write CONNECTOR/NUMBER, for example orders/0"
    )
