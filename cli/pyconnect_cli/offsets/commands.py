"""`pyconnect offsets`: connectors' offsets, over REST (KIP-875).

The verbs are in `show`, `kept`, `change` (lag and seek too), `restore` and `orphans`.
"""

from __future__ import annotations

import typer

from pyconnect_cli.offsets import change, kept, orphans, restore, show

app = typer.Typer(help="Show, back up, change, copy and restore connectors' offsets.")
for part in (show, kept, change, restore):
    app.registered_commands.extend(part.app.registered_commands)
app.add_typer(orphans.app, name="orphans")
