"""End a process group once no process holds it any more, even if its holders crashed.

A hold is a shared `flock` on a file; several processes may hold the same file. The kernel drops a
hold when its process ends, by SIGKILL too. The tether is a small process that waits for the
exclusive lock on that file; when it gets the lock, there is no holder, and it kills the group. So a
test session that is killed leaves no broker behind, and brokers can be shared by several processes
without counting them.

Run as `python -m pyconnect_sandbox.tether HOLD_FILE PID START_MARK`. It sleeps in the lock
call: an orderly stop of the group ends the tether too.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from pyconnect_sandbox.processes import ProcessIdentity, end_group_now


class Hold:
    """A hold on a file: what is tethered to the file lives at least as long."""

    def __init__(self, path: Path) -> None:
        """Take the hold; waits while a tether is killing what the file stands for."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Give the hold back; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def spawn(hold_file: Path, identity: ProcessIdentity) -> subprocess.Popen[bytes]:
    """Start the tether of the group that `identity` leads; the caller holds `hold_file`."""
    source_root = str(Path(__file__).resolve().parents[2])
    search_path = os.pathsep.join(filter(None, (source_root, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(hold_file), str(identity.pid), identity.start_mark],
        env={**os.environ, "PYTHONPATH": search_path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def guard(hold_file: Path, identity: ProcessIdentity) -> None:
    """Wait until no process holds `hold_file`, then kill the group and let new holders in."""
    descriptor = os.open(hold_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    end_group_now(identity)


if __name__ == "__main__":
    guard(Path(sys.argv[1]), ProcessIdentity(pid=int(sys.argv[2]), start_mark=sys.argv[3]))
