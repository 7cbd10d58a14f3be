"""The columns of each page: their cells and their sort order. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from pyconnect_cli.overview.rows import ConnectorRow, TaskRow, WorkerRow
from pyconnect_cli.overview.status import memory_text, number_text, short_cause
from pyconnect_cli.parsing.durations import format_duration
from pyconnect_cli.render.styles import state_style
from pyconnect_cli.top.state import KnownContext, State

Row = TypeVar("Row")
UNITS = ((9_950.0, 1.0, ""), (999_500.0, 1e3, "k"), (float("inf"), 1e6, "M"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageColumn(Generic[Row]):
    """A column; `order` None: it sorts by its text. `spare`: left out where there is no room.

    Columns with the highest `spare` go first; None: never. `letter` sorts by it, with shift.
    """

    title: str
    text: Callable[[Row], str]
    order: Callable[[Row], float | None] | None = None
    style: Callable[[str], str | None] | None = None
    right: bool = False
    spare: int | None = None
    letter: str = ""


Number = TypeVar("Number", bound=float | None)


def _numbers(
    title: str,
    text: Callable[[Number], str],
    number: Callable[[Row], Number],
    *,
    spare: int,
    letter: str = "",
) -> PageColumn[Row]:
    """Return a column of numbers; it sorts by them."""
    return PageColumn(
        title=title,
        text=lambda row: text(number(row)),
        order=number,
        right=True,
        spare=spare,
        letter=letter,
    )


def connector_columns(state: State) -> Sequence[PageColumn[ConnectorRow]]:

    def restarts(row: ConnectorRow) -> int | None:
        found = [
            _restarts(state, row.name, row.restarts),
            *(_restarts(state, task.name, task.restarts) for task in row.tasks),
        ]
        known = [number for number in found if number is not None]
        return sum(known) if known else None

    return (
        PageColumn(title="NAME", text=lambda row: row.name, letter="N"),
        PageColumn(title="TYPE", text=lambda row: row.type, spare=3),
        PageColumn(title="STATE", text=lambda row: row.state, style=state_style, letter="S"),
        PageColumn(title="TASKS", text=lambda row: row.progress, style=state_style),
        _numbers("REC/S", rate_text, lambda row: row.rate, spare=1, letter="R"),
        _numbers("LAG", number_text, lambda row: row.lag, spare=0, letter="L"),
        _numbers("MEMORY", memory_text, lambda row: row.memory, spare=2, letter="M"),
        _numbers("RST", number_text, restarts, spare=4, letter="T"),
        PageColumn(title="WORKER", text=lambda row: row.worker, spare=5, letter="W"),
        PageColumn(title="CAUSE", text=lambda row: short_cause(row.cause), style=_bad),
    )


def task_columns(state: State, now_ms: int) -> Sequence[PageColumn[TaskRow]]:
    """Return the columns of the tasks' page; ages are at `now_ms` since the epoch."""
    return (
        PageColumn(title="TASK", text=lambda row: row.name, letter="N"),
        PageColumn(title="STATE", text=_task_state, style=state_style, letter="S"),
        PageColumn(title="WORKER", text=lambda row: row.worker, spare=3, letter="W"),
        _numbers("REC/S", rate_text, lambda row: row.rate, spare=0, letter="R"),
        _numbers("MEMORY", memory_text, lambda row: row.memory, spare=1, letter="M"),
        _numbers("QUEUE", number_text, lambda row: row.queue, spare=4),
        _numbers(
            "ACTIVE",
            lambda at: age_text(at, now_ms),
            lambda row: row.active_ms,
            spare=2,
            letter="A",
        ),
        _numbers(
            "RST",
            number_text,
            lambda row: _restarts(state, row.name, row.restarts),
            spare=5,
            letter="T",
        ),
        PageColumn(
            title="PID",
            text=lambda row: "-" if row.pid is None else str(row.pid),
            right=True,
            spare=6,
        ),
        PageColumn(title="CAUSE", text=lambda row: short_cause(row.cause), style=_bad),
    )


def rate_text(rate: float | None) -> str:
    """Return records a second with about three digits: 0.5, 12, 340, 12.3k, 1.2M."""
    if rate is None:
        return "-"
    divisor, unit = next((divisor, unit) for limit, divisor, unit in UNITS if rate < limit)
    number = rate / divisor
    short = number < 99.95 if unit else number < 10 and number != round(number)
    return f"{number:.{1 if short else 0}f}{unit}"


def age_text(epoch_ms: int | None, now_ms: int) -> str:
    """Return how long ago a moment was."""
    return "-" if epoch_ms is None else format_duration(max(0, now_ms - epoch_ms) / 1000)


def _restarts(state: State, name: str, told: int | None) -> int | None:
    """Return the number of restarts: the agent's count, or the number of replaced processes.

    None if the processes are not known.
    """
    seen = state.restarts.get(name, 0) if name in state.pids else None
    known = [number for number in (told, seen) if number is not None]
    return max(known) if known else None


def _task_state(row: TaskRow) -> str:
    return row.state if row.responsive else f"{row.state} (no answer)"


def _bad(text: str) -> str | None:
    return "bad" if text else None


WORKER_COLUMNS: Sequence[PageColumn[WorkerRow]] = (
    PageColumn(title="WORKER", text=lambda row: row.address, letter="N"),
    PageColumn(title="HEALTH", text=lambda row: row.status, style=state_style, letter="S"),
    PageColumn(title="KIND", text=lambda row: row.kind, spare=4),
    PageColumn(title="VERSION", text=lambda row: row.agent_version or row.version or "-", spare=5),
    PageColumn(title="STATE", text=lambda row: f"{row.state or '-'}{', leader' * row.leader}"),
    PageColumn(title="PHASE", text=lambda row: row.phase or "-", spare=0),
    _numbers("CONNECTORS", str, lambda row: row.connectors, spare=3),
    _numbers("TASKS", str, lambda row: row.tasks, spare=1, letter="T"),
    _numbers("MEMORY", memory_text, lambda row: row.memory, spare=2, letter="M"),
    PageColumn(title="MESSAGE", text=lambda row: row.message),
)

CONTEXT_COLUMNS: Sequence[PageColumn[KnownContext]] = (
    PageColumn(title="CONTEXT", text=lambda row: row.name, letter="N"),
    PageColumn(title="SHOWN", text=lambda row: "*" if row.current else ""),
    PageColumn(title="URLS", text=lambda row: row.urls),
)
