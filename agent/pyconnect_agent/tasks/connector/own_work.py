"""Work that a plugin has begun in its process and that goes on between the worker's calls.

Layer: tasks. No Kafka counterpart: connectors of a Java worker are objects in its process.
"""

from __future__ import annotations

import threading
from pathlib import Path

_THREADS = Path("/proc/self/task")


class OwnWork:
    """Threads, also those of native libraries, and processes that were not there before.

    On systems without /proc only Python's threads are known.
    """

    def __init__(self) -> None:
        self._before = _present()

    @property
    def exists(self) -> bool:
        return not _present() <= self._before


def _present() -> set[str]:
    if not _THREADS.exists():
        return {str(thread.native_id) for thread in threading.enumerate()}
    found = set()
    for thread in _THREADS.iterdir():
        found.add(thread.name)
        try:
            found.update((thread / "children").read_text().split())
        except OSError:
            continue  # it has just ended
    return found
