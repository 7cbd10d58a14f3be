"""The answer of a reconciliation on a terminal, in a pipe and for programs."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pyconnect_cli.reconcile.run import SHOWN, show, summary
from pyconnect_cli.session import Session

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
DIRECTORY = Path(
    "/a-directory/with-a-name/that-is-longer/than-the-line-of/the-terminal-that-shows-it"
)


FINDING: dict[str, Any] = {
    "kind": "repeated", "severity": "error", "message": "[red]twice[/red] \x1b[2J", "count": 2,
    "of": "offsets", "topic": "t", "partition": 1, "first": 7, "last": 9,
    "copies": [{"topic": "t", "partition": 1, "offset": 7}, {"file": "/in\x1b[2J", "row": 4}],
}  # fmt: skip


def report_of(findings: int) -> dict[str, Any]:
    return {
        "job": "duplicates",
        "target": "[bold]t\x1b[2J",
        "verdict": "differ" if findings else "agree",
        "duration_ms": 1500,
        "counts": {"rows_uncommitted": 1234567},
        "findings": [FINDING] * findings,
        "findings_kept": findings,
    }


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
    """Return the text on stdout."""
    screen = Screen(terminal=terminal)
    monkeypatch.setattr(sys, "stdout", screen)
    session = Session({**environ, "TERM": "xterm"})
    session.given.update(given)
    show(session, [{**report_of(1), "report": str(DIRECTORY)}], alone=True)
    return screen.getvalue()


def test_a_terminal_adds_colours_except_to_json(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    """Only a terminal gets colours, and JSON never has them."""
    plain = summary(report_of(1), DIRECTORY, lambda text, style: text) + "\n"
    assert shown(monkeypatch, environ, terminal=False) == plain
    assert shown(monkeypatch, {**environ, "NO_COLOR": "1"}, terminal=True) == plain
    assert shown(monkeypatch, environ, terminal=True, no_color=True) == plain
    forced = shown(monkeypatch, {**environ, "FORCE_COLOR": "1"}, terminal=False)
    assert shown(monkeypatch, environ, terminal=True) == forced != plain
    assert COLOUR.sub("", forced) == plain
    text = shown(monkeypatch, environ, terminal=True, output="json")
    assert json.loads(text) == {**report_of(1), "report": str(DIRECTORY)}


def text_of(findings: int, *more: dict[str, object]) -> str:
    found = [*report_of(findings)["findings"], *more]
    report = {**report_of(1), "target": "t", "findings": found, "findings_kept": len(found)}
    return summary(report, Path("/report"), lambda text, style: text)


def test_the_summary_has_verdict_counts_places_and_report() -> None:
    """The summary has verdict, counts, places and report, without control characters of names."""
    text = text_of(1)
    assert text.startswith("duplicates t: differ (1.5 s)\n")
    assert "rows uncommitted  1,234,567" in text
    assert "t:1@7, /in" in text
    assert text.endswith("report: /report/report.html")
    assert "\x1b" not in text
    assert "twice" in text_of(0, {**FINDING, "key": "order-7"})
    assert "(key order-7) at t:1@7" in text_of(0, {**FINDING, "key": "order-7"})


def test_many_findings_are_cut_and_hide_no_kind() -> None:
    """A long list is cut but shows each kind of finding; the report has the rest."""
    text = text_of(SHOWN + 3)
    assert text.count("repeated") == SHOWN
    assert "and 3 more in findings/findings.ndjson" in text
    text = text_of(SHOWN + 3, {"kind": "rare", "severity": "note", "message": "seen", "count": 1})
    assert text.count("repeated") == SHOWN - 1
    assert "  rare seen\n" in text
