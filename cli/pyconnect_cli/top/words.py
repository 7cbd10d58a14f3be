"""The texts around the table: summary, keys, help. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pyconnect_cli.overview.rows import connector_rows, worker_rows
from pyconnect_cli.overview.status import number_text
from pyconnect_cli.render.styles import counted
from pyconnect_cli.top.keys import KEYS
from pyconnect_cli.top.state import Page, State
from pyconnect_cli.top.table import sort_columns

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
        ("Show and change", [(key.shown, _help(key.help, key.changes)) for key in KEYS]),
        (
            f"Sort {page.value}; once more turns the order round",
            [(f"shift-{letter.lower()}", title) for letter, title in sort_columns(page).items()],
        ),
    )
    lines: list[str] = []
    for title, rows in sections:
        lines += [title, *(f"  {key:<10}{text}" for key, text in rows), ""]
    return lines[:-1]


def _help(text: str, changes: bool) -> str:
    return f"{text}; shows the plan and asks" if changes else text


def _counts(noun: str, states: Iterable[str]) -> list[Part]:
    counts = Counter(states)
    failed = counts.pop("FAILED", 0)
    others = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    parts: list[Part] = [(f"{noun}: ", None), (others or ("" if failed else "none"), None)]
    if failed:
        parts.append((f"{', ' if others else ''}{failed} FAILED", "bad"))
    return parts
