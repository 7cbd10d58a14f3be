"""`pyconnect reconcile`: audits of moved records for losses, duplicates and differences.

The verbs are in `scan` (topics alone), `compare` and `repair` (and `undo`).
"""

from __future__ import annotations

import typer

from pyconnect_cli.reconcile import compare, repair, scan

app = typer.Typer(help="Audit moved data with Spark: losses, duplicates, gaps, differences.")
for part in (scan, compare, repair):
    app.registered_commands.extend(part.app.registered_commands)
