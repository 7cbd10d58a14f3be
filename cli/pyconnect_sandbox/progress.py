"""Reports of long work."""

from __future__ import annotations

import sys
from typing import Protocol


class Progress(Protocol):
    """Reports the progress of long work."""

    def __call__(self, message: str, *, passing: bool = False) -> None:
        """Report a step; a `passing` one is one of many that only a terminal shows."""


def silent(message: str, *, passing: bool = False) -> None:
    """Report nothing."""


def on_stderr(message: str, *, passing: bool = False) -> None:
    """Print the steps that are not passing, for scripts."""
    if not passing:
        sys.stderr.write(f"{message}\n")
