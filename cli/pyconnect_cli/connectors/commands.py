"""`pyconnect connectors`: everything about connectors, over REST.

The verbs are in six modules: `show`, `logs` (and `dlq`), `init` (templates), `from_files`,
`promote` (another cluster) and `act` (`edit`, and changes of a selection).
"""

from __future__ import annotations

import typer

from pyconnect_cli.connectors import act, from_files, init, logs, promote, show

app = typer.Typer(help="List, create, change, pause, stop, restart and delete connectors.")
for part in (show, logs, init, from_files, promote, act):
    app.registered_commands.extend(part.app.registered_commands)
