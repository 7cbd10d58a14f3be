"""The end of a log file, and what is added to it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

FOLLOW_INTERVAL_S = 0.2


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last `count` lines of a file, without line ends; none when it is absent."""
    try:
        with path.open(errors="replace") as stream:
            return [line.rstrip("\n") for line in deque(stream, maxlen=count)]
    except FileNotFoundError:
        return []


def follow(path: Path, goes_on: Callable[[], bool], *, from_start: bool = False) -> Iterator[str]:
    """Yield each complete line that is added to a file until `goes_on` says no.

    A file that is rolled over is followed into its successor: log4j renames the old one.
    """
    stream = path.open(errors="replace")
    try:
        if not from_start:
            stream.seek(0, 2)
        partial = ""
        while True:
            # Asked before the rest is read: nothing is added to a file once it was rolled.
            last_round, rolled = not goes_on(), _was_rolled(path, stream.fileno())
            for chunk in stream:
                partial += chunk
                if partial.endswith("\n"):
                    yield partial.rstrip("\n")
                    partial = ""
            if rolled:
                stream.close()
                stream = path.open(errors="replace")
            elif last_round:
                return
            else:
                time.sleep(FOLLOW_INTERVAL_S)
    finally:
        stream.close()


def _was_rolled(path: Path, descriptor: int) -> bool:

    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
