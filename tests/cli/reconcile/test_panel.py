"""The answer of a reconciliation as a terminal draws it, and where it stays plain."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest

from pyconnect_cli.reconcile.panel import drawn
from pyconnect_cli.reconcile.run import _show
from pyconnect_cli.reconcile.summary import SHOWN, summary
from pyconnect_cli.session import Session

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DIRECTORY = Path(
    "/a-directory/with-a-name/that-is-longer/than-the-line-of/the-terminal-that-shows-it"
)


def report_of(findings: int) -> dict[str, object]:
    copies = [{"topic": "t", "partition": 1, "offset": 7}, {"file": "/in\x1b[2J", "row": 4}]
    finding = {
        "kind": "repeated", "severity": "error", "message": "[red]twice[/red] \x1b[2J", "count": 2,
        "of": "offsets", "topic": "t", "partition": 1, "first": 7, "last": 9, "copies": copies,
    }  # fmt: skip
    return {
        "job": "duplicates",
        "target": "[bold]t\x1b[2J",
        "verdict": "differ" if findings else "agree",
        "duration_ms": 1500,
        "counts": {"rows_uncommitted": 1234567},
        "findings": [finding] * findings,
        "findings_kept": findings,
    }


def lines_of(findings: int, *, width: int = 80) -> list[str]:
    text = COLOUR.sub("", drawn(report_of(findings), DIRECTORY, width=width))
    return [line.rstrip() for line in text.splitlines()]


def test_the_panel_has_all_parts_of_the_plain_summary() -> None:
    """Verdict, time, counts, what was found and where."""
    text = " ".join(" ".join(lines_of(1, width=200)).split())
    for part in ("differ (1.5 s)", "rows uncommitted 1,234,567", "t:1 7..9: ", "t:1@7, /in"):
        assert part in text


def test_names_are_shown_as_they_are() -> None:
    """They are no markup and move no cursor."""
    text = "\n".join(lines_of(1, width=200))
    assert "\x1b" not in text
    for part in ("[bold]t\\x1b[2J", "[red]twice[/red] \\x1b[2J", "/in\\x1b[2J:4"):
        assert part in text


def test_it_fits_its_terminal_but_for_the_path_that_is_copied() -> None:
    """A path of two lines could not be."""
    *lines, last = lines_of(2, width=60)
    assert max(map(len, lines)) <= 60
    assert last == f"report: {DIRECTORY}/report.html"


def test_without_findings_there_is_no_table() -> None:
    """The panel says that both agree."""
    text = "\n".join(lines_of(0))
    assert "agree (1.5 s)" in text
    assert "finding" not in text


def test_many_findings_are_cut() -> None:
    """The rest is in the report."""
    lines = lines_of(SHOWN + 3)
    assert sum(line.strip().startswith("repeated") for line in lines) == SHOWN
    assert "  and 3 more in findings/findings.ndjson" in lines


class Screen(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def shown(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], *, terminal: bool, **given: object
) -> str:
    """What stdout is sent."""
    screen = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    session = Session({**environ, "TERM": "xterm"})
    session.given.update(given)
    _show(session, [{**report_of(1), "report": str(DIRECTORY)}], alone=True)
    return screen.getvalue()


def test_a_terminal_gets_it_drawn(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    """With colours and boxes."""
    assert "╭─" in shown(monkeypatch, environ, terminal=True)


def test_pipes_and_terminals_without_colours_get_plain_lines(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    """Scripts read them as ever, byte for byte."""
    plain = summary(report_of(1), DIRECTORY, lambda text, style: text) + "\n"
    assert shown(monkeypatch, environ, terminal=False) == plain
    assert shown(monkeypatch, {**environ, "NO_COLOR": "1"}, terminal=True) == plain
    assert shown(monkeypatch, environ, terminal=True, no_color=True) == plain
    forced = shown(monkeypatch, {**environ, "FORCE_COLOR": "1"}, terminal=False)
    assert COLOUR.sub("", forced) == plain


def test_a_terminal_that_cannot_show_boxes_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    """They would be escaped."""
    monkeypatch.setattr(Screen, "encoding", "ascii")
    assert "duplicates" in (text := shown(monkeypatch, environ, terminal=True))
    assert text.isascii()


def test_json_is_the_report_on_a_terminal_too(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    """Programs read it."""
    text = shown(monkeypatch, environ, terminal=True, output="json")
    assert json.loads(text) == {**report_of(1), "report": str(DIRECTORY)}
