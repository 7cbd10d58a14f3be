"""Tables without borders: aligned columns, fitted to the terminal, states coloured. Pure."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import KW_ONLY, dataclass
from math import inf
from typing import Generic, TypeVar

from pyconnect_cli.errors import UsageError
from pyconnect_cli.render.styles import (
    cell_width,
    paint,
    printable,
    shorten,
    shorten_middle,
    state_style,
    wrapped,
)

Item = TypeVar("Item")
GAP = "  "
NARROWEST = 10
NARROWEST_PROSE = 20
NARROWEST_LAST = 12
READABLE_LAST = 30
WORTH_LESS = 3
UNKNOWN = frozenset({"", "-"})
StyleOf = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class Column(Generic[Item]):
    """One column; `wide` ones are shown by `-o wide` or by name only.

    On a narrow terminal `prose` is wrapped, other texts are cut; `whole` ones and numbers never.
    `distinct` texts are cut in their middle as long as all of them still differ.

    Of tables with a line for each item: columns with the highest `spare` are left out first (None:
    never). Of the live view: it sorts by `order` (None: by the text) at the key `letter`.
    """

    title: str
    value: Callable[[Item], str]
    _: KW_ONLY
    wide: bool = False
    right: bool = False
    prose: bool = False
    whole: bool = False
    distinct: bool = False
    style: StyleOf | None = None
    order: Callable[[Item], float | None] | None = None
    letter: str = ""
    spare: int | None = None

    def narrowest(self, texts: Collection[str]) -> int | float:
        """Return the least width at which the column is readable."""
        if self.whole or self.right:
            return inf
        if self.prose:
            return NARROWEST_PROSE
        width = NARROWEST
        if self.distinct:
            while len({shorten_middle(text, width) for text in texts}) < len(texts):
                width += 1
        return width

    def cut(self, text: str, width: int) -> str:
        """Return a text that fits, on one line."""
        return shorten_middle(text, width) if self.distinct else shorten(text, width)


def state_column(title: str, value: Callable[[Item], str]) -> Column[Item]:
    """Return a column whose cells are coloured as states."""
    return Column(title, value, style=state_style)


def worker_column(value: Callable[[Item], str]) -> Column[Item]:
    """Return the column of workers: addresses without a scheme, as in statuses."""
    return Column(
        "WORKER", lambda item: value(item).partition("://")[2] or value(item), distinct=True
    )


def choose_columns(
    columns: Sequence[Column[Item]], names: Sequence[str], *, wide: bool
) -> list[Column[Item]]:
    """Return the named columns in that order, or the default ones."""
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
    """Lay out a table; `width` None: nothing is cut or wrapped.

    If the columns would become too narrow to read, each item is a block of lines instead.
    """
    rows = [[_one_line(column.value(item)) for column in columns] for item in items]
    shown = [[column.title for column in columns], *rows] if headers else rows
    widths = [max((cell_width(row[at]) for row in shown), default=0) for at in range(len(columns))]
    if width is not None:
        available = width - len(GAP) * (len(widths) - 1)
        cells = [frozenset(row[at] for row in rows) for at in range(len(columns))]
        least = [column.narrowest(texts) for column, texts in zip(columns, cells, strict=True)]
        fitted = fit_widths(widths, available, columns, least)
        if sum(fitted) > available:
            return _blocks(columns, rows, width=width, colour=colour)
        widths = fitted
    lines: list[str] = []
    for index, row in enumerate(shown):
        lines += _row_lines(columns, row, widths, header=headers and index == 0, colour=colour)
    return lines


def fit_widths(
    widths: Sequence[int],
    available: int,
    columns: Sequence[Column[Item]],
    least: Sequence[int | float],
) -> list[int]:
    """Narrow columns until the table fits: prose, then others, the widest first.

    The first column, which names the row, is narrowed last. No column gets narrower than `least`.
    """
    fitted = list(widths)
    prose = [at for at, column in enumerate(columns) if column.prose]
    others = [at for at in range(1, len(columns)) if at not in prose]
    for narrowable in (prose, others, [0]):
        while sum(fitted) > available:
            wide = [at for at in narrowable if fitted[at] > least[at]]
            if not wide:
                break
            fitted[max(wide, key=fitted.__getitem__)] -= 1
    return fitted


def empty_columns(columns: Sequence[Column[Item]], items: Collection[Item]) -> set[int]:
    """Return the spare columns that hold no value for any item."""
    return {
        at
        for at, column in enumerate(columns)
        if items
        and column.spare is not None
        and all(column.value(item) in UNKNOWN for item in items)
    }


def fitted_columns(
    columns: Sequence[Column[Item]], widths: Sequence[int], width: int, empty: Collection[int]
) -> tuple[list[int], list[int]]:
    """Return which columns are kept in one line, and the widths of all of them.

    Columns that are `empty`, as agents' columns are on Java clusters, take no room. Spare columns
    are left out while the last column would be narrower than NARROWEST_LAST, the less important of
    them while it would be narrower than READABLE_LAST. Then the name column is cut.
    """
    fitted = list(widths)
    kept = [at for at in range(len(columns)) if at not in empty]
    last = kept[-1]

    def room() -> int:
        return width - sum(fitted[at] + len(GAP) for at in kept if at != last)

    wanted = min(fitted[last], NARROWEST_LAST)
    spare = {at: rank for at in kept if (rank := columns[at].spare) is not None}
    for at in sorted(spare, key=lambda at: -spare[at]):
        least = READABLE_LAST if spare[at] >= WORTH_LESS else NARROWEST_LAST
        if room() < min(widths[last], least):
            kept.remove(at)
    if room() < wanted:
        fitted[0] = max(8, fitted[0] - (wanted - room()))
    fitted[last] = max(min(fitted[last], room()), 4)
    return kept, fitted


def _row_lines(
    columns: Sequence[Column[Item]],
    row: Sequence[str],
    widths: Sequence[int],
    *,
    header: bool,
    colour: bool,
) -> list[str]:
    """Return the lines of one row: more than one where prose is wrapped."""
    cells = [
        wrapped(text, width) if column.prose else [column.cut(text, width)]
        for column, text, width in zip(columns, row, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, cells))):
        painted = []
        for at, column in enumerate(columns):
            text = cells[at][number] if number < len(cells[at]) else ""
            padding = " " * (widths[at] - cell_width(text))
            style = "dim" if header else _style(column, row[at])
            padded = padding + text if column.right else text + padding
            painted.append(paint(padded, style, colour=colour and bool(text)))
        lines.append(GAP.join(painted).rstrip())
    return lines


def _blocks(
    columns: Sequence[Column[Item]], rows: Sequence[Sequence[str]], *, width: int, colour: bool
) -> list[str]:
    """Return a line for each cell, with its title; an empty line between items."""
    longest = max(cell_width(column.title) for column in columns)
    indent = " " * (longest + len(GAP))
    lines: list[str] = []
    for row in rows:
        if lines:
            lines.append("")
        for column, text in zip(columns, row, strict=True):
            if not text:
                continue
            parts = wrapped(text, max(width - len(indent), NARROWEST)) if column.prose else [text]
            title = paint(column.title.ljust(longest), "dim", colour=colour)
            style = _style(column, text)
            lines.append(title + GAP + paint(parts[0], style, colour=colour))
            lines += [indent + paint(part, style, colour=colour) for part in parts[1:]]
    return lines


def _style(column: Column[Item], text: str) -> str | None:
    return column.style(text) if column.style else None


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()) if "\n" in text or "\t" in text else text)
