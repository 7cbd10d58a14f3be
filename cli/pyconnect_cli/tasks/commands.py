"""`pyconnect tasks`: the tasks of connectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import BatchStep, run_steps
from pyconnect_cli.acting.conditions import Selection, selection_from
from pyconnect_cli.acting.looks import task_shows
from pyconnect_cli.acting.selection import (
    known_connector,
    listed_views,
    read_views,
    selected_views,
)
from pyconnect_cli.acting.wait import wait_if_asked
from pyconnect_cli.connectors.show import trace_lines
from pyconnect_cli.errors import NotFound
from pyconnect_cli.parsing.arguments import NamesArgument
from pyconnect_cli.render.output import key_value_lines
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.render.tables import Column, state_column, worker_column
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.rest.model import ConnectorView, TaskId, TaskState
from pyconnect_cli.rest.traces import root_cause
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.tasks import on_agents
from pyconnect_cli.tasks.task_id import task_of
from pyconnect_cli.verbs import ActingVerb, SelectingVerb

app = typer.Typer(help="List, inspect, restart and kill tasks.")

Row = tuple[TaskId, TaskState]
TaskArgument = Annotated[
    str, typer.Argument(metavar="CONNECTOR/TASK", help="task, for example orders/0")
]
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
    states = {str(state).upper() for state in _given(session, "state")}
    workers = {str(worker) for worker in _given(session, "worker")}
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
        list[str] | None,
        typer.Argument(
            metavar="[CONNECTOR/TASK]…", help="tasks to restart, instead of a selection"
        ),
    ] = None,
) -> None:
    """Restart tasks by name, or the FAILED tasks of the selected connectors."""
    session = session_of(context)
    states: dict[TaskId, str] = {}
    if tasks:
        chosen = _known_tasks(session, [task_of(session, text) for text in tasks])
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


def _known_tasks(session: Session, tasks: Sequence[TaskId]) -> list[TaskId]:
    """Return the tasks; NotFound (exit 3) names one whose connector does not exist."""
    names = tuple(dict.fromkeys(task.connector for task in tasks))
    read_views(session, Selection(names=names))
    return list(tasks)


def _rows(view: ConnectorView) -> list[Row]:
    if view.status is None:
        return []
    return [(TaskId(connector=view.name, task=state.id), state) for state in view.status.tasks]


def _given(session: Session, key: str) -> tuple[object, ...]:
    value = session.given.get(key)
    return value if isinstance(value, tuple) else ()


app.registered_commands.extend(on_agents.app.registered_commands)
