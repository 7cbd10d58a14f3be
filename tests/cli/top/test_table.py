"""Rows, columns and their width in a terminal."""

from dataclasses import replace

import pytest

from pyconnect_cli.render.tables import GAP
from pyconnect_cli.top.state import Page, State
from pyconnect_cli.top.table import (
    Table,
    help_lines,
    hints,
    rate_text,
    sort_columns,
    summary,
    table,
)
from tests.cli.overview.worlds import agent, child, look, view, worker
from tests.cli.top.shown import busy_cluster
from tests.support.cases import cases


def busy() -> State:
    return State().looked(busy_cluster())


def drawn(state: State, width: int = 120) -> Table:
    return table(state, width=width, now_ms=0)


def names(shown: Table) -> list[str]:
    return [line.name for line in shown.lines]


def column(shown: Table, title: str) -> list[str]:
    at = [head.key for head in shown.heads].index(title)
    return [line.cells[at].text.strip() for line in shown.lines]


def test_rows_are_sorted_by_failure_name_or_number() -> None:
    """Failed rows are first, then names; numbers start with the largest, unknown ones are last."""
    assert names(drawn(busy())) == ["orders-lake", "clicks", "inventory", "invoices", "orders"]
    assert column(drawn(busy()), "CAUSE")[0] == "IllegalStateException: disk full"
    assert names(drawn(busy().sorted_by("REC/S")))[:2] == ["orders", "orders-lake"]
    turned = drawn(busy().sorted_by("REC/S").sorted_by("REC/S"))
    assert names(turned)[:2] == ["orders-lake", "orders"]
    assert "REC/S↑" in [head.text for head in turned.heads]
    expected = ["clicks", "inventory", "invoices", "orders", "orders-lake"]
    assert names(drawn(busy().sorted_by("NAME"))) == expected


def test_tasks_are_of_the_connector_or_worker_that_was_entered() -> None:
    """The page has the tasks of the connector or worker that was entered, or else all tasks."""
    assert names(drawn(busy().entered("orders"))) == ["orders/0", "orders/1", "orders/2"]
    expected = ["orders-lake/1", "orders-lake/0"]
    assert names(drawn(busy().commanded("w").entered("connect-2:8083"))) == expected
    assert len(names(drawn(busy().commanded("t")))) == 6


def test_restarts_are_those_that_the_agent_counts_or_the_view_has_seen() -> None:
    """A worker's own count of restarts wins over the number of pids seen."""

    def restarts(total: int | None, *pids: int) -> list[str]:
        state = State()
        for pid in pids:
            told = {} if total is None else {"restarts": {"total": total}}
            task = replace(child("a", 0, pid=pid), raw=told)
            found = look(view("a", "RUNNING"), workers=[agent(children=[task])])
            state = state.looked(found)
        return column(table(state, width=120, now_ms=0), "RST")

    assert restarts(None, 10, 11, 12) == ["2"]
    assert restarts(5, 10) == ["5"]
    assert restarts(None, 10) == ["0"]
    assert column(drawn(busy()), "RST")[-2:] == ["-", "0"]


def test_a_filter_looks_at_every_column_and_marks_show() -> None:
    """Columns that are not shown count for the filter; the title has the number of rows."""
    shown = drawn(busy().filtered("connect-1"), width=60)
    assert names(shown) == ["clicks", "orders"]
    assert shown.title == "connectors (2 of 5) /connect-1"
    shown = drawn(busy().toggled("orders"))
    assert [line.cells[0].text for line in shown.lines if line.name == "orders"] == ["• orders"]


@pytest.mark.parametrize("page", list(Page))
@cases("width", 50, 60, 80, 120, 200)
def test_a_page_fits_its_terminal(page: Page, width: int) -> None:
    """Spare columns are left out first; no cell is wider than its column."""
    shown = drawn(busy().commanded(page.value), width=width)
    assert sum(head.width for head in shown.heads) + len(GAP) * (len(shown.heads) - 1) <= width
    for line in shown.lines:
        for head, cell in zip(shown.heads, line.cells, strict=True):
            assert len(cell.text) <= head.width


def test_eighty_columns_hold_what_matters() -> None:
    """At 80 columns state, rate, lag, memory and cause are shown; names are escaped."""
    titles = [head.key for head in drawn(busy(), width=78).heads]
    assert titles == ["NAME", "STATE", "TASKS", "REC/S", "LAG", "MEMORY", "CAUSE"]
    state = State().looked(look(view("a\x1b[2Jb", "RUNNING")))
    shown = table(state, width=80, now_ms=0)
    assert "\x1b" not in shown.lines[0].cells[0].text
    assert shown.lines[0].name == "a\x1b[2Jb"


@cases(
    "rate, text",
    (None, "-"), (0.0, "0"), (0.5, "0.5"), (12.0, "12"), (340.4, "340"), (9_900.0, "9900"),
    (12_345.0, "12.3k"), (999_400.0, "999k"), (1_234_567.0, "1.2M"),
)  # fmt: skip
def test_a_rate_has_three_digits(rate: float | None, text: str) -> None:
    """The text has three digits for small and large rates."""
    assert rate_text(rate) == text


def test_the_summary_counts_states_and_names_what_failed() -> None:
    """Before the first look the summary says `looking…`."""
    first, second = summary(State().looked(busy_cluster()), "prod")
    expected = "prod  3 of 3 workers healthy  exactly once: enabled  lag: 48,300"
    assert "".join(text for text, _ in first) == expected
    expected = "connectors: 1 PAUSED, 3 RUNNING, 1 STOPPED  tasks: 5 RUNNING, 1 FAILED"
    assert "".join(text for text, _ in second) == expected
    assert summary(State(), "prod") == ([("prod", "strong"), ("  looking…", "dim")], [])


@pytest.mark.parametrize("page", list(Page))
def test_the_texts_around_the_table_fit_80_columns(page: Page) -> None:
    """The line of keys has as many as fit; help has a line for each sorting key."""
    assert len(hints(page, 78)) <= 78
    lines = help_lines(page)
    assert max(map(len, lines)) <= 80
    for letter in sort_columns(page):
        assert any(line.startswith(f"  shift-{letter.lower()} ") for line in lines)


def test_unfilled_columns_take_no_room_and_silent_workers_are_marked() -> None:
    """Columns without values leave their room to the cause; the state of silent workers is old."""
    java = look(view("orders", "RUNNING", "FAILED"), workers=[worker()])
    state = State().looked(java)
    heads = [head.text.strip() for head in table(state, width=100, now_ms=0).heads]
    assert heads == ["NAME", "TYPE", "STATE", "TASKS", "WORKER", "CAUSE"]
    tasks = state.entered("orders")
    heads = [head.text.strip() for head in table(tasks, width=100, now_ms=0).heads]
    assert heads == ["TASK", "STATE", "WORKER", "CAUSE"]
    frozen = worker("http://w1:8083", status="unreachable")
    shown = look(
        view("a", "RUNNING", worker="w1:8083"),
        view("b", "RUNNING", worker="w2:8083"),
        workers=[frozen, worker("http://w2:8083")],
    )
    lines = table(State().looked(shown), width=100, now_ms=0).lines
    expected = {"a": "RUNNING (no answer)", "b": "RUNNING"}
    assert {line.name: line.cells[2].text for line in lines} == expected
