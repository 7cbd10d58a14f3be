"""Tables without borders: aligned columns, cut to the terminal, states coloured. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyconnect_cli.errors import UsageError
from pyconnect_cli.render.styles import cell_width, paint, printable, shorten, state_style

Item = TypeVar("Item")
GAP = "  "
NARROWEST = 8
StyleOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column(Generic[Item]):
    """One column; `wide` ones are shown by `-o wide` or by name only."""

    title: str
    value: Callable[[Item], str]
    wide: bool = False
    right: bool = False
    style: StyleOf | None = None


def state_column(title: str, value: Callable[[Item], str], *, wide: bool = False) -> Column[Item]:
    """Return a column whose cells are coloured as states."""
    return Column(title=title, value=value, wide=wide, style=state_style)


def choose_columns(
    columns: Sequence[Column[Item]], names: Sequence[str], *, wide: bool
) -> list[Column[Item]]:
    """Return the columns asked for by name in that order, or the default ones."""
    if not names:
        return [column for column in columns if wide or not column.wide]
    by_name = {column.title.lower(): column for column in columns}
    chosen = []
    for name in names:
        key = name.lower().replace("_", "-")
        if key not in by_name:
            raise UsageError(f"no column `{name}`", hint=f"columns: {', '.join(by_name)}")
        chosen.append(by_name[key])
    return chosen


def table_lines(
    columns: Sequence[Column[Item]],
    items: Sequence[Item],
    *,
    headers: bool,
    width: int | None,
    colour: bool,
) -> list[str]:
    """Lay out a table; `width` None means that nothing is cut."""
    rows = [[_one_line(column.value(item)) for column in columns] for item in items]
    titles = [column.title for column in columns]
    shown = [titles, *rows] if headers else rows
    widths = [max((cell_width(row[at]) for row in shown), default=0) for at in range(len(columns))]
    if width is not None:
        widths = fit_widths(widths, width - len(GAP) * (len(widths) - 1))
    lines = []
    for index, row in enumerate(shown):
        header = headers and index == 0
        cells = [
            _cell(text, widths[at], columns[at], header=header, last=at == len(row) - 1)
            for at, text in enumerate(row)
        ]
        painted = [
            paint(text, "dim" if header else _style(columns[at], row[at]), colour=colour)
            for at, text in enumerate(cells)
        ]
        lines.append(GAP.join(painted).rstrip())
    return lines


def fit_widths(widths: Sequence[int], available: int) -> list[int]:
    """Narrow the widest columns until the table fits; none below a readable width."""
    fitted = list(widths)
    while sum(fitted) > available:
        widest = max(range(len(fitted)), key=lambda at: fitted[at])
        if fitted[widest] <= NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def _cell(text: str, width: int, column: Column[Item], *, header: bool, last: bool) -> str:
    cut = shorten(text, width)
    padding = " " * (width - cell_width(cut))
    if column.right:
        return padding + cut
    return cut if last and not header else cut + padding


def _style(column: Column[Item], text: str) -> str | None:
    return column.style(text) if column.style else None


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()) if "\n" in text or "\t" in text else text)
