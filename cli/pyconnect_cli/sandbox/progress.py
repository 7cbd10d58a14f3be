"""Run a resolver and report each file that it says it has fetched."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Progress = Callable[[str], None]
_TAIL_LINES = 15


def silent(message: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a resolver ended."""

    exit_code: int
    tail: str
    """The last lines of its output."""


def run_with_progress(
    command: Sequence[str], fetched: re.Pattern[str], progress: Progress
) -> Outcome:
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
                progress(f"fetched {found['file'].replace(';', ' ')} ({count})")
    return Outcome(exit_code=process.returncode, tail="\n".join(tail))
