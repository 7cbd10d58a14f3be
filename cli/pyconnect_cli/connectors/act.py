"""`connectors edit pause resume stop restart delete`: changes of connectors that exist."""

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pyconnect_cli.acting.batch import (
    UNCHANGED,
    Asks,
    BatchStep,
    config_shows,
    deletion_shows,
    restart_shows,
    run_steps,
    state_shows,
)
from pyconnect_cli.acting.selection import known_connector, selected_views
from pyconnect_cli.acting.wait import delete_and_see, kept_state, wait_if_asked
from pyconnect_cli.connectors.files import check_settings, read_connector_files
from pyconnect_cli.connectors.plan import ConnectorFile, differences
from pyconnect_cli.errors import NotFound, PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.render.styles import counted
from pyconnect_cli.rest.client import ConnectClient
from pyconnect_cli.rest.model import ConnectorView
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ActingVerb, ChangingVerb, NameArgument, NamesArgument, option

app = typer.Typer()


@app.command(cls=ChangingVerb)
def edit(context: typer.Context, name: NameArgument) -> None:
    """Open a connector's configuration in $VISUAL or $EDITOR and store the changes."""
    session = session_of(context)
    before = dict(known_connector(session, name).config)
    with _edited(session, name, before) as edited:
        found = differences(before, edited.config)
        if not found:
            session.output.message("nothing was changed")
            return
        for difference in found:
            for line in difference.lines(show_secrets=False):
                session.output.message(line)

        def act() -> None:
            session.client.put_connector_config(name, edited.config)

        look = partial(config_shows, name, edited.config)
        run_steps(session, "update", [BatchStep(name=name, done="updated", act=act, look=look)])


@contextmanager
def _edited(session: Session, name: str, config: dict[str, str | None]) -> Iterator[ConnectorFile]:
    """Let the user edit a configuration until it is valid; only once if no question is asked.

    The text is kept when storing it fails.
    """
    editor = session.environ.get("VISUAL") or session.environ.get("EDITOR")
    if not editor:
        raise PreconditionFailed(
            "no editor is set", hint="set VISUAL or EDITOR, or use: pyconnect connectors patch"
        )
    descriptor, path = tempfile.mkstemp(prefix="pyconnect-", suffix=".json")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2, ensure_ascii=False)
        file.write("\n")
    before = Path(path).read_bytes()
    try:
        while True:
            try:
                code = subprocess.run([*shlex.split(editor), path], check=False).returncode
            except (OSError, ValueError) as exc:
                raise UsageError(
                    f"the editor `{editor}` cannot be run: {getattr(exc, 'strerror', None) or exc};"
                    " nothing was changed",
                    hint="set VISUAL or EDITOR, or use: pyconnect connectors patch",
                ) from exc
            if code != 0:
                raise PyconnectError(f"`{editor}` failed; nothing was changed")
            session.renew_time()
            try:
                edited, *others = read_connector_files([path], name=name)
                if others:
                    raise UsageError(f"one configuration was expected, not {len(others) + 1}")
                changed = [found.key for found in differences(config, edited.config)]
                if changed:
                    check_settings(session, name, edited.config, changed, refuses=True)
                break
            except UsageError as error:
                if session.settings.yes or not session.interactive:
                    raise
                session.output.error(error)
                session.confirm("open the editor again?")
        yield edited
    except PyconnectError:
        if Path(path).read_bytes() != before:
            session.output.message(f"your text is kept in {path}")
            raise
        Path(path).unlink(missing_ok=True)
        raise
    Path(path).unlink(missing_ok=True)


@app.command(cls=ActingVerb)
def pause(context: typer.Context, names: NamesArgument = None) -> None:
    """Pause connectors: their tasks stay assigned and stop working."""
    _change(context, names, ConnectClient.pause_connector, "pause", "PAUSED")


@app.command(cls=ActingVerb)
def resume(context: typer.Context, names: NamesArgument = None) -> None:
    """Resume paused or stopped connectors."""
    _change(context, names, ConnectClient.resume_connector, "resume", "RUNNING")


@app.command(cls=ActingVerb)
def stop(context: typer.Context, names: NamesArgument = None) -> None:
    """Stop connectors: end their tasks, keep offsets and configuration (KIP-875)."""
    _change(context, names, ConnectClient.stop_connector, "stop", "STOPPED")


@app.command(cls=ActingVerb)
def restart(
    context: typer.Context,
    names: NamesArgument = None,
    *,
    connector_only: Annotated[bool, option("--connector-only", "no restart of the tasks")] = False,
    only_failed: Annotated[
        bool, option("--only-failed", "only connectors and tasks that are FAILED")
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
        bool, option("--ignore-not-found", "exit 0 for names that do not exist")
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


DONE = {"pause": "paused", "resume": "resumed", "stop": "stopped"}


def _change(
    context: typer.Context,
    names: Sequence[str] | None,
    change: Callable[[ConnectClient, str], None],
    verb: str,
    state: str,
) -> None:
    """Change the selected connectors and wait if asked; `state` is the one that they reach."""
    session = session_of(context)
    views = selected_views(session, names or ())
    steps = [
        BatchStep(
            name=view.name,
            done=DONE[verb],
            act=partial(change, session.client, view.name),
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
    return f"{view.state}, {counted(len(tasks), 'task')}{f', {failed} FAILED' if failed else ''}"
