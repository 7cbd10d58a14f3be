"""Reports of long work, and resolvers that report each fetched file."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_TAIL_LINES = 15


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutcome:
    """The end of a resolver."""

    exit_code: int
    tail: str
    """The last lines of its output."""


def run_with_progress(
    command: Sequence[str], fetched: re.Pattern[str], progress: Progress
) -> ToolOutcome:
    """Run `command`; report each line that `fetched` matches by its group `file`."""
    tail: deque[str] = deque(maxlen=_TAIL_LINES)
    count = 0
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail.append(line.rstrip())
            if found := fetched.search(line):
                count += 1
                progress(f"fetched {found['file'].replace(';', ' ')} ({count})", passing=True)
    return ToolOutcome(exit_code=process.returncode, tail="\n".join(tail))
