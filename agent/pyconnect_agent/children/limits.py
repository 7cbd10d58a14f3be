"""The limits of tasks: the kernel enforces them in a cgroup, otherwise this module watches them.

The watch runs on the event loop. A task over a limit is ended at once, as the kernel would end it,
and becomes FAILED with the amount that it used. Without a cgroup the processor can only be watched:
a priority sets no limit, and RLIMIT_CPU limits the total time and not the rate.

A task with limits has a cgroup (version 2) below the one that the host gives to the worker. systemd
delegates one with `Delegate=yes`; a user other than root can write only in delegated cgroups.

The use is that of a child and of the processes below it, as Linux reports them: a Java task has a
Java process below its own, with most of its memory. On other systems the use is unknown, so limits
have no effect.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

from pyconnect_agent.children.tasks import TaskChild, TaskChildren
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import TaskLimits, Use, excess

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
    pages = ticks = 0
    for each in processes_of(pid):
        try:
            resident = int(Path(f"/proc/{each}/statm").read_text().split()[1])
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
        except (OSError, ValueError, IndexError):
            if each == pid:
                return None
        else:
            pages += resident
    return Use(
        at_ms=time.monotonic_ns() // 1_000_000,
        resident_bytes=pages * _PAGE_BYTES,
        cpu_ms=ticks * 1_000 // _TICKS_A_SECOND,
    )


def resident_memory(pid: int | None) -> int | None:
    """Return resident bytes as `use_of` does, shared pages included."""
    use = use_of(pid)
    return None if use is None else use.resident_bytes


def processes_of(pid: int) -> Iterator[int]:
    """Yield a process, and then those that its main thread has started, and so on.

    The processes below a process are looked up after it was yielded. Other threads are left out,
    because each would be a file to read.
    """
    yield pid
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return  # the process has ended
    for child in below:
        yield from processes_of(int(child))


LOG = logging.getLogger(__name__)

ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")
CONTROLLERS = ("cpu", "memory")
PERIOD_US = 100_000
_DELEGATED = ("user.delegate", "trusted.delegate")
"""The attribute with which systemd marks a delegated cgroup."""


class TaskCgroups:
    """Owns the cgroups of the tasks; called on the event loop only, as each call is short."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._held: dict[ConnectorTaskId, tuple[int, Path]] = {}
        self._prepared: bool | None = None

    @classmethod
    def detect(cls, root: Path = ROOT, own: Path = OWN) -> TaskCgroups | None:
        """Return the cgroups below this process's cgroup; None unless the host delegates it."""
        try:
            lines = own.read_text().splitlines()
            path = next((line[3:] for line in lines if line.startswith("0::")), None)
            if path is None:
                return None
            base = root / path.lstrip("/")
            controllers = (base / "cgroup.controllers").read_text().split()
        except OSError:
            return None
        is_delegated = (
            set(CONTROLLERS) <= set(controllers)
            and os.access(base, os.W_OK)
            and os.access(base / "cgroup.procs", os.W_OK)
            and (os.geteuid() != 0 or any(_attribute(base, name) == b"1" for name in _DELEGATED))
        )
        return cls(base) if is_delegated else None

    def hold(self, task_id: ConnectorTaskId, pid: int, limits: TaskLimits) -> bool:
        """Put a process, with those below it, under its limits unless it already is.

        Returns False if that is impossible.
        """
        held = self._held.get(task_id)
        if held is not None and held[0] == pid:
            return True
        self.release(task_id)
        if not self._is_prepared():
            return False
        place = self._base / f"task-{quote(task_id.connector, safe='')}-{task_id.task}"
        try:
            place.mkdir(exist_ok=True)
            if limits.memory_bytes is not None:
                (place / "memory.max").write_text(str(limits.memory_bytes))
                # A task is of no use without its Java process: the kernel ends both.
                for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                    if (place / name).exists():
                        (place / name).write_text(value)
            if limits.cpu_percent is not None:
                quota_us = limits.cpu_percent * PERIOD_US // 100
                (place / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            # Processes that these start later are in the cgroup from their start.
            for each in processes_of(pid):
                try:
                    (place / "cgroup.procs").write_text(str(each))
                except ProcessLookupError:
                    if each == pid:
                        raise
        except OSError as error:
            extra = {"task": str(task_id), "cgroup": str(place), "reason": str(error)}
            LOG.error("a cgroup cannot be used; the task is watched", extra=extra)
            return False
        self._held[task_id] = (pid, place)
        return True

    def release(self, task_id: ConnectorTaskId) -> str | None:
        """Remove the cgroup of an ended process; return a trace if the kernel ended it."""
        held = self._held.pop(task_id, None)
        if held is None:
            return None
        place = held[1]
        trace = None
        events = dict(line.split() for line in _text(place / "memory.events").splitlines())
        if events.get("oom_kill", "0") != "0":
            trace = (
                "The task was ended by the kernel because it was over its memory limit: it used"
                f" {_text(place / 'memory.peak') or 'an unknown number of'} bytes,"
                f" agent.limit.memory.bytes is {_text(place / 'memory.max')}."
            )
        try:
            place.rmdir()
        except OSError as error:
            LOG.debug("cgroup stays", extra={"cgroup": str(place), "reason": str(error)})
        return trace

    def _is_prepared(self) -> bool:
        """Prepare at the first task with a limit; a failure is final, and logged once."""
        if self._prepared is None:
            try:
                # A cgroup with enabled controllers must have no processes: they move to a leaf.
                worker = self._base / "worker"
                worker.mkdir(exist_ok=True)
                for pid in (self._base / "cgroup.procs").read_text().split():
                    (worker / "cgroup.procs").write_text(pid)
                wanted = " ".join(f"+{name}" for name in CONTROLLERS)
                (self._base / "cgroup.subtree_control").write_text(wanted)
                self._prepared = True
            except OSError as error:
                extra = {"cgroup": str(self._base), "reason": str(error)}
                LOG.warning("the delegated cgroup cannot be used; tasks are watched", extra=extra)
                self._prepared = False
        return self._prepared


def _attribute(path: Path, name: str) -> bytes:
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


LOOK_S = 1.0

End = Callable[[ConnectorTaskId, str], object]
"""Starts to end a task at once; the task becomes FAILED with the given trace."""


class TaskLimitWatch:
    """Checks the tasks' use of the host, in `run`; `cgroups` None: the host delegates none."""

    def __init__(self, tasks: TaskChildren, cgroups: TaskCgroups | None, end: End) -> None:
        self._tasks = tasks
        self._cgroups = cgroups
        self._end = end
        if cgroups is not None:
            tasks.over_limit = cgroups.release

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Check each task with a limit once."""
        for task_id, task in self._tasks.details().items():
            limits, pid = task.limits, task.child.pid
            if not limits.any or task.killed_because is not None or pid is None:
                continue
            if self._cgroups is not None and self._cgroups.hold(task_id, pid, limits):
                # The cgroup does not count memory from before the move; it does limit the
                # processor.
                limits = replace(limits, cpu_percent=None)
            note_use(task)
            trace = excess(limits, task.use)
            if trace is not None:
                self._end(task_id, trace)

    def sample(self) -> None:
        """Record the present use of every task, for the admin interface."""
        for task in self._tasks.details().values():
            note_use(task)


def note_use(task: TaskChild) -> None:
    use = use_of(task.child.pid)
    if use is not None:
        task.use.add(use)
