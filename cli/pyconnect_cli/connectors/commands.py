"""`pyconnect connectors`: everything about connectors, over REST.

The verbs stand in eight modules: what shows, logs, the dead letter queue, templates, what works
from files, what works on another cluster, the editor, what acts on a selection.
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
