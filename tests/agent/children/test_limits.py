"""Which tasks the watch ends."""

import os
from dataclasses import dataclass, field
from typing import Any, cast

from pyconnect_agent.children.limits import TaskCgroups, TaskLimitWatch
from pyconnect_agent.children.tasks import TaskChild, TaskChildren
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import CPU_WINDOW_MS, TaskLimits, Use
from tests.support.cases import cases

TASK = ConnectorTaskId("c", 0)


@dataclass
class Process:
    """In the place of a child."""

    pid: int | None = field(default_factory=os.getpid)


@dataclass
class Tasks:
    """In the place of `TaskChildren`."""

    task: TaskChild
    over_limit: object = None

    def details(self) -> dict[ConnectorTaskId, TaskChild]:
        return {TASK: self.task}


class Kernel:
    """In the place of `TaskCgroups`: holds every task, or none."""

    def __init__(self, *, holds: bool) -> None:
        self._holds = holds

    def hold(self, _task_id: ConnectorTaskId, _pid: int, _limits: TaskLimits) -> bool:
        return self._holds

    def release(self, _task_id: ConnectorTaskId) -> None: ...


def ended(
    limits: TaskLimits, *, kernel: Kernel | None = None, pid: int | None = -1, **state: Any
) -> list[str]:
    """Return the ends that one look decides for a task: this process, busy for a whole window."""
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
    """The cgroup does not count memory that a process had before it came into the cgroup."""
    (text,) = ended(TaskLimits(memory_bytes=1), kernel=kernel)
    assert text.startswith("c-0: The task was ended because it was over its memory limit")


def test_the_processor_is_looked_at_where_the_kernel_does_not_hold_it() -> None:
    """A task that is slowed down to its limit may be measured a little above it."""
    limits = TaskLimits(cpu_percent=50)
    assert len(ended(limits)) == len(ended(limits, kernel=Kernel(holds=False))) == 1
    assert ended(limits, kernel=Kernel(holds=True)) == []


def test_tasks_without_limit_or_process_and_ending_tasks_are_left_alone() -> None:
    """A task that is ending is not ended a second time."""
    assert ended(TaskLimits()) == []
    assert ended(TaskLimits(memory_bytes=1), pid=None) == []
    assert ended(TaskLimits(memory_bytes=1), killed_because="a user") == []
