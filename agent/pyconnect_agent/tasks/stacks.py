"""The Python stacks of this process, which show where a plugin hangs.

Layer: tasks. Two ways. `describe_threads` runs in a thread of this process, with names and source
lines; it needs the interpreter. `prepare_dumps` is for a plugin that does not let go of the
interpreter (native code, a regular expression): a signal makes faulthandler write into a memory
file that the worker process finds by its name. Where there are no memory files only the first way
is there.
"""

from __future__ import annotations

import faulthandler
import fcntl
import os
import sys
import threading
import traceback

from pyconnect_agent.channel import STACKS_FILE, STACKS_SIGNAL


def prepare_dumps() -> None:
    """Answer `STACKS_SIGNAL` from now on, whatever runs; the file stays open for good."""
    if not hasattr(os, "memfd_create"):
        return
    stacks = os.memfd_create(STACKS_FILE)
    # The worker process empties the file before it asks.
    fcntl.fcntl(stacks, fcntl.F_SETFL, fcntl.fcntl(stacks, fcntl.F_GETFL) | os.O_APPEND)
    faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True)


def describe_threads() -> str:
    """Return the stack of every thread but the calling one, the main thread's first."""
    own = threading.get_ident()
    main = threading.main_thread().ident
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sorted(sys._current_frames().items(), key=lambda found: found[0] != main)  # noqa: SLF001  public in all but name
    parts = []
    for ident, frame in frames:
        if ident != own:
            lines = "".join(traceback.format_stack(frame))
            parts.append(f"Thread {names.get(ident, ident)} (most recent call last):\n{lines}")
    return "\n".join(parts)
