"""The directory for temporary files of a Java process.

Layer: java_processes. Neither `deleteOnExit` nor shutdown hooks run at the ends of these processes,
so each has a directory of its own, which is removed with it. Both the Java process and the one that
started it hold a lock on it. When both were killed, the worker or the next process finds the
directory without a lock and removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "pyconnect-java-"


class TemporaryDirectory:
    """A new directory that only this user can read; `descriptor` carries the lock."""

    def __init__(self, base: Path) -> None:
        """Make it in `base`. Raises OSError."""
        while True:
            # Another process may take it for a leftover until it is locked.
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
            try:
                self.descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                continue
            if _lock(self.descriptor) and self.path.exists():
                return
            os.close(self.descriptor)

    def remove(self) -> None:
        """Remove it with all that is in it; later calls have no effect."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(descriptor)


def remove_leftovers(base: Path) -> None:
    """Remove the directories of processes that are gone."""
    try:
        directories = list(base.glob(f"{PREFIX}*"))
    except OSError:
        return
    for found in directories:
        with contextlib.suppress(OSError):
            descriptor = os.open(found, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid() and _lock(descriptor):
                    shutil.rmtree(found, ignore_errors=True)
            finally:
                os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
