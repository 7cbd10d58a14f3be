"""Progress: a line per step; passing steps only on a terminal, where they leave nothing."""

from __future__ import annotations

import io
import sys

import pytest

from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.step_line import ERASE_LINE, StepLine


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def report(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, quiet: bool = False) -> str:
    screen = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    with StepLine(Output(OutputStyle(quiet=quiet)), width=20) as progress:
        progress("fetching")
        progress("fetched one.jar", passing=True)
        progress("fetched a-jar-with-a-long-name.jar", passing=True)
    return screen.getvalue()


def test_a_log_has_the_steps_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stderr is no terminal, passing steps are left out."""
    assert report(monkeypatch, terminal=False) == "fetching\n"


def test_passing_steps_replace_each_other_and_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal each passing step is cut to the line and erased by what follows."""
    shown = report(monkeypatch, terminal=True)
    first, second, last = shown.split(ERASE_LINE)
    assert first == "fetching\nfetched one.jar"
    assert second.startswith("fetched a-jar")
    assert len(second) <= 20
    assert last == ""


def test_quiet_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """With --quiet nothing is reported."""
    assert report(monkeypatch, terminal=True, quiet=True) == ""
