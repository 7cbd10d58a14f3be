"""Progress: a line for each step; on a terminal a live line below, which leaves no trace."""

import io
import re
import sys
from collections.abc import Callable

import pytest

from pyconnect_cli.render.output import Output, OutputStyle
from pyconnect_cli.render.step_line import LiveLine, StepLine

SHOW_CURSOR = "\x1b[?25h"
SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Screen(io.StringIO):
    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class GoneScreen(Screen):
    """A terminal that was closed."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def work(progress: StepLine) -> None:
    progress("fetching")
    progress("fetched one.jar", passing=True)
    progress(f"fetched {'a-long-name' * 9}.jar", passing=True)
    progress("comparing")
    progress.count("Spark tasks", 73, 1200)


Report = Callable[..., str]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Report:
    """Return the text that `work` writes to stderr."""
    monkeypatch.setenv("TERM", "xterm")

    def run(act: Callable[[StepLine], None], *, terminal: bool = True, quiet: bool = False) -> str:
        screen = Screen(terminal=terminal)
        monkeypatch.setattr(sys, "stderr", screen)
        with StepLine(Output(OutputStyle(quiet=quiet)), width=80) as progress:
            act(progress)
        return screen.getvalue()

    return run


def left_on(sent: str) -> list[str]:
    """Return the lines that a terminal shows after this text; it knows the sequences of rich."""
    lines, row, column = [""], 0, 0
    for token in re.findall(rf"{SEQUENCE.pattern}|[\r\n]|[^\x1b\r\n]+", sent):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif token.endswith("A"):
            row -= int(token[2:-1])
        elif token == "\x1b[2K":
            lines[row] = ""
        elif not SEQUENCE.fullmatch(token):
            lines[row] = (
                lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            )
            column += len(token)
    return [line.rstrip() for line in lines if line.strip()]


def test_a_log_has_the_steps_only(report: Report) -> None:
    """On a stderr that is not a terminal passing steps are dropped; --quiet drops all steps."""
    assert report(work, terminal=False) == "fetching\ncomparing\n"
    assert report(work, quiet=True) == ""


def test_passing_steps_vanish_from_a_terminal(report: Report) -> None:
    """At the end the terminal has the lines of the steps and a visible cursor."""
    sent = report(work)
    assert "fetched one.jar" in sent
    assert "73 of 1,200 Spark tasks" in sent
    assert left_on(sent) == ["fetching", "comparing"]
    assert sent.rindex(SHOW_CURSOR) > sent.rindex("Spark tasks")


def test_an_interrupt_leaves_a_clean_line(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C during the live line erases it and shows the cursor again."""

    def interrupted(progress: StepLine) -> None:
        work(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        report(interrupted)
    sent = sys.stderr.getvalue()  # type: ignore[attr-defined]
    assert left_on(sent) == ["fetching", "comparing"]
    assert sent.rindex(SHOW_CURSOR) > sent.rindex("Spark tasks")


def test_a_dumb_terminal_gets_no_escapes_and_a_long_text_one_line(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dumb terminal cannot erase the line; a wrapped line could not be erased completely."""
    texts = SEQUENCE.sub("\n", report(work)).splitlines()
    assert any("…" in text for text in texts)
    assert max(map(len, texts)) <= 80
    monkeypatch.setenv("TERM", "dumb")
    assert report(work) == "fetching\ncomparing\n"


def test_names_are_shown_as_they_are(report: Report) -> None:
    """Markup in names is not interpreted, and control characters are escaped."""

    def hostile(progress: StepLine) -> None:
        progress("reading [red]a\x1b[2J")
        progress("fetched [bold]b\x1b[2J", passing=True)

    sent = report(hostile)
    assert "[red]a\\x1b[2J" in sent
    assert "[bold]b\\x1b[2J" in sent


def test_work_goes_on_when_its_terminal_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the terminal does not end the work."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", GoneScreen(terminal=True))
    with StepLine(Output(OutputStyle()), width=80) as progress:
        work(progress)


def test_the_live_line_shows_the_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time since the step began is shown for steps without a count too."""
    monkeypatch.setenv("TERM", "xterm")
    now_s = 0.0
    screen = Screen(terminal=True)
    line = LiveLine(screen, colour=False, width=80, clock=lambda: now_s)
    now_s = 61.0
    try:
        line.show("waiting")
    finally:
        line.close()
    assert "waiting 0:01:01" in SEQUENCE.sub("", screen.getvalue())
