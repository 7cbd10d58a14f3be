"""Memory and processor time of a child, as Linux reports them.

Layer: children. On other systems the use is unknown, so limits have no effect. A process that the
child has started, such as that of a Java task, counts with it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from pyconnect_agent.core.task_limits import Use

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = slice(11, 15)
"""Fields of /proc/PID/stat after the name, which may contain any character: the ticks of a process
as user and as system, then those of its children that have ended."""


def use_of(pid: int | None) -> Use | None:
    """Return memory and processor time of a child, None if it is gone or the use not known."""
    resident_bytes = resident_memory(pid)
    if pid is None or resident_bytes is None:
        return None
    ticks = [_ticks(each) for each in (pid, *started_by(pid))]
    if ticks[0] is None:
        return None
    return Use(
        at_ms=time.monotonic_ns() // 1_000_000,
        resident_bytes=resident_bytes,
        cpu_ms=sum(found or 0 for found in ticks) * 1_000 // _TICKS_A_SECOND,
    )


def resident_memory(pid: int | None) -> int | None:
    """Return resident bytes of a child, shared ones included; None if gone or not known."""
    if pid is None:
        return None
    pages = [_pages(each) for each in (pid, *started_by(pid))]
    return None if pages[0] is None else sum(found or 0 for found in pages) * _PAGE_BYTES


def started_by(pid: int) -> Sequence[int]:
    """Return the processes that the main thread of a process has started, as it starts Java's."""
    try:
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except (OSError, ValueError):
        return ()


def _pages(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _ticks(pid: int) -> int | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[_TICKS]))
    except (OSError, ValueError):
        return None
