"""Progress of long work on stderr: a line per step; on a terminal, a live line below the last.

rich takes 100 ms to import, and only long work needs it: the first step on a terminal imports it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Self, TextIO

from pyconnect_cli.render.output import Output
from pyconnect_cli.render.streams import discard
from pyconnect_cli.render.styles import printable, shorten

if TYPE_CHECKING:
    from rich.progress_bar import ProgressBar
    from rich.spinner import Spinner
    from rich.table import Table
    from rich.text import Text

BAR_WIDTH = 20
BESIDE_TEXT = len("* ") + len(" 0:00:00") + 1


class LiveLine:
    """A line on a terminal that is redrawn until it is closed, which erases it.

    A thread redraws it ten times a second to show that the work continues.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        colour: bool,
        width: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.spinner import Spinner

        self._console = Console(
            file=stream, force_terminal=True, no_color=not colour, highlight=False, width=width
        )
        self._clock = clock
        self._started_s = clock()
        self._text = ""
        self._counted: tuple[int, int] | None = None
        unicode = self._console.encoding.startswith("utf")
        self._spinner = Spinner("dots" if unicode else "line", style="cyan")
        self._live = Live(
            console=self._console,
            get_renderable=self._row,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            refresh_per_second=10,
        )

    def show(self, text: str, counted: tuple[int, int] | None = None) -> None:
        """Show a text, and a bar when (done, total) is given; the first call draws the line."""
        self._text, self._counted = text, counted
        self._live.start()
        self._live.refresh()

    def close(self) -> None:
        """Erase the line and show the cursor again."""
        self._live.stop()

    def _row(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        text, counted = self._text, self._counted
        room = self._console.width - BESIDE_TEXT
        row: list[Spinner | ProgressBar | Text] = [self._spinner]
        if counted is not None and room > 2 * BAR_WIDTH:
            done, total = counted
            row.append(ProgressBar(total=max(total, 1), completed=done, width=BAR_WIDTH))
            room -= BAR_WIDTH + 1
        if text:
            row.append(Text(shorten(printable(text), room)))
        elapsed = timedelta(seconds=int(self._clock() - self._started_s))
        row.append(Text(str(elapsed), style="dim"))
        grid = Table.grid(*("" for _ in row), padding=(0, 1))
        for column in grid.columns:
            column.no_wrap = True
        grid.add_row(*row)
        return grid


class StepLine:
    """Reports steps; use it as a context, so that the live line is erased at the end."""

    def __init__(self, output: Output, *, width: int | None = None) -> None:
        self._output = output
        self._terminal = (
            sys.stderr.isatty() and not output.style.quiet and os.environ.get("TERM") != "dumb"
        )
        self._width = width
        self._live: LiveLine | None = None

    def __call__(self, message: str, *, passing: bool = False) -> None:
        """Report a step; a `passing` step is shown on terminals only."""
        if passing:
            self._show(message)
            return
        self._erase()
        self._output.message(printable(message))
        self._show("")

    def count(self, what: str, done: int, total: int) -> None:
        """Show on a terminal how many of a step's parts are done."""
        self._show(f"{done:,} of {total:,} {what}", (done, total))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._erase()

    def _show(self, text: str, counted: tuple[int, int] | None = None) -> None:
        if not self._terminal:
            return
        try:
            if self._live is None:
                # Imported here: rich takes 100 ms to import, and only long work needs it.

                colour = self._output.style.error_colour
                self._live = LiveLine(sys.stderr, colour=colour, width=self._width)
            self._live.show(text, counted)
        except OSError:
            self._terminal_is_gone()

    def _erase(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            try:
                live.close()
            except OSError:
                self._terminal_is_gone()

    def _terminal_is_gone(self) -> None:
        """Continue without the line: the work must not depend on a reader."""
        self._terminal = False
        discard(sys.stderr)
