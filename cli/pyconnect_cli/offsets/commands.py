"""`pyconnect offsets`: connectors' offsets, over REST (KIP-875).

The verbs stand in modules: what shows, what changes, and what needs Kafka itself.
"""

from __future__ import annotations

import typer

from pyconnect_cli.offsets import (
    change as _offsets_change,
)
from pyconnect_cli.offsets import (
    orphans as _offsets_orphans,
)
from pyconnect_cli.offsets import (
    positions as _offsets_kafka,
)
from pyconnect_cli.offsets import (
    restore as _offsets_restore,
)
from pyconnect_cli.offsets import (
    show as _offsets_show,
)

app = typer.Typer(help="Show, back up, change, copy and restore connectors' offsets.")
for part in (_offsets_show.app, _offsets_change.app, _offsets_kafka.app, _offsets_restore.app):
    app.registered_commands.extend(part.registered_commands)
app.add_typer(_offsets_orphans.app, name="orphans")
