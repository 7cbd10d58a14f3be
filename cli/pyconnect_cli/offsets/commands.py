"""`pyconnect offsets`: connectors' offsets, over REST (KIP-875).

The verbs stand in modules: what shows, what changes, and what needs Kafka itself.
"""

from __future__ import annotations

import typer

from pyconnect_cli.offsets import change, orphans, positions, restore, show

app = typer.Typer(help="Show, back up, change, copy and restore connectors' offsets.")
for part in (show, change, positions, restore):
    app.registered_commands.extend(part.app.registered_commands)
app.add_typer(orphans.app, name="orphans")
