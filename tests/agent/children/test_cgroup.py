"""Limits through a cgroup: which files are written, and what the kernel's answer means.

The files are plain ones: what the kernel does with them is not tested here.
"""

import os
from pathlib import Path

import pytest

from pyconnect_agent.children import limits
from pyconnect_agent.children.limits import TaskCgroups
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import TaskLimits
from tests.support.cases import cases

TASK = ConnectorTaskId("a/b", 0)
LIMITS = TaskLimits(memory_bytes=1_000, cpu_percent=150)
PLACE = "task-a%2Fb-0"
PID = 1 << 23
"""Of no process: those below it would get the cgroup too."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The file that names this process' cgroup."""
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


def test_a_task_gets_a_cgroup_with_its_limits(tmp_path: Path, base: Path, own: Path) -> None:
    """The worker's processes move to a cgroup of their own first, as the kernel wants it."""
    cgroups = TaskCgroups.detect(tmp_path, own)
    assert cgroups is not None
    assert not (base / "cgroup.subtree_control").exists()
    assert cgroups.hold(TASK, PID, LIMITS)
    assert (base / "worker" / "cgroup.procs").read_text() == "11"
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory"
    written = {file.name: file.read_text() for file in (base / PLACE).iterdir()}
    assert written == {"memory.max": "1000", "cpu.max": "150000 100000", "cgroup.procs": str(PID)}
    (base / PLACE / "cgroup.procs").write_text("")
    assert cgroups.hold(TASK, PID, LIMITS)
    assert (base / PLACE / "cgroup.procs").read_text() == ""


def test_a_cgroup_gets_the_processes_below_a_task_too(
    tmp_path: Path, base: Path, own: Path, family: tuple[int, int]
) -> None:
    """A Java process has been started already, and the kernel ends both together."""
    cgroups = TaskCgroups.detect(tmp_path, own)
    assert cgroups is not None
    (base / PLACE).mkdir()
    (base / PLACE / "memory.oom.group").touch()
    parent, below = family
    assert cgroups.hold(TASK, parent, LIMITS)
    # A plain file has the last one.
    assert (base / PLACE / "cgroup.procs").read_text() == str(below)
    assert (base / PLACE / "memory.oom.group").read_text() == "1"


def test_the_trace_says_that_the_kernel_ended_it(tmp_path: Path, base: Path, own: Path) -> None:
    """With the most memory it used; any other end says nothing."""
    cgroups = TaskCgroups.detect(tmp_path, own)
    assert cgroups is not None
    cgroups.hold(TASK, PID, LIMITS)
    (base / PLACE / "memory.events").write_text("oom 1\noom_kill 1\n")
    (base / PLACE / "memory.peak").write_text("998\n")
    trace = cgroups.release(TASK) or ""
    assert "it used 998 bytes, agent.limit.memory.bytes is 1000." in trace
    assert cgroups.release(TASK) is None
    cgroups.hold(TASK, PID + 1, LIMITS)
    (base / PLACE / "memory.events").write_text("oom 0\noom_kill 0\n")
    assert cgroups.release(TASK) is None


@cases("missing", "mark", "controllers", "version 2")
def test_a_host_that_delegates_nothing_is_left_alone(
    tmp_path: Path, base: Path, own: Path, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere; that is no delegation."""
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
    """Once and for all for the worker's own, for each task otherwise."""
    (base / PLACE).write_text("no directory")
    cgroups = TaskCgroups.detect(tmp_path, own)
    assert cgroups is not None
    assert not cgroups.hold(TASK, PID, LIMITS)
    assert cgroups.hold(ConnectorTaskId("c", 1), PID + 1, LIMITS)
