"""Process groups: their members, their identity, their end, and the tether that ends one.

A server is the leader of a process group of its own; its children are stopped with it. A group
is recognised later, from another process, by the leader's pid together with a mark of when that
process started, so that a recycled pid is never signalled. Linux answers from /proc, other POSIX
systems from `ps`.

A hold is a shared `flock` on a file; several processes may hold the same file. The kernel drops a
hold when its process ends, by SIGKILL too. The tether is a small process that waits for the
exclusive lock on that file; when it gets the lock, there is no holder, and it kills the group. So a
test session that is killed leaves no broker behind, and brokers can be shared by several processes
without counting them.

The tether is `python -m pyconnect_sandbox.processes HOLD_FILE PID START_MARK`. It sleeps in the
lock call: an orderly stop of the group ends the tether too.
"""

import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

POLL_INTERVAL_S = 0.02
_PS_S = 30
_PROC = Path("/proc")
_STAT_STATE, _STAT_GROUP, _STAT_START = 0, 2, 19  # fields after the command name, proc(5)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process that leads its own group.

    `pid` is also the group's id. `start_mark` is opaque: equal for one process during its life,
    different for another that gets the same pid later, also after a reboot.
    """

    pid: int
    start_mark: str


@cache
def _has_proc() -> bool:
    return (_PROC / "self" / "stat").exists()


@cache
def _boot_id() -> str:
    return (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the command name; None if the process is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def _ps(*columns: str, pid: int | None = None) -> list[str]:
    selection = ["-A"] if pid is None else ["-p", str(pid)]
    formats = [part for column in columns for part in ("-o", f"{column}=")]
    command = ["ps", *selection, *formats]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_PS_S)
    return answer.stdout.splitlines()


def start_mark(pid: int) -> str | None:
    """Return the mark of the process `pid`, or None when it does not exist or is a zombie."""
    if _has_proc():
        fields = _stat_fields(pid)
        if fields is None or fields[_STAT_STATE] in "ZX":
            return None
        return f"{_boot_id()}:{fields[_STAT_START]}"
    lines = _ps("stat", "lstart", pid=pid)
    if not lines:
        return None
    state, _, started = lines[0].strip().partition(" ")
    return None if state.startswith("Z") else started.strip()


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the live process `pid`, or None when there is none."""
    mark = start_mark(pid)
    return None if mark is None else ProcessIdentity(pid=pid, start_mark=mark)


def is_running(identity: ProcessIdentity) -> bool:
    """Return whether exactly this process is alive; another one may have its pid."""
    return start_mark(identity.pid) == identity.start_mark


def group_members(identity: ProcessIdentity) -> tuple[int, ...]:
    """Return the pids of the live processes in the group that `identity` leads or led.

    Empty when the pid belongs to another process: the kernel gives no process a group's id
    while the group has a member, so a foreign leader means that the whole group has ended.
    """
    mark = start_mark(identity.pid)
    if mark is not None and mark != identity.start_mark:
        return ()
    if not _has_proc():
        table = (line.split() for line in _ps("pid", "pgid", "stat"))
        return tuple(
            int(pid)
            for pid, group, state in table
            if int(group) == identity.pid and not state.startswith("Z")
        )
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())
    rows = ((pid, _stat_fields(pid)) for pid in pids)
    return tuple(
        pid
        for pid, fields in rows
        if fields is not None
        and int(fields[_STAT_GROUP]) == identity.pid
        and fields[_STAT_STATE] not in "ZX"
    )


def signal_group(identity: ProcessIdentity, number: signal.Signals) -> None:
    """Send a signal to every member of the group, if there are any."""
    if group_members(identity):
        try:
            os.killpg(identity.pid, number)
        except ProcessLookupError:
            return


def wait_until_gone(identity: ProcessIdentity, timeout_s: float) -> bool:
    """Wait until the group has no live member; return False when the time is over first."""
    deadline = time.monotonic() + timeout_s
    while group_members(identity):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_INTERVAL_S)
    return True


def end_group(identity: ProcessIdentity, grace_s: float) -> bool:
    """End the whole group: SIGTERM, then SIGKILL after `grace_s` seconds.

    A suspended group is resumed first, because it would not handle SIGTERM. Returns True when the
    group ended within its grace, False when it had to be killed. No member is alive afterwards.
    """
    signal_group(identity, signal.SIGTERM)
    signal_group(identity, signal.SIGCONT)
    graceful = wait_until_gone(identity, grace_s)
    end_group_now(identity)
    return graceful


def end_group_now(identity: ProcessIdentity) -> None:
    """Send SIGKILL to the group until no member is alive."""
    while group_members(identity):
        # The signal is repeated: a member may have forked between the listing and the signal.
        signal_group(identity, signal.SIGKILL)
        wait_until_gone(identity, 1.0)


def resident_bytes(pid: int) -> int:
    """Return the resident bytes of the process `pid`, 0 when it does not exist."""
    if _has_proc():
        try:
            pages = (_PROC / str(pid) / "statm").read_text().split()[1]
        except (FileNotFoundError, ProcessLookupError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    lines = _ps("rss", pid=pid)
    return int(lines[0]) * 1024 if lines else 0


class Hold:
    """A hold on a file: processes that are tethered to the file live at least as long."""

    def __init__(self, path: Path) -> None:
        """Take the hold; wait while a tether of the file kills its group."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def release(self) -> None:
        """Release the hold; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def spawn_tether(hold_file: Path, identity: ProcessIdentity) -> subprocess.Popen[bytes]:
    """Start the tether of the group that `identity` leads; the caller holds `hold_file`."""
    package_root = str(Path(__file__).resolve().parents[1])
    search_path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH"))))
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
