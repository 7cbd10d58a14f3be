"""`pyconnect offsets`: connectors' offsets, over REST (KIP-875).

The verbs are in `show`, `restore` (diff, export and history too), `change` (lag and seek too) and
`orphans`.
"""

import typer

from pyconnect_cli.offsets import change, orphans, restore, show

app = typer.Typer(help="Show, back up, change, copy and restore connectors' offsets.")
kept = restore.app.registered_commands
app.registered_commands += show.app.registered_commands + kept[:3]
app.registered_commands += change.app.registered_commands + kept[3:]
app.add_typer(orphans.app, name="orphans")
