"""`connectors pause resume stop restart delete`: verbs that change a selection of connectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import BatchStep, run_steps
from pyconnect_cli.acting.confirmation import UNCHANGED, Asks
from pyconnect_cli.acting.looks import deletion_shows, restart_shows, state_shows
from pyconnect_cli.acting.selection import selected_views
from pyconnect_cli.acting.wait import delete_and_see, kept_state, wait_if_asked
from pyconnect_cli.errors import NotFound, UsageError
from pyconnect_cli.parsing.arguments import NamesArgument
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ActingVerb

app = typer.Typer()


@app.command(cls=ActingVerb)
def pause(context: typer.Context, names: NamesArgument = None) -> None:
    """Pause connectors: their tasks stay assigned and stop working."""
    session = session_of(context)
    change = session.client.pause_connector
    _change(session, names, change, verb="pause", done="paused", state="PAUSED")


@app.command(cls=ActingVerb)
def resume(context: typer.Context, names: NamesArgument = None) -> None:
    """Resume paused or stopped connectors."""
    session = session_of(context)
    change = session.client.resume_connector
    _change(session, names, change, verb="resume", done="resumed", state="RUNNING")


@app.command(cls=ActingVerb)
def stop(context: typer.Context, names: NamesArgument = None) -> None:
    """Stop connectors: end their tasks, keep offsets and configuration (KIP-875)."""
    session = session_of(context)
    change = session.client.stop_connector
    _change(session, names, change, verb="stop", done="stopped", state="STOPPED")


@app.command(cls=ActingVerb)
def restart(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    connector_only: Annotated[
        bool, typer.Option("--connector-only", help="no restart of the tasks")
    ] = False,
    only_failed: Annotated[
        bool, typer.Option("--only-failed", help="only connectors and tasks that are FAILED")
    ] = False,
) -> None:
    """Restart connectors and their tasks (KIP-745)."""
    session = session_of(context)
    views = selected_views(session, names or ())

    def act(name: str) -> str | None:
        status = session.client.restart_connector(
            name, include_tasks=not connector_only, only_failed=only_failed
        )
        if status is None:
            return None
        restarting = [f"task {t.id}" for t in status.tasks if t.state == "RESTARTING"]
        if status.connector.state == "RESTARTING":
            restarting.insert(0, "connector")
        return ", ".join(restarting) or "nothing had failed"

    steps = [
        BatchStep(
            name=view.name,
            done="restarted",
            act=partial(act, view.name),
            look=partial(restart_shows, view.name),
            changes=(f"{_now(view)} -> restarted",),
        )
        for view in views
    ]
    run_steps(session, "restart", steps)
    wait_if_asked(session, {view.name: kept_state(view) for view in views}, restarted=True)


@app.command(cls=ActingVerb)
def delete(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    ignore_not_found: Annotated[
        bool, typer.Option("--ignore-not-found", help="exit 0 for names that do not exist")
    ] = False,
) -> None:
    """Delete connectors. Their offsets stay: a new connector of the same name continues there."""
    session = session_of(context)
    if ignore_not_found and names:
        existing = session.client.connector_views(names)
        if missing := [name for name in names if name not in existing]:
            session.output.message(f"not found: {', '.join(missing)}")
        names = [*existing]
        if not names:
            return
    views = selected_views(session, names or ())
    if not views:
        return
    chosen = [view.name for view in views]
    if str(session.given.get("wait") or "DELETED").upper() != "DELETED":
        raise UsageError("a deleted connector has no other state to wait for than DELETED")

    def act(name: str) -> str | None:
        try:
            delete_and_see(session, name)
        except NotFound:
            if not ignore_not_found:
                raise
            return "it was gone already"
        return None

    steps = [
        BatchStep(
            name=view.name,
            done="deleted",
            act=partial(act, view.name),
            look=partial(deletion_shows, view.name),
            changes=(f"{_now(view)} -> deleted",),
        )
        for view in views
    ]
    run_steps(session, "delete", steps, asks=Asks.ALWAYS)
    wait_if_asked(session, dict.fromkeys(chosen, "DELETED"))


def _change(
    session: Session,
    names: Sequence[str] | None,
    change: Callable[[str], None],
    *,
    verb: str,
    done: str,
    state: str,
) -> None:
    """`state`: what the change leads to."""
    views = selected_views(session, names or ())
    steps = [
        BatchStep(
            name=view.name,
            done=done,
            act=partial(change, view.name),
            look=partial(state_shows, view.name, state),
            changes=(UNCHANGED if view.state == state else f"{view.state} -> {state}",),
        )
        for view in views
    ]
    run_steps(session, verb, steps)
    wait_if_asked(session, dict.fromkeys((view.name for view in views), state))


def _now(view: ConnectorView) -> str:
    """Return the state and its tasks, as `RUNNING, 3 tasks, 1 FAILED`."""
    tasks = view.status.tasks if view.status else ()
    failed = sum(task.state == "FAILED" for task in tasks)
    counted = f"{len(tasks)} task{'' if len(tasks) == 1 else 's'}"
    return ", ".join([view.state, counted, *([f"{failed} FAILED"] if failed else [])])
