"""The end of a log file, and what is added to it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

FOLLOW_INTERVAL_S = 0.2


def print_end(path: Path, count: int, write: Callable[[str], None]) -> int:
    """Write the last `count` lines of a file, none when it is absent; return where they end.

    The position is in bytes, for `follow`; a line that is not complete yet is left to it.
    """
    position = 0
    lines: deque[bytes] = deque(maxlen=count)
    try:
        with path.open("rb") as stream:
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                position += len(line)
                lines.append(line)
    except FileNotFoundError:
        return 0
    for line in lines:
        write(_text(line))
    return position


def follow(path: Path, goes_on: Callable[[], bool], position: int) -> Iterator[str]:
    """Yield each complete line after `position` until `goes_on` says no.

    A file that is rolled over is followed into its successor: log4j renames the old one.
    """
    stream = path.open("rb")
    try:
        stream.seek(position)
        partial = b""
        while True:
            # Asked before the rest is read: nothing is added to a file once it was rolled.
            last_round, rolled = not goes_on(), _was_rolled(path, stream.fileno())
            for chunk in stream:
                partial += chunk
                if partial.endswith(b"\n"):
                    yield _text(partial)
                    partial = b""
            if rolled:
                stream.close()
                stream = path.open("rb")
            elif last_round:
                return
            else:
                time.sleep(FOLLOW_INTERVAL_S)
    finally:
        stream.close()


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def _was_rolled(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False
