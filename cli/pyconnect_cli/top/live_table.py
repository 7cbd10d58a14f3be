"""The widget of the table: it draws only what has changed, and keeps its cursor by a row's name."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import DataTable

from pyconnect_cli.top.table import Line, Table
from pyconnect_cli.top.words import Part

STYLES = {
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "dim": "dim",
    "strong": "bold",
    "accent": "cyan",
}


class LiveTable(DataTable[Text]):
    """Shows a `Table`; a row's key is its name."""

    def __init__(self) -> None:
        super().__init__(cursor_type="row", zebra_stripes=False)
        self.shown = Table(title="", heads=(), lines=())

    @property
    def row(self) -> str | None:
        """The name under the cursor."""
        at, lines = self.cursor_row, self.shown.lines
        return lines[at].name if 0 <= at < len(lines) else None

    def show(self, table: Table, row: str | None) -> None:
        """Show a table, with the cursor on `row`; the same rows get only cells that changed."""
        before, self.shown = self.shown, table
        if table == before:
            return
        same_heads = table.heads == before.heads
        names = [line.name for line in table.lines]
        if same_heads and names == [line.name for line in before.lines]:
            for line, old in zip(table.lines, before.lines, strict=True):
                for head, cell, old_cell, text in zip(
                    table.heads, line.cells, old.cells, _cells(table, line), strict=True
                ):
                    if cell != old_cell:
                        self.update_cell(line.name, head.key, text)
            return
        self.clear(columns=not same_heads)
        if not same_heads:
            for head in table.heads:
                label = Text(head.text, justify="right" if head.right else "left")
                self.add_column(label, width=head.width, key=head.key)
        for line in table.lines:
            self.add_row(*_cells(table, line), key=line.name)
        if row in names:
            self.move_cursor(row=names.index(row), animate=False)


def _cells(table: Table, line: Line) -> list[Text]:
    return [
        Text(
            cell.text,
            style=STYLES.get(cell.style or "", ""),
            justify="right" if head.right else "left",
            no_wrap=True,
        )
        for head, cell in zip(table.heads, line.cells, strict=True)
    ]


def styled(parts: Sequence[Part]) -> Text:
    """Return a line of parts in their styles."""
    return Text.assemble(
        *((text, STYLES.get(style or "", "")) for text, style in parts),
        no_wrap=True,
        overflow="ellipsis",
    )
