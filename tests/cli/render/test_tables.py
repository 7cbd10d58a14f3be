"""Tables line up, fit the terminal, and cannot be made to move its cursor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyconnect_cli.errors import UsageError
from pyconnect_cli.render.styles import cell_width, printable, shorten
from pyconnect_cli.render.tables import (
    Column,
    choose_columns,
    fit_widths,
    state_column,
    table_lines,
)

Row = tuple[str, str]
COLUMNS: tuple[Column[Row], ...] = (
    Column(title="NAME", value=lambda row: row[0]),
    state_column("STATE", lambda row: row[1]),
)


def lines(*rows: Row, width: int | None = None, colour: bool = False) -> list[str]:
    return table_lines(COLUMNS, rows, headers=True, width=width, colour=colour)


def test_columns_line_up_with_wide_characters() -> None:
    """A character of two columns counts as two."""
    assert lines(("日本", "RUNNING"), ("abc", "FAILED")) == [
        "NAME  STATE",
        "日本  RUNNING",
        "abc   FAILED",
    ]


def test_colours_change_nothing_but_the_sequences_around() -> None:
    """A table reads the same without its colours."""
    import re

    rows = (("a", "RUNNING"), ("b", "1/2"))
    coloured = lines(*rows, colour=True)
    assert "\x1b[32mRUNNING" in coloured[1]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == lines(*rows)


@given(st.text(max_size=40), st.integers(min_value=1, max_value=30))
def test_a_shortened_text_fits(text: str, width: int) -> None:
    """Whatever the characters, the result is not wider than allowed."""
    assert cell_width(shorten(text, width)) <= width


@given(st.lists(st.integers(min_value=0, max_value=60), min_size=1), st.integers(0, 200))
def test_fitting_only_narrows_and_stops_when_it_fits(widths: list[int], available: int) -> None:
    """No column grows; a table that fits is left alone."""
    fitted = fit_widths(widths, available)
    assert all(new <= old for new, old in zip(fitted, widths, strict=True))
    if sum(widths) <= available:
        assert fitted == widths
    assert sum(fitted) <= max(available, 8 * len(widths))


@given(st.text())
def test_nothing_that_moves_the_cursor_is_printed(text: str) -> None:
    """Names and traces come from elsewhere: escapes and direction marks are shown as text."""
    shown = printable(text)
    assert "\x1b" not in shown
    assert not {"\u202e", "\u2066", "\x9b", "\x08", "\r"} & set(shown)


def test_unknown_columns_are_refused_with_those_there_are() -> None:
    """Exit 2; the hint lists them."""
    with pytest.raises(UsageError) as caught:
        choose_columns(COLUMNS, ["nme"], wide=False)
    assert caught.value.hint == "columns: name, state"
