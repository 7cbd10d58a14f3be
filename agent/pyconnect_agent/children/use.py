"""Memory and processor time of a child and of the processes below it, as Linux reports them.

Layer: children. A Java task has a Java process below its own, with most of its memory. On other
systems the use is unknown, so limits have no effect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from pyconnect_agent.core.task_limits import Use

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USER_TICKS, _SYSTEM_TICKS = 11, 12
"""Fields of /proc/PID/stat after the name, which may contain any character."""


def use_of(pid: int | None) -> Use | None:
    """Return memory and processor time of a process and of those below it.

    Returns None if the process is gone or the use is not known.
    """
    if pid is None:
        return None
    used = [_use_of_one(each) for each in processes_of(pid)]
    if used[0] is None:
        return None
    counted = [each for each in used if each is not None]
    return Use(
        at_ms=time.monotonic_ns() // 1_000_000,
        resident_bytes=sum(resident for resident, _ in counted),
        cpu_ms=sum(ticks for _, ticks in counted) * 1_000 // _TICKS_A_SECOND,
    )


def resident_memory(pid: int | None) -> int | None:
    """Return resident bytes as `use_of` does, shared ones included."""
    use = use_of(pid)
    return None if use is None else use.resident_bytes


def processes_of(pid: int) -> Iterator[int]:
    """Yield a process, and then those that its main thread has started, and so on.

    Those below a process are looked up after it was yielded. Other threads are left out, because
    each would be a file to read.
    """
    yield pid
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return  # the process has ended
    for child in below:
        yield from processes_of(int(child))


def _use_of_one(pid: int) -> tuple[int, int] | None:
    """Return resident bytes and ticks of the processor; None if the process is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    except (OSError, ValueError, IndexError):
        return None
    return pages * _PAGE_BYTES, ticks
