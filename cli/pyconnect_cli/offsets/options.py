"""Options that the changing verbs of `offsets` have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.offsets.plan.change import Wish
from pyconnect_cli.offsets.run import Around

StopOption = Annotated[
    bool,
    typer.Option("--stop", help="stop of the connector before the change, if it is not STOPPED"),
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="resume of the connector after the change")
]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait", help="with --resume: wait until the connector is RUNNING, at most --timeout"
    ),
]
NoBackupOption = Annotated[
    bool, typer.Option("--no-backup", help="no backup: the change cannot be undone")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="change even if the offsets do not seem to fit")
]


def around(*, stop: bool, resume: bool, wait: bool, no_backup: bool) -> Around:
    """Read the options; UsageError for a wait for nothing."""
    if wait and not resume:
        raise UsageError(
            "--wait waits until the connector runs again: it needs --resume",
            hint="the command always waits for the stop",
        )
    return Around(wish=Wish(stop=stop, resume=resume), wait=wait, backup=not no_backup)
