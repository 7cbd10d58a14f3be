"""Progress of long work on stderr: a line per step; on a terminal, passing steps come and go."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from pyconnect_cli.render.output import Output
from pyconnect_cli.render.styles import printable, shorten

ERASE_LINE = "\r\x1b[K"


class StepLine:
    """Reports steps; use it as a context, so that nothing passing stays on the terminal."""

    def __init__(self, output: Output, *, width: int | None = None) -> None:
        self._output = output
        self._terminal = sys.stderr.isatty() and not output.style.quiet
        self._width = (output.style.width or 80) - 1 if width is None else width
        self._shown = False

    def __call__(self, message: str, *, passing: bool = False) -> None:
        """Report a step; a `passing` one is one of many that only a terminal shows."""
        if not passing:
            self._erase()
            self._output.message(message)
        elif self._terminal:
            self._erase()
            sys.stderr.write(shorten(printable(message), self._width))
            sys.stderr.flush()
            self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._erase()

    def _erase(self) -> None:
        if self._shown:
            sys.stderr.write(ERASE_LINE)
            sys.stderr.flush()
            self._shown = False
