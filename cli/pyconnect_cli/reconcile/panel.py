"""The result of a reconciliation on a terminal, with rich: a panel of counts, a table of findings.

It shows the same as `summary`, which is for pipes and terminals without colours.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from pyconnect_cli.reconcile.summary import (
    SEVERITY_STYLES,
    VERDICT_STYLES,
    counts,
    duration,
    head,
    not_compared,
    of_every_kind,
    places,
    report_line,
    unshown,
    what,
)

# The styles of `styles`, as rich calls them.
STYLES = {"good": "green", "bad": "bold red", "warning": "yellow", None: ""}


def drawn(report: Mapping[str, Any], directory: Path, *, width: int) -> str:
    """Return the lines of a summary, with colours; the report's path is never broken."""
    stream = io.StringIO()
    console = Console(
        file=stream,
        force_terminal=True,
        color_system="standard",
        no_color=False,
        highlight=False,
        width=width,
    )
    console.print(_panel(report))
    if names := not_compared(report):
        console.print(Text(f"  {names}"))
    if report["findings"]:
        console.print(_findings(report))
    if more := unshown(report):
        console.print(Text(f"  {more}"))
    console.print(Text(report_line(directory)), soft_wrap=True)
    return stream.getvalue().rstrip("\n")


def _panel(report: Mapping[str, Any]) -> Panel:
    verdict = str(report["verdict"])
    style = STYLES[VERDICT_STYLES[verdict]]
    grid = Table.grid("", "", padding=(0, 2))
    grid.columns[1].justify = "right"
    for name, count in counts(report).items():
        grid.add_row(Text(name), Text(count))
    return Panel(
        grid,
        title=Text(head(report)),
        title_align="left",
        subtitle=Text(f"{verdict} ({duration(report)})"),
        subtitle_align="left",
        border_style=style,
        expand=False,
    )


def _findings(report: Mapping[str, Any]) -> Table:
    findings = of_every_kind(report["findings"])
    table = Table(box=box.SIMPLE_HEAD, header_style="dim", pad_edge=False)
    table.add_column("finding", no_wrap=True)
    table.add_column("what", overflow="fold")
    with_places = any(map(places, findings))
    if with_places:
        table.add_column("at", overflow="fold")
    for finding in findings:
        style = STYLES[SEVERITY_STYLES[str(finding["severity"])]]
        row = [Text(str(finding["kind"]), style=style), Text(what(finding))]
        table.add_row(*row, *([Text(places(finding))] if with_places else []))
    return table
