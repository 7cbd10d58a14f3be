"""`connectors list get describe wait watch`: verbs that only read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from pyconnect_cli.acting.selection import (
    known_connector,
    listed_views,
    selected_views,
    selection_from,
)
from pyconnect_cli.acting.wait import looks, stable_seconds, wait_for_state
from pyconnect_cli.errors import Forbidden, NotFound, PreconditionFailed, UsageError
from pyconnect_cli.parsing.options import WAIT_STATES
from pyconnect_cli.parsing.values import parse_duration
from pyconnect_cli.render.output import Output, key_value_lines
from pyconnect_cli.render.styles import printable, state_style
from pyconnect_cli.render.tables import Column, state_column, table_lines, worker_column
from pyconnect_cli.rest.masking import mask_config
from pyconnect_cli.rest.model import ConnectorView, TaskState, root_cause
from pyconnect_cli.session import session_of
from pyconnect_cli.verbs import NameArgument, NamesArgument, SelectingVerb, option

if TYPE_CHECKING:
    from pyconnect_cli.acting.workers import Restarts

app = typer.Typer()

ShowSecrets = Annotated[bool, option("--show-secrets", "passwords in plain text")]


TASK_COLUMNS: Sequence[Column[TaskState]] = (
    Column("TASK", lambda task: str(task.id), right=True),
    state_column("STATE", lambda task: task.state),
    worker_column(lambda task: task.worker_id),
)


def view_columns() -> Sequence[Column[ConnectorView]]:
    """Return the columns of `connectors list`."""
    return (
        Column("NAME", lambda view: view.name, distinct=True),
        Column("TYPE", lambda view: view.type),
        state_column("STATE", lambda view: view.state),
        state_column("TASKS", _tasks),
        worker_column(_worker),
        Column("CLASS", lambda view: view.class_name.rsplit(".", 1)[-1], wide=False),
        Column("VERSION", _version, wide=True),
        Column("ERROR", _error, wide=True),
    )


@app.command("list", cls=SelectingVerb)
def list_connectors(context: typer.Context, names: NamesArgument = None) -> None:
    """List connectors with their states; filters narrow the list."""
    session = session_of(context)
    selection = selection_from(session.given, names or ())
    shown = listed_views(session, selection)
    masked: dict[str, dict[str, object]] = {}
    for view in shown if session.output.machine else ():
        masked[view.name] = dict(view.raw)
        if view.info:
            config = mask_config(view.info.config)
            masked[view.name]["info"] = {**view.info.raw, "config": config}
    session.output.listing(
        view_columns(),
        shown,
        document=masked,
        entries=({"name": name, **view} for name, view in masked.items()),
        names=[view.name for view in shown],
        empty="no connectors" if not (names or selection.filters) else "no connector matches",
    )


@app.command()
def get(context: typer.Context, name: NameArgument, *, show_secrets: ShowSecrets = False) -> None:
    """Print a connector's configuration; `create -f` and `apply -f` accept its -o json."""
    session = session_of(context)
    config = dict(known_connector(session, name).config)
    shown = config if show_secrets else mask_config(config)
    if session.output.machine:
        session.output.document(shown, name=name)
    else:
        for line in key_value_lines({k: "null" if v is None else v for k, v in shown.items()}):
            session.output.line(line)


@app.command()
def describe(
    context: typer.Context, name: NameArgument, *, show_secrets: ShowSecrets = False
) -> None:
    """Show state, tasks, errors, topics and configuration of one connector."""
    from pyconnect_cli.acting.workers import (
        automatic_restarts,
        describe_restarts,
        restarts_document,
    )

    session = session_of(context)
    info = known_connector(session, name)
    status, topics = None, list[str]()
    with suppress(NotFound):
        status = session.client.connector_status(name)
    # Tracking may be off, or the worker older than KIP-558.
    with suppress(Forbidden, PreconditionFailed):
        topics = session.client.connector_topics(name)
    restarts = automatic_restarts(session, name, status)
    config = dict(info.config) if show_secrets else mask_config(info.config)
    if session.output.machine:
        session.output.document(
            {
                "info": {**info.raw, "config": config},
                "status": status.raw if status else None,
                "topics": topics,
                "restarts": restarts_document(restarts),
            },
            name=name,
        )
        return
    output = session.output
    view = ConnectorView(name=info.name, info=info, status=status)
    lines = key_value_lines(
        {
            "name": info.name,
            "type": info.type,
            "class": info.class_name,
            "state": view.state,
            "worker": _worker(view) or "-",
            "version": _version(view) or "-",
            "topics": ", ".join(topics) or "-",
            **({"restarts": describe_restarts(restarts.get(None))} if restarts else {}),
        },
        painted={"state": output.paint(view.state, state_style(view.state))},
    )
    items = [] if status is None else [(info.name, status.connector)]
    if status is not None:
        items += [(f"{info.name}/{task.id}", task) for task in status.tasks]
        lines += ["", output.paint("tasks", "strong")]
        lines += _task_lines(output, status.tasks, restarts) or ["  none"]
    for where, item in items:
        if item.trace:
            lines += ["", output.paint(f"trace of {where}", "bad")]
            lines += trace_lines(item.trace)
    lines += ["", output.paint("config", "strong")]
    lines += key_value_lines(
        {key: "null" if value is None else value for key, value in sorted(config.items())},
        indent="  ",
    )
    for line in lines:
        session.output.line(line)


@app.command(cls=SelectingVerb)
def wait(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    target: Annotated[
        str, option("--for STATE", "state to wait for: RUNNING, PAUSED, STOPPED, FAILED or DELETED")
    ] = "RUNNING",
    stable: Annotated[
        str | None, option("--stable TIME", "time for which the state has to last (default 0)")
    ] = None,
) -> None:
    """Wait until connectors and all their tasks are in a state; see --timeout."""
    session = session_of(context)
    state = target.upper()
    if state not in WAIT_STATES:
        raise UsageError(f"`{target}` is not a state to wait for", hint=", ".join(WAIT_STATES))
    if state == "DELETED":
        chosen = list(names or ())
        if not chosen:
            raise UsageError("name the connectors whose deletion to wait for")
    else:
        chosen = [view.name for view in selected_views(session, names or ())]
    wait_for_state(session, chosen, state, stable_s=stable_seconds(stable))
    for name in chosen:
        session.output.message(f"{name}: {state}")


@app.command(cls=SelectingVerb)
def watch(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    interval: Annotated[str, option("--interval TIME", "time between two requests")] = "1s",
) -> None:
    """Print a line for each change of state until Ctrl-C, or for --timeout when it is given.

    -o ndjson prints an object for each change, with the new state and worker; null means deleted.
    """
    session = session_of(context)
    pause = parse_duration(interval, what="--interval")
    selection = selection_from(session.given, names or ())
    last: dict[str, tuple[str, str]] = {}
    for chosen in looks(session, pause, lambda: listed_views(session, selection)):
        now = {}
        for view in chosen:
            now[view.name] = view.state, _worker(view)
            for task in view.status.tasks if view.status else ():
                now[f"{view.name}/{task.id}"] = task.state, task.worker_id
        for name in sorted({*now, *last}):
            if now.get(name) == last.get(name):
                continue
            state, worker = now.get(name, (None, None))
            moment = datetime.now().astimezone()
            text = "gone" if state is None else f"{state} on {worker or '-'}"
            session.output.document(
                {
                    "time": moment.isoformat(timespec="milliseconds"),
                    "name": name,
                    "state": state,
                    "worker": worker,
                },
                text=f"{moment:%H:%M:%S}  {name}  {text}",
                name=name,
            )
        last = now


def _task_lines(output: Output, tasks: Sequence[TaskState], restarts: Restarts) -> list[str]:
    """Return a line for each task; with restarts a headed table."""
    from pyconnect_cli.acting.workers import describe_restarts

    if not tasks:
        return []
    columns = list(TASK_COLUMNS)
    if restarts:
        columns.append(Column("RESTARTS", lambda task: describe_restarts(restarts.get(task.id))))
    lines = table_lines(
        columns, tasks, headers=bool(restarts), width=None, colour=output.style.colour
    )
    return [f"  {line}" for line in lines]


def trace_lines(trace: str) -> list[str]:
    """Return a trace indented; control characters are escaped."""
    return [f"  {printable(line.expandtabs(4))}" for line in trace.rstrip().splitlines()]


def _tasks(view: ConnectorView) -> str:
    if view.status is None:
        return "-"
    failed = sum(task.state == "FAILED" for task in view.status.tasks)
    running = f"{view.status.running_tasks}/{len(view.status.tasks)}"
    return f"{running}, {failed} FAILED" if failed else running


def _worker(view: ConnectorView) -> str:
    return view.status.connector.worker_id if view.status else ""


def _version(view: ConnectorView) -> str:
    return (view.status.connector.version or "") if view.status else ""


def _error(view: ConnectorView) -> str:
    if view.status is None:
        return ""
    traces = [item.trace for item in (view.status.connector, *view.status.tasks) if item.trace]
    return root_cause(traces[0]) if traces else ""
