"""Memory and processor time of a process, as Linux reports them.

Layer: children. On other systems the use is unknown, so limits have no effect.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from pyconnect_agent.core.task_limits import Use

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_USER_TICKS, _SYSTEM_TICKS = 11, 12
"""Fields of /proc/PID/stat after the name, which may contain any character."""


def use_of(pid: int | None) -> Use | None:
    """Return memory and processor time of a process, None if it is gone or the use not known."""
    resident_bytes = resident_memory(pid)
    if resident_bytes is None:
        return None
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    except (OSError, ValueError, IndexError):
        return None
    return Use(
        at_ms=time.monotonic_ns() // 1_000_000,
        resident_bytes=resident_bytes,
        cpu_ms=ticks * 1_000 // _TICKS_A_SECOND,
    )


def resident_memory(pid: int | None) -> int | None:
    """Return resident bytes of a process, shared ones included; None if gone or not known."""
    if pid is None:
        return None
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * _PAGE_BYTES
