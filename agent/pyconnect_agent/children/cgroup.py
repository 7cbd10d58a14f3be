"""A cgroup (version 2) for each task with limits, below the one that the host gives to the worker.

Layer: children. `detect` finds out whether the host delegates a cgroup: systemd does with
`Delegate=yes`, and a user other than root can write only in delegated cgroups. Version 1 is not
used.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from urllib.parse import quote

from pyconnect_agent.children.use import processes_of
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import TaskLimits

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
        base = _own_cgroup(root, own)
        return cls(base) if base is not None and _is_delegated(base) else None

    def hold(self, task_id: ConnectorTaskId, pid: int, limits: TaskLimits) -> bool:
        """Put a process, with those below it, under its limits unless it is already.

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
                # Without a Java process its task is of no use: the kernel ends both.
                for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                    if (place / name).exists():
                        (place / name).write_text(value)
            if limits.cpu_percent is not None:
                quota_us = limits.cpu_percent * PERIOD_US // 100
                (place / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
            _move(pid, place / "cgroup.procs")
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
        if _number(place / "memory.events", "oom_kill"):
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
                self._prepare()
                self._prepared = True
            except OSError as error:
                extra = {"cgroup": str(self._base), "reason": str(error)}
                LOG.warning("the delegated cgroup cannot be used; tasks are watched", extra=extra)
                self._prepared = False
        return self._prepared

    def _prepare(self) -> None:
        """Move this process to a leaf: a cgroup with enabled controllers must have no processes."""
        worker = self._base / "worker"
        worker.mkdir(exist_ok=True)
        for pid in (self._base / "cgroup.procs").read_text().split():
            (worker / "cgroup.procs").write_text(pid)
        wanted = " ".join(f"+{name}" for name in CONTROLLERS)
        (self._base / "cgroup.subtree_control").write_text(wanted)


def _move(pid: int, procs: Path) -> None:
    """Move a process and those that it has started; later ones begin in its cgroup."""
    for each in processes_of(pid):
        try:
            procs.write_text(str(each))
        except ProcessLookupError:
            if each == pid:
                raise


def _own_cgroup(root: Path, own: Path) -> Path | None:
    """Return the directory of this process' cgroup if it has the controllers."""
    try:
        lines = own.read_text().splitlines()
        path = next((line[3:] for line in lines if line.startswith("0::")), None)
        if path is None:
            return None
        base = root / path.lstrip("/")
        controllers = (base / "cgroup.controllers").read_text().split()
    except OSError:
        return None
    return base if set(CONTROLLERS) <= set(controllers) else None


def _is_delegated(base: Path) -> bool:
    if not os.access(base, os.W_OK) or not os.access(base / "cgroup.procs", os.W_OK):
        return False
    return os.geteuid() != 0 or any(_attribute(base, name) == b"1" for name in _DELEGATED)


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


def _number(file: Path, name: str) -> int:
    for line in _text(file).splitlines():
        key, _, value = line.partition(" ")
        if key == name and value.isdecimal():
            return int(value)
    return 0
