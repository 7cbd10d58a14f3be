"""The limits of tasks: the kernel enforces them in a cgroup, otherwise this module watches them.

Layer: children. Lives on the event loop. A task over a limit is ended at once, as the kernel would
end it, and becomes FAILED with the amount that it used. Without a cgroup the processor can only be
watched: a priority sets no limit, and RLIMIT_CPU limits the total time and not the rate.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from pyconnect_agent.children.cgroup import TaskCgroups
from pyconnect_agent.children.tasks import TaskChild, TaskChildren
from pyconnect_agent.children.use import use_of
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.task_limits import excess

LOOK_S = 1.0

End = Callable[[ConnectorTaskId, str], object]
"""Starts to end a task at once; the task becomes FAILED with the given trace."""


class TaskLimitWatch:
    """`run` until cancelled. `cgroups` None: the host delegates no cgroup."""

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
            if task.limits.any and task.killed_because is None:
                self._look_at(task_id, task)

    def sample(self) -> None:
        """Record the present use of every task, for the admin interface."""
        for task in self._tasks.details().values():
            note_use(task)

    def _look_at(self, task_id: ConnectorTaskId, task: TaskChild) -> None:
        pid = task.child.pid
        if pid is None:
            return
        limits = task.limits
        if self._cgroups is not None and self._cgroups.hold(task_id, pid, limits):
            # The cgroup does not count memory from before the move; it does limit the processor.
            limits = replace(limits, cpu_percent=None)
        note_use(task)
        trace = excess(limits, task.use)
        if trace is not None:
            self._end(task_id, trace)


def note_use(task: TaskChild) -> None:
    use = use_of(task.child.pid)
    if use is not None:
        task.use.add(use)
