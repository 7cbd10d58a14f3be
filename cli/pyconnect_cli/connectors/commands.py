"""`pyconnect connectors`: everything about connectors, over REST.

The verbs are in eight modules: `show`, `logs`, `dead_letters`, `init` (templates), `from_files`,
`promote` (another cluster), `edit` and `act` (changes of a selection).
"""

from __future__ import annotations

import typer

from pyconnect_cli.connectors import (
    act,
    dead_letters,
    edit,
    from_files,
    init,
    logs,
    promote,
    show,
)

app = typer.Typer(help="List, create, change, pause, stop, restart and delete connectors.")
for part in (show, logs, dead_letters, init, from_files, promote, edit, act):
    app.registered_commands.extend(part.app.registered_commands)
