"""Tables line up, fit the terminal, and cannot move its cursor."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.errors import UsageError
from pyconnect_cli.render.styles import cell_width, printable, shorten, shorten_middle, wrapped
from pyconnect_cli.render.tables import (
    NARROWEST,
    Column,
    choose_columns,
    fit_widths,
    state_column,
    table_lines,
    worker_column,
)

Row = tuple[str, str]
COLUMNS: tuple[Column[Row], ...] = (
    Column(title="NAME", value=lambda row: row[0]),
    state_column("STATE", lambda row: row[1]),
)

FINDINGS: tuple[Column[Row], ...] = (
    Column(title="NAME", value=lambda row: row[0], whole=True),
    Column(title="DETAIL", value=lambda row: row[1], prose=True),
)


def lines(*rows: Row, width: int | None = None, colour: bool = False) -> list[str]:
    return table_lines(COLUMNS, rows, headers=True, width=width, colour=colour)


def test_columns_line_up_with_wide_characters_and_colours() -> None:
    """Wide characters count as two columns; colours change nothing but their sequences."""
    expected = ["NAME  STATE", "日本  RUNNING", "abc   FAILED"]
    assert lines(("日本", "RUNNING"), ("abc", "FAILED")) == expected
    import re

    rows = (("a", "RUNNING"), ("b", "1/2"))
    coloured = lines(*rows, colour=True)
    assert "\x1b[32mRUNNING" in coloured[1]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == lines(*rows)


WORKERS = [f"http://connect-worker-{n}.prod.example.com:8083" for n in (1, 2, 12)]


def test_workers_are_distinguishable_at_any_width() -> None:
    """Workers have no scheme, are cut in the middle, and still differ from each other."""
    columns: tuple[Column[Row], ...] = (COLUMNS[0], worker_column(lambda row: row[1]))
    rows = [("a-connector-with-a-long-name", worker) for worker in WORKERS]
    shown = table_lines(columns, rows, headers=False, width=80, colour=False)
    assert shown[0].split()[1] == "connect-worker-1.prod.example.com:8083"
    narrow = table_lines(columns, rows, headers=False, width=50, colour=False)
    assert [line.split()[1] for line in narrow] == [
        "connect-worker-1.…example.com:8083",
        "connect-worker-2.…example.com:8083",
        "connect-worker-12…example.com:8083",
    ]
    for width in range(20, 60):
        table = table_lines(columns, rows, headers=False, width=width, colour=False)
        assert len({line for line in table if "worker" in line}) == 3


@given(st.lists(st.integers(min_value=0, max_value=60), min_size=1), st.integers(0, 200))
def test_fitting_only_narrows_and_stops_when_it_fits(widths: list[int], available: int) -> None:
    """No column grows; a table that fits is not changed."""
    columns = [COLUMNS[0]] * len(widths)
    fitted = fit_widths(widths, available, columns, [NARROWEST] * len(widths))
    assert all(new <= old for new, old in zip(fitted, widths, strict=True))
    if sum(widths) <= available:
        assert fitted == widths
    assert sum(fitted) <= max(available, NARROWEST * len(widths))


def test_narrow_tables_wrap_prose_or_become_blocks() -> None:
    """Prose is wrapped; other texts stay on one line, if necessary in blocks."""
    finding = [("orders-of-the-east", "the topic is not there and may not be created")]
    assert table_lines(FINDINGS, finding, headers=True, width=46, colour=False) == [
        "NAME                DETAIL",
        "orders-of-the-east  the topic is not there and",
        "                    may not be created",
    ]
    findings = [("orders-of-the-east", "the topic is not there"), ("b", "denied")]
    assert table_lines(FINDINGS, findings, headers=True, width=30, colour=False) == [
        "NAME    orders-of-the-east",
        "DETAIL  the topic is not there",
        "",
        "NAME    b",
        "DETAIL  denied",
    ]


@given(st.text(max_size=60), st.integers(min_value=2, max_value=30))
def test_a_shortened_or_wrapped_text_fits(text: str, width: int) -> None:
    """For all characters no line is too wide, and wrapping loses only spaces."""
    assert cell_width(shorten(text, width - 1)) < width
    assert cell_width(shorten_middle(text, width - 1)) < width
    lines = wrapped(text, width)
    assert all(cell_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


@given(st.text())
def test_nothing_that_moves_the_cursor_is_printed(text: str) -> None:
    """Names and traces come from other systems: escapes and direction marks are shown as text."""
    shown = printable(text)
    assert "\x1b" not in shown
    assert not {"\u202e", "\u2066", "\x9b", "\x08", "\r"} & set(shown)


def test_unknown_columns_are_refused_with_those_there_are() -> None:
    """The error (exit 2) has a hint with the columns."""
    with pytest.raises(UsageError) as caught:
        choose_columns(COLUMNS, ["nme"], wide=False)
    assert caught.value.hint == "columns: name, state"
