"""`pyconnect reconcile`: audits of moved records for losses, duplicates and differences."""

from __future__ import annotations

import typer

from pyconnect_cli.reconcile import compare as _reconcile_compare
from pyconnect_cli.reconcile import repair as _reconcile_repair
from pyconnect_cli.reconcile import scan as _reconcile_scan

app = typer.Typer(help="Audit moved data with Spark: losses, duplicates, gaps, differences.")
_reconcile_scan.register(app)
_reconcile_compare.register(app)
_reconcile_repair.register(app)
