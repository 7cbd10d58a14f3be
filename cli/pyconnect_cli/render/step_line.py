"""Progress of long work on stderr: a line per step; on a terminal, a live line below the last."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Self

from pyconnect_cli.render.output import Output
from pyconnect_cli.render.streams import discard
from pyconnect_cli.render.styles import printable

if TYPE_CHECKING:
    from pyconnect_cli.render.live_line import LiveLine


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
                from pyconnect_cli.render.live_line import LiveLine

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
