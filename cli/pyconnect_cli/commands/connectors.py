"""`pyconnect connectors`: everything about connectors, over REST.

The verbs stand in three modules: what shows, what acts on a selection, what works from files.
"""

from __future__ import annotations

import typer

from pyconnect_cli.commands import _connectors_act, _connectors_files, _connectors_show

app = typer.Typer(help="List, create, change, pause, stop, restart and delete connectors.")
for part in (_connectors_show.app, _connectors_files.app, _connectors_act.app):
    app.registered_commands.extend(part.registered_commands)
