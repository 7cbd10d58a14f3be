"""The limits of tasks: held by the kernel where it can, watched otherwise.

Layer: supervise. Lives on the event loop. A task over a limit is ended at once, as the kernel would
end it, and becomes FAILED with what it used; nothing else is touched. Without a cgroup the
processor cannot be limited, only watched: priorities share it out, and a limit of the process's
whole processor time is none of its rate.
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
"""Begins to end a task at once, which is FAILED with the given trace then."""


class TaskLimitWatch:
    """`run` until cancelled. `cgroups` None: the host delegates none."""

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
        """Look at each task with a limit once."""
        for task_id, task in self._tasks.details().items():
            if task.limits.any and task.killed_because is None:
                self._look_at(task_id, task)

    def sample(self) -> None:
        """Note what every task uses now, for a reader of the admin interface."""
        for task in self._tasks.details().values():
            note_use(task)

    def _look_at(self, task_id: ConnectorTaskId, task: TaskChild) -> None:
        pid = task.child.pid
        if pid is None:
            return
        limits = task.limits
        if self._cgroups is not None and self._cgroups.hold(task_id, pid, limits):
            # What the process had before it was moved is counted elsewhere; the processor is held.
            limits = replace(limits, cpu_percent=None)
        note_use(task)
        trace = excess(limits, task.use)
        if trace is not None:
            self._end(task_id, trace)


def note_use(task: TaskChild) -> None:
    use = use_of(task.child.pid)
    if use is not None:
        task.use.add(use)
