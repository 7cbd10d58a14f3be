"""The worker's standard input, for connectors that read it.

Layer: builtin. Python's child processes find `/dev/null` at descriptor 0; the fork server imports
this module before that happens, and children inherit the copy.
"""

from __future__ import annotations

import contextlib
import os


def _copy() -> int | None:
    with contextlib.suppress(OSError):  # started without a standard input
        return os.dup(0)
    return None


DESCRIPTOR: int | None = _copy()
"""A copy of descriptor 0 as it was when this module was imported; None without one."""
