"""Limits of tasks: the tasks that the watch ends, the files of cgroups, the use of processes."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from pyconnect_agent.children import limits
from pyconnect_agent.children.limits import (
    TaskCgroups,
    TaskLimitWatch,
    processes_of,
    resident_memory,
    use_of,
)
from pyconnect_agent.children.tasks import TaskChild, TaskChildren
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import CPU_WINDOW_MS, TaskLimits, Use
from tests.support.cases import cases

TASK = ConnectorTaskId("c", 0)


@dataclass
class Process:
    """A substitute for a child."""

    pid: int | None = field(default_factory=os.getpid)


@dataclass
class Tasks:
    """A substitute for `TaskChildren`."""

    task: TaskChild
    over_limit: object = None

    def details(self) -> dict[ConnectorTaskId, TaskChild]:
        return {TASK: self.task}


class Kernel:
    """A substitute for `TaskCgroups` that holds every task, or none."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds

    def hold(self, _task_id: ConnectorTaskId, _pid: int, _limits: TaskLimits) -> bool:
        return self._holds

    def release(self, _task_id: ConnectorTaskId) -> None: ...


def ended(
    limits: TaskLimits, *, kernel: Kernel | None = None, pid: int | None = -1, **state: Any
) -> list[str]:
    """Return the ends that one check decides for a task: this process, busy for a whole window."""
    process = Process() if pid == -1 else Process(pid)
    task = TaskChild(cast("Any", process), since_ms=0, limits=limits, **state)
    task.use.add(Use(at_ms=-2 * CPU_WINDOW_MS, resident_bytes=1, cpu_ms=-(10**12)))
    found: list[str] = []
    watch = TaskLimitWatch(
        cast("TaskChildren", Tasks(task)),
        cast("TaskCgroups | None", kernel),
        lambda task_id, trace: found.append(f"{task_id}: {trace}"),
    )
    watch.look()
    return found


@cases("kernel", None, Kernel(holds=False), Kernel(holds=True))
def test_memory_is_looked_at_in_any_case(kernel: Kernel | None) -> None:
    """A cgroup does not count memory that a process had before its move into the cgroup."""
    (text,) = ended(TaskLimits(memory_bytes=1), kernel=kernel)
    assert text.startswith("c-0: The task was ended because it was over its memory limit")


def test_the_processor_is_looked_at_where_the_kernel_does_not_hold_it() -> None:
    """In a cgroup a task that is slowed to its limit may be measured a little above it."""
    limits = TaskLimits(cpu_percent=50)
    assert len(ended(limits)) == len(ended(limits, kernel=Kernel(holds=False))) == 1
    assert ended(limits, kernel=Kernel(holds=True)) == []


def test_tasks_without_limit_or_process_and_ending_tasks_are_left_alone() -> None:
    """The watch ends no task that has no limit or process, or that is already ending."""
    assert ended(TaskLimits()) == []
    assert ended(TaskLimits(memory_bytes=1), pid=None) == []
    assert ended(TaskLimits(memory_bytes=1), killed_because="a user") == []


PARENT = """
import subprocess, sys
below = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
print(below.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and one below it, like those of a Java task."""
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        yield parent.pid, int(parent.stdout.readline())


HELD = ConnectorTaskId("a/b", 0)
LIMITS = TaskLimits(memory_bytes=1_000, cpu_percent=150)
PLACE = "task-a%2Fb-0"
PID = 1 << 23
"""The id of no process: the processes below a real one would be put into the cgroup too."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file that names this process's cgroup."""
    file = tmp_path / "self"
    file.write_text("1:name=systemd:/x\n0::/connect.service\n")
    return file


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup as systemd delegates it, with two processes."""
    base = tmp_path / "connect.service"
    base.mkdir()
    (base / "worker").mkdir()
    (base / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    (base / "cgroup.procs").write_text("10\n11\n")
    monkeypatch.setattr(limits, "_attribute", lambda path, name: b"1" if path == base else b"")
    return base


def detected(root: Path, own: Path) -> TaskCgroups:
    found = TaskCgroups.detect(root, own)
    assert found is not None
    return found


def test_a_task_gets_a_cgroup_with_its_limits(tmp_path: Path, base: Path, own: Path) -> None:
    """The worker's processes move to a cgroup of their own first, as the kernel requires."""
    cgroups = detected(tmp_path, own)
    assert not (base / "cgroup.subtree_control").exists()
    assert cgroups.hold(HELD, PID, LIMITS)
    assert (base / "worker" / "cgroup.procs").read_text() == "11"
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory"
    written = {file.name: file.read_text() for file in (base / PLACE).iterdir()}
    assert written == {"memory.max": "1000", "cpu.max": "150000 100000", "cgroup.procs": str(PID)}
    (base / PLACE / "cgroup.procs").write_text("")
    assert cgroups.hold(HELD, PID, LIMITS)
    assert (base / PLACE / "cgroup.procs").read_text() == ""


def test_a_cgroup_gets_the_processes_below_a_task_too(
    tmp_path: Path, base: Path, own: Path, family: tuple[int, int]
) -> None:
    """The kernel ends a task and its Java process, which may already be running, together."""
    cgroups = detected(tmp_path, own)
    (base / PLACE).mkdir()
    (base / PLACE / "memory.oom.group").touch()
    parent, below = family
    assert cgroups.hold(HELD, parent, LIMITS)
    # A plain file has only the last id that was written.
    assert (base / PLACE / "cgroup.procs").read_text() == str(below)
    assert (base / PLACE / "memory.oom.group").read_text() == "1"


def test_the_trace_says_that_the_kernel_ended_it(tmp_path: Path, base: Path, own: Path) -> None:
    """The trace has the most memory that the task used; after any other end there is no trace."""
    cgroups = detected(tmp_path, own)
    cgroups.hold(HELD, PID, LIMITS)
    (base / PLACE / "memory.events").write_text("oom 1\noom_kill 1\n")
    (base / PLACE / "memory.peak").write_text("998\n")
    trace = cgroups.release(HELD) or ""
    assert "it used 998 bytes, agent.limit.memory.bytes is 1000." in trace
    assert cgroups.release(HELD) is None
    cgroups.hold(HELD, PID + 1, LIMITS)
    (base / PLACE / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert cgroups.release(HELD) is None


@cases("missing", "mark", "controllers", "version 2")
def test_a_host_that_delegates_nothing_is_left_alone(
    tmp_path: Path, base: Path, own: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cgroup without delegation is not used, even by root, which may write everywhere."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    match missing:
        case "mark":
            monkeypatch.setattr(limits, "_attribute", lambda _path, _name: b"")
        case "controllers":
            (base / "cgroup.controllers").write_text("pids\n")
        case _:
            own.write_text("4:memory:/x\n")
    assert TaskCgroups.detect(tmp_path, own) is None


def test_a_refusing_cgroup_leaves_it_to_the_watch(tmp_path: Path, base: Path, own: Path) -> None:
    """A cgroup that refuses one task leaves only that task to the watch."""
    (base / PLACE).write_text("no directory")
    cgroups = detected(tmp_path, own)
    assert not cgroups.hold(HELD, PID, LIMITS)
    assert cgroups.hold(ConnectorTaskId("c", 1), PID + 1, LIMITS)


@pytest.mark.skipif(sys.platform != "linux", reason="the use is known on Linux only")
def test_processes_below_a_process_count_while_they_are(family: tuple[int, int]) -> None:
    """A limit of a Java task includes its Java process; an ended process has no use."""
    parent, below = family
    assert list(processes_of(parent)) == [parent, below]
    both, one = resident_memory(parent), resident_memory(below)
    assert both is not None
    assert one is not None
    assert both > one > 0
    use = use_of(parent)
    assert use is not None
    assert use.resident_bytes > one
    with subprocess.Popen(["true"]) as gone:
        pass
    assert use_of(gone.pid) is None
    assert resident_memory(None) is None
