"""One worker's admin interface in memory."""

from __future__ import annotations

from typing import Any

from pyconnect_agent.core.config.effective import ConfigSource, EffectiveValue
from pyconnect_agent.core.errors import ConflictError, NotAssignedError, NotFoundError
from pyconnect_agent.core.ids import ConnectorTaskId

HERE = ConnectorTaskId("c", 0)
ELSEWHERE = ConnectorTaskId("c", 1)
STOPPED = ConnectorTaskId("c", 2)
OWNER = "http://other:8083/"


class FakeAdmin:
    """Implements `herder.admin_port.WorkerAdmin`: `c-0` runs here, `c-1` elsewhere, `c-2` not."""

    def __init__(self) -> None:
        self.kills: list[tuple[ConnectorTaskId, bool]] = []
        self.drains: list[bool] = []

    async def about(self) -> dict[str, Any]:
        return {"version": "4.3.1", "state": "active"}

    def config(self) -> tuple[EffectiveValue, ...]:
        return (EffectiveValue(name="group.id", value="g", source=ConfigSource.FILE),)

    async def children(self) -> list[dict[str, Any]]:
        return [{"connector": "c", "task": 0, "pid": 1}]

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> None:
        self._check(task_id)
        self.kills.append((task_id, force))

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        self._check(task_id)
        return "Thread MainThread\n"

    def drain(self, *, undrain: bool) -> None:
        self.drains.append(undrain)

    def _check(self, task_id: ConnectorTaskId) -> None:
        if task_id == ELSEWHERE:
            raise NotAssignedError("Task c-1 runs on another worker", target_url=OWNER)
        if task_id == STOPPED:
            raise ConflictError("Task c-2 has no process")
        if task_id != HERE:
            raise NotFoundError(f"Unknown task: {task_id}")
