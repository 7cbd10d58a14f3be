"""The table of a page and the texts around it, from the state. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pyconnect_cli.overview.rows import (
    NO_ANSWER,
    ConnectorRow,
    TaskRow,
    connector_rows,
    state_text,
    worker_rows,
)
from pyconnect_cli.overview.status import (
    WORKER_COLUMNS,
    columns_of,
    memory_text,
    number_column,
    number_text,
    short_cause,
)
from pyconnect_cli.parsing.values import format_duration
from pyconnect_cli.render.styles import cell_width, counted, printable, shorten, state_style
from pyconnect_cli.render.tables import Column, empty_columns, fitted_columns
from pyconnect_cli.top.state import KEYS, KnownContext, Page, State, matches


class Shown(Protocol):
    """A row with the name on which actions work; `broken` ones come first."""

    @property
    def name(self) -> str: ...

    @property
    def broken(self) -> bool: ...


Row = TypeVar("Row", bound=Shown)
UNITS = ((9_950.0, 1.0, ""), (999_500.0, 1e3, "k"), (float("inf"), 1e6, "M"))
MARK = "•"


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
    """A row under the name on which actions work."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One page. `title`: its subject and the number of rows shown and in total."""

    title: str
    heads: tuple[Head, ...] = ()
    lines: tuple[Line, ...] = ()


def table(state: State, *, width: int, now_ms: int) -> Table:
    """Return the page of a state, fitted into `width` columns."""
    place = state.place
    if place.page is Page.CONTEXTS:
        return _page(state, context_columns(state), state.contexts, width)
    if state.look is None:
        return Table(title=place.page.value)
    if place.page is Page.WORKERS:
        return _page(state, WORKER_COLUMNS, worker_rows(state.look), width)
    connectors = connector_rows(state.look, state.before)
    if place.page is Page.CONNECTORS:
        return _page(state, connector_columns(state), connectors, width)
    tasks = [
        task
        for row in connectors
        if place.connector in (None, row.name)
        for task in row.tasks
        if place.worker in (None, task.worker)
    ]
    return _page(state, task_columns(state, now_ms), tasks, width)


def sort_columns(page: Page) -> dict[str, str]:
    """Return the title of the column that each letter sorts by."""
    columns: Sequence[Column[object]] = {  # type: ignore[assignment] # only letters are read
        Page.CONNECTORS: connector_columns(State()),
        Page.TASKS: task_columns(State(), 0),
        Page.WORKERS: WORKER_COLUMNS,
        Page.CONTEXTS: context_columns(State()),
    }[page]
    return {column.letter: column.title for column in columns if column.letter}


def connector_columns(state: State) -> Sequence[Column[ConnectorRow]]:

    def restarts(row: ConnectorRow) -> int | None:
        found = [
            _restarts(state, row.name, row.restarts),
            *(_restarts(state, task.name, task.restarts) for task in row.tasks),
        ]
        known = [number for number in found if number is not None]
        return sum(known) if known else None

    return (
        Column("NAME", lambda row: row.name, letter="N"),
        Column("TYPE", lambda row: row.type, spare=3),
        Column("STATE", state_text, style=_state_style, letter="S"),
        Column("TASKS", lambda row: row.progress, style=state_style),
        number_column("REC/S", rate_text, lambda row: row.rate, spare=1, letter="R"),
        number_column("LAG", number_text, lambda row: row.lag, spare=0, letter="L"),
        number_column("MEMORY", memory_text, lambda row: row.memory, spare=2, letter="M"),
        number_column("RST", number_text, restarts, spare=4, letter="T"),
        Column("WORKER", lambda row: row.worker, spare=5, letter="W"),
        Column("CAUSE", lambda row: short_cause(row.cause), style=_bad),
    )


def task_columns(state: State, now_ms: int) -> Sequence[Column[TaskRow]]:
    """Return the columns of the tasks' page; ages are at `now_ms` since the epoch."""

    def age_text(at_ms: int | None) -> str:
        return "-" if at_ms is None else format_duration(max(0, now_ms - at_ms) / 1000)

    def restarts(row: TaskRow) -> int | None:
        return _restarts(state, row.name, row.restarts)

    return (
        Column("TASK", lambda row: row.name, letter="N"),
        Column("STATE", state_text, style=_state_style, letter="S"),
        Column("WORKER", lambda row: row.worker, spare=3, letter="W"),
        number_column("REC/S", rate_text, lambda row: row.rate, spare=0, letter="R"),
        number_column("MEMORY", memory_text, lambda row: row.memory, spare=1, letter="M"),
        number_column("QUEUE", number_text, lambda row: row.queue, spare=4),
        number_column("ACTIVE", age_text, lambda row: row.active_ms, spare=2, letter="A"),
        number_column("RST", number_text, restarts, spare=5, letter="T"),
        Column("PID", lambda row: str(row.pid or "-"), right=True, spare=6),
        Column("CAUSE", lambda row: short_cause(row.cause), style=_bad),
    )


def context_columns(state: State) -> Sequence[Column[KnownContext]]:
    """Return the columns of the contexts, after the first look those of `pyconnect fleet` too."""
    known = any(row.cluster for row in state.contexts)
    return (
        Column("CONTEXT", lambda row: row.name, letter="N"),
        Column("SHOWN", lambda row: "*" if row.current else "", spare=6),
        *(columns_of(lambda row: row.cluster) if known else ()),
        *(() if known else (Column("URLS", lambda row: row.urls),)),
    )


def _state_style(text: str) -> str | None:
    return "warning" if text.endswith(NO_ANSWER) else state_style(text)


def rate_text(rate: float | None) -> str:
    """Return records a second with about three digits: 0.5, 12, 340, 12.3k, 1.2M."""
    if rate is None:
        return "-"
    divisor, unit = next((divisor, unit) for limit, divisor, unit in UNITS if rate < limit)
    number = rate / divisor
    short = number < 99.95 if unit else number < 10 and number != round(number)
    return f"{number:.{1 if short else 0}f}{unit}"


def _restarts(state: State, name: str, told: int | None) -> int | None:
    """Return the number of restarts: the agent's count, or the number of replaced processes.

    None if the processes are not known.
    """
    seen = state.restarts.get(name, 0) if name in state.pids else None
    known = [number for number in (told, seen) if number is not None]
    return max(known) if known else None


def _bad(text: str) -> str | None:
    return "bad" if text else None


def _page(state: State, columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Table:
    pattern = state.place.pattern
    shown = [
        row for row in rows if matches(pattern, " ".join(column.value(row) for column in columns))
    ]
    shown.sort(key=lambda row: (not row.broken, row.name))
    chosen = next((column for column in columns if column.title == state.sort), None)
    if chosen is not None:
        # Sort by a column: numbers from the largest, texts from the first, unknown values last.
        order = chosen.order
        if order is None:
            shown = sorted(shown, key=chosen.value, reverse=state.descending)
        else:
            known = [(number, row) for row in shown if (number := order(row)) is not None]
            known.sort(key=lambda pair: pair[0], reverse=not state.descending)
            shown = [*(row for _, row in known), *(row for row in shown if order(row) is None)]
    texts = [[printable(column.value(row)) for column in columns] for row in shown]
    rising = chosen is not None and state.descending is (chosen.order is not None)
    arrow = "↑" if rising else "↓"
    titles = [f"{column.title}{arrow if column is chosen else ''}" for column in columns]
    widths = [
        max(cell_width(cell) for cell in (title, *(row[at] for row in texts)))
        for at, title in enumerate(titles)
    ]
    empty = {at for at in empty_columns(columns, rows) if columns[at].title != state.sort}
    kept, widths = fitted_columns(columns, widths, width - len(MARK) - 1, empty)

    def cell(name: str, at: int, text: str) -> Cell:
        style, cut = columns[at].style, shorten(text, widths[at])
        mark = f"{MARK if name in state.marked else ' '} " if at == 0 else ""
        return Cell(text=mark + cut, style=style(text) if style else None)

    lines = tuple(
        Line(name=row.name, cells=tuple(cell(row.name, at, cells[at]) for at in kept))
        for row, cells in zip(shown, texts, strict=True)
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
    of = state.place.connector or state.place.worker
    name = f"{state.place.page.value} of {of}" if of else state.place.page.value
    count = f"{len(shown)}" if len(shown) == len(rows) else f"{len(shown)} of {len(rows)}"
    title = f"{name} ({count}){f' /{pattern}' if pattern else ''}"
    return Table(title=title, heads=heads, lines=lines)


Part = tuple[str, str | None]
"""A piece of a line with its style."""

NAVIGATION = (
    ("enter", "tasks of a connector or worker; the cluster of a context"),
    ("esc", "back: marks, then the filter, then the page"),
    (":", "connectors, tasks, workers, contexts (c, t, w, ctx); :q leaves"),
    (":ctx NAME", "watch the cluster of another context"),
    ("/", "filter rows or lines by a regular expression; /!text hides them"),
    ("space", "mark a row; keys that change something act on all marked rows"),
    ("j k g G", "down, up, first, last, beside the cursor keys"),
    ("?", "this page"),
    ("ctrl-c", "leave"),
)


def summary(state: State, title: str) -> tuple[list[Part], list[Part]]:
    """Return the two lines above the table: the cluster, and what runs on it."""
    look = state.look
    if look is None:
        return [
            (title, "strong"),
            (f"  {state.fault or 'looking…'}", "bad" if state.fault else "dim"),
        ], []
    workers = worker_rows(look)
    healthy = sum(worker.status == "healthy" for worker in workers)
    health = f"{healthy} of {counted(len(workers), 'worker')} healthy"
    rows = connector_rows(look, state.before)
    first: list[Part] = [
        (title, "strong"),
        ("  ", None),
        (health, "good" if healthy == len(workers) else "bad"),
    ]
    if phases := sorted({worker.phase for worker in workers if worker.phase}):
        first.append((f"  exactly once: {', '.join(phases)}", None))
    if lags := [row.lag for row in rows if row.lag is not None]:
        first.append((f"  lag: {number_text(sum(lags))}", None))
    second: list[Part] = [
        *_counts("connectors", [row.state for row in rows]),
        ("  ", None),
        *_counts("tasks", [task.state for row in rows for task in row.tasks]),
    ]
    if state.fault:
        second = [(f"not up to date: {state.fault}", "bad")]
    return first, second


def hints(page: Page, width: int) -> str:
    """Return the keys of a page on one line, as many as there is room for."""
    enter = {Page.TASKS: [], Page.CONTEXTS: ["enter:watch"]}.get(page, ["enter:tasks"])
    parts = ["?:help", *enter, "/:filter", "::go to"]
    parts += [f"{key.shown}:{key.hint}" for key in KEYS if page in key.pages]
    line = ""
    for part in parts:
        if len(line) + len(part) + 2 > width:
            break
        line = f"{line}  {part}" if line else part
    return line


def help_lines(page: Page) -> list[str]:
    """Return the help page: where to go, what to do, how to sort."""
    sections = (
        ("Move", NAVIGATION),
        (
            "Show and change",
            [
                (key.shown, f"{key.help}; shows the plan and asks" if key.changes else key.help)
                for key in KEYS
            ],
        ),
        (
            f"Sort {page.value}; once more turns the order round",
            [(f"shift-{letter.lower()}", title) for letter, title in sort_columns(page).items()],
        ),
    )
    lines: list[str] = []
    for title, rows in sections:
        lines += [title, *(f"  {key:<10}{text}" for key, text in rows), ""]
    return lines[:-1]


def _counts(noun: str, states: Iterable[str]) -> list[Part]:
    counts = Counter(states)
    failed = counts.pop("FAILED", 0)
    others = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    parts: list[Part] = [(f"{noun}: ", None), (others or ("" if failed else "none"), None)]
    if failed:
        parts.append((f"{', ' if others else ''}{failed} FAILED", "bad"))
    return parts
