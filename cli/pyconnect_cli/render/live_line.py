"""The line below the last step while it works: progress and elapsed time.

Only this module loads rich; other modules import it in a function.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pyconnect_cli.render.styles import printable, shorten

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
        """Show a text, and a bar when (done, total) is given; begin with the first of them."""
        self._text, self._counted = text, counted
        self._live.start()
        self._live.refresh()

    def close(self) -> None:
        """Erase the line and show the cursor again."""
        self._live.stop()

    def _row(self) -> Table:
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
