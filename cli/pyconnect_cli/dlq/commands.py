"""`pyconnect dlq`: replays of dead letters.

The verbs are in two modules: `replay`, and `history` (and `undo`). `connectors dlq` is in
`dead_letters`.
"""

from __future__ import annotations

import typer

from pyconnect_cli.dlq import history, replay

app = typer.Typer(help="Replay dead letters exactly once; list and undo replays.")
for part in (replay, history):
    app.registered_commands.extend(part.app.registered_commands)
