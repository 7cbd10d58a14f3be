"""`pyconnect offsets`: connectors' offsets, over REST (KIP-875).

The verbs stand in modules: what shows, what changes, and what needs Kafka itself.
"""

from __future__ import annotations

import typer

from pyconnect_cli.commands import (
    _offsets_change,
    _offsets_kafka,
    _offsets_orphans,
    _offsets_restore,
    _offsets_show,
)

app = typer.Typer(help="See, back up, change, copy and restore connectors' offsets.")
for part in (_offsets_show.app, _offsets_change.app, _offsets_kafka.app, _offsets_restore.app):
    app.registered_commands.extend(part.registered_commands)
app.add_typer(_offsets_orphans.app, name="orphans")
