"""`connectors edit`: a configuration in the user's editor."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import typer

from pyconnect_cli.acting.batch import BatchStep, run_steps
from pyconnect_cli.acting.looks import config_shows
from pyconnect_cli.acting.selection import known_connector
from pyconnect_cli.connectors.files import read_connector_files
from pyconnect_cli.connectors.plan import ConnectorFile, differences
from pyconnect_cli.connectors.unknown_settings import check_settings
from pyconnect_cli.errors import PreconditionFailed, PyconnectError, UsageError
from pyconnect_cli.parsing.arguments import NameArgument
from pyconnect_cli.session import Session, session_of
from pyconnect_cli.verbs import ChangingVerb

app = typer.Typer()


@app.command(cls=ChangingVerb)
def edit(context: typer.Context, name: NameArgument) -> None:
    """Open a connector's configuration in $VISUAL or $EDITOR and store the changes."""
    session = session_of(context)
    before = dict(known_connector(session, name).config)
    with _edited(session, name, before) as edited:
        session.renew_time()
        found = differences(before, edited.config)
        if not found:
            session.output.message("nothing was changed")
            return
        for difference in found:
            for line in difference.lines(show_secrets=False):
                session.output.message(line)
        check_settings(session, name, edited.config, [difference.key for difference in found])

        def act() -> None:
            session.client.put_connector_config(name, edited.config)

        look = partial(config_shows, name, edited.config)
        run_steps(session, "update", [BatchStep(name=name, done="updated", act=act, look=look)])


def _run_editor(editor: str, path: str) -> None:
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


@contextmanager
def _edited(session: Session, name: str, config: dict[str, str | None]) -> Iterator[ConnectorFile]:
    """Let the user edit a configuration; the text is kept when storing it fails."""
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
        _run_editor(editor, path)
        files = read_connector_files([path], name=name)
        if len(files) != 1:
            raise UsageError(f"one configuration was expected, not {len(files)}")
        yield files[0]
    except PyconnectError:
        if Path(path).read_bytes() != before:
            session.output.message(f"your text is kept in {path}")
            raise
        Path(path).unlink(missing_ok=True)
        raise
    Path(path).unlink(missing_ok=True)
