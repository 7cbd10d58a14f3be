"""Options that the changing verbs of `offsets` have in common."""

from __future__ import annotations

from typing import Annotated

import typer

from pyconnect_cli.errors import UsageError
from pyconnect_cli.offsets.plan.change import Wish
from pyconnect_cli.offsets.run import Around

StopOption = Annotated[
    bool, typer.Option("--stop", help="stop the connector for the change, if it is not STOPPED")
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="resume the connector afterwards")]
WaitOption = Annotated[
    bool, typer.Option("--wait", help="with --resume: wait until it is RUNNING, see --timeout")
]
NoBackupOption = Annotated[
    bool, typer.Option("--no-backup", help="keep no backup: the change cannot be undone")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="go on where the offsets do not seem to fit")
]


def around(*, stop: bool, resume: bool, wait: bool, no_backup: bool) -> Around:
    """Read the options; UsageError for a wait for nothing."""
    if wait and not resume:
        raise UsageError(
            "--wait waits until the connector runs again: it needs --resume",
            hint="the stop itself is always waited for",
        )
    return Around(wish=Wish(stop=stop, resume=resume), wait=wait, backup=not no_backup)
