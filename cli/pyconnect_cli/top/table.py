"""The table of a page, from the state: its columns, its rows in order, its cells. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyconnect_cli.overview.rows import FAILED, connector_rows, worker_rows
from pyconnect_cli.render.styles import cell_width, printable, shorten
from pyconnect_cli.top.columns import (
    CONTEXT_COLUMNS,
    WORKER_COLUMNS,
    PageColumn,
    connector_columns,
    task_columns,
)
from pyconnect_cli.top.state import Page, State, matches

Row = TypeVar("Row")
GAP = 2
NARROWEST_LAST = 12
READABLE_LAST = 30
WORTH_LESS = 3
MARK = "•"


@dataclass(frozen=True, slots=True)
class Item(Generic[Row]):
    """A row with the name that actions are for; `broken` ones come first."""

    name: str
    row: Row
    broken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A text that fits its column, in a style of `render.styles`."""

    text: str
    style: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A column's title, with an arrow when the rows are sorted by it."""

    text: str
    key: str
    width: int
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A row under the name that actions are for."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One page. `title`: its subject and the number of rows shown and in total."""

    title: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]


def table(state: State, *, width: int, now_ms: int) -> Table:
    """Return the page of a state, fitted into `width` columns."""
    place = state.place
    if place.page is Page.CONTEXTS:
        contexts = [Item(row.name, row, broken=False) for row in state.contexts]
        return _page(state, CONTEXT_COLUMNS, contexts, width)
    if state.look is None:
        return Table(title=place.page.value, heads=(), lines=())
    connectors = connector_rows(state.look, state.before)
    match place.page:
        case Page.CONNECTORS:
            rows = [Item(row.name, row, broken=row.failed) for row in connectors]
            return _page(state, connector_columns(state), rows, width)
        case Page.TASKS:
            tasks = [
                Item(task.name, task, broken=task.state == FAILED)
                for row in connectors
                if place.connector in (None, row.name)
                for task in row.tasks
                if place.worker in (None, task.worker)
            ]
            return _page(state, task_columns(state, now_ms), tasks, width)
        case Page.WORKERS:
            workers = [
                Item(row.worker_id, row, broken=row.status != "healthy")
                for row in worker_rows(state.look)
            ]
            return _page(state, WORKER_COLUMNS, workers, width)


def sort_columns(page: Page) -> dict[str, str]:
    """Return the title of the column that each letter sorts by."""
    columns: Sequence[PageColumn[object]] = {  # type: ignore[assignment] # only letters are read
        Page.CONNECTORS: connector_columns(State()),
        Page.TASKS: task_columns(State(), 0),
        Page.WORKERS: WORKER_COLUMNS,
        Page.CONTEXTS: CONTEXT_COLUMNS,
    }[page]
    return {column.letter: column.title for column in columns if column.letter}


def _page(
    state: State, columns: Sequence[PageColumn[Row]], items: Sequence[Item[Row]], width: int
) -> Table:
    pattern = state.place.pattern
    shown = [
        item
        for item in items
        if matches(pattern, " ".join(column.text(item.row) for column in columns))
    ]
    shown.sort(key=lambda item: (not item.broken, item.name))
    chosen = next((column for column in columns if column.title == state.sort), None)
    if chosen is not None:
        shown = _sorted(shown, chosen, descending=state.descending)
    texts = [[printable(column.text(item.row)) for column in columns] for item in shown]
    titles = [_titled(column, state) for column in columns]
    widths = [
        max((cell_width(cell) for cell in (title, *(row[at] for row in texts))), default=0)
        for at, title in enumerate(titles)
    ]
    kept, widths = _fitted(columns, widths, width - len(MARK) - 1)
    lines = tuple(
        Line(
            name=item.name,
            cells=tuple(
                Cell(
                    text=_marked(state, item.name, shorten(texts[number][at], widths[at]), at),
                    style=_style(columns[at], texts[number][at]),
                )
                for at in kept
            ),
        )
        for number, item in enumerate(shown)
    )
    heads = tuple(
        Head(
            text=f"  {titles[at]}" if at == 0 else titles[at],
            key=columns[at].title,
            width=widths[at] + (len(MARK) + 1 if at == 0 else 0),
            right=columns[at].right,
        )
        for at in kept
    )
    return Table(title=_title(state, len(shown), len(items)), heads=heads, lines=lines)


def _fitted(
    columns: Sequence[PageColumn[Row]], widths: Sequence[int], width: int
) -> tuple[list[int], list[int]]:
    """Return which columns are kept, and the widths of all of them.

    Spare columns are left out while the last column would be narrower than NARROWEST_LAST, the less
    important of them while it would be narrower than READABLE_LAST. Then the name column is cut.
    """
    fitted = list(widths)
    kept = list(range(len(columns)))
    last = kept[-1]

    def room() -> int:
        return width - sum(fitted[at] + GAP for at in kept if at != last)

    wanted = min(fitted[last], NARROWEST_LAST)
    spare = sorted(
        (at for at in kept if columns[at].spare is not None),
        key=lambda at: -(columns[at].spare or 0),
    )
    for at in spare:
        least = READABLE_LAST if (columns[at].spare or 0) >= WORTH_LESS else NARROWEST_LAST
        if room() < min(widths[last], least):
            kept.remove(at)
    if room() < wanted:
        fitted[0] = max(8, fitted[0] - (wanted - room()))
    fitted[last] = max(min(fitted[last], room()), 4)
    return kept, fitted


def _titled(column: PageColumn[Row], state: State) -> str:
    if column.title != state.sort:
        return column.title
    return f"{column.title}{'↑' if state.descending is (column.order is not None) else '↓'}"


def _sorted(
    items: Sequence[Item[Row]], column: PageColumn[Row], *, descending: bool
) -> list[Item[Row]]:
    """Sort by a column: the largest number first, the first text first, unknown values last."""
    if column.order is None:
        return sorted(items, key=lambda item: column.text(item.row), reverse=descending)
    known = [(number, item) for item in items if (number := column.order(item.row)) is not None]
    known.sort(key=lambda pair: pair[0], reverse=not descending)
    return [
        *(item for _, item in known),
        *(item for item in items if column.order(item.row) is None),
    ]


def _title(state: State, shown: int, total: int) -> str:
    place = state.place
    of = place.connector or place.worker
    name = f"{place.page.value} of {of}" if of else place.page.value
    count = f"{shown}" if shown == total else f"{shown} of {total}"
    pattern = f" /{place.pattern}" if place.pattern else ""
    return f"{name} ({count}){pattern}"


def _marked(state: State, name: str, text: str, at: int) -> str:
    if at:
        return text
    return f"{MARK if name in state.marked else ' '} {text}"


def _style(column: PageColumn[Row], text: str) -> str | None:
    return column.style(text) if column.style else None
