"""One worker's admin interface in memory."""

import math
from dataclasses import replace
from typing import Any

from pyconnect_agent.children.ports import ChildDetails
from pyconnect_agent.core.config.effective import ConfigSource, EffectiveValue
from pyconnect_agent.core.errors import (
    BadRequestError,
    ConflictError,
    NotAssignedError,
    NotFoundError,
)
from pyconnect_agent.core.ids import ConnectorTaskId, State
from pyconnect_agent.core.log_lines import LineRings, LogLine, LogQuestion
from pyconnect_agent.core.metric_values import Metric
from pyconnect_agent.core.restart_policy import (
    NO_RESTARTS,
    RestartMode,
    RestartPolicy,
    Restarts,
    restarts_json,
)
from pyconnect_agent.core.task_limits import TaskLimits
from pyconnect_agent.worker.admin import child_json

HERE = ConnectorTaskId("c", 0)
ELSEWHERE = ConnectorTaskId("c", 1)
STOPPED = ConnectorTaskId("c", 2)
OWNER = "http://other:8083/"
POLICY = RestartPolicy(mode=RestartMode.ON_FAILURE, max_attempts=5)


class FakeAdmin:
    """A `herder.port.WorkerAdmin`: `c-0` runs here, `c-1` elsewhere, `c-2` not."""

    def __init__(self) -> None:
        self.kills: list[tuple[ConnectorTaskId, bool]] = []
        self.drains: list[bool] = []
        self.looks = 0
        self.next_ms: int | None = None
        self.lines: list[LogLine] = []
        self.epoch = 1
        self.owner_url = OWNER
        self.state = "active"
        self.sha256 = "s"
        self.phase_changes: list[tuple[str, str]] = []
        self.restarts = 0
        self.looks_until_end = 1
        self.shares = False
        """Whether `other/7` is in the process of `c/0`."""

    async def about(self) -> dict[str, Any]:
        return {
            "version": "4.3.1",
            "pid": 4711,
            "state": self.state,
            "leader": True,
            "generation": 7,
            "exactly_once_source_support": "preparing",
            "config_outdated": False,
        }

    def config(self) -> tuple[EffectiveValue, ...]:
        return (EffectiveValue(name="group.id", value="g", source=ConfigSource.FILE),)

    async def children(self) -> list[dict[str, Any]]:
        child = ChildDetails(
            connector="c",
            task=0,
            pid=None if self._killed_and_seen() else 1,
            state=State.RUNNING,
            since_ms=1_000,
            rss_bytes=20 * 2**20,
            cpu_percent=12.34,
            limits=TaskLimits(memory_bytes=512 * 2**20, cpu_percent=150),
            queue_size=5,
        )
        killed = replace(child, task=2, pid=None, state=State.FAILED, rss_bytes=None)
        restarts = restarts_json(Restarts(attempts=(1,), next_ms=self.next_ms), POLICY, 2_000)
        sharing = [replace(child, connector="other", task=7)] if self.shares else []
        return [
            *(child_json(each, 2_000) for each in sharing),
            {**child_json(child, 2_000), "restarts": restarts_json(NO_RESTARTS, POLICY, 2_000)},
            {**child_json(killed, 2_000), "restarts": restarts},
        ]

    def _killed_and_seen(self) -> bool:
        """Return whether a killed process is gone, after more than `looks_until_end` looks."""
        if self.kills:
            self.looks += 1
        return self.looks > self.looks_until_end

    def connectors(self) -> dict[str, Any]:
        return {"c": {"target_state": "PAUSED"}}

    async def metrics(self) -> tuple[Metric, ...]:
        tags = {"connector": "c", "task": "0"}
        values = {"status": "running", "batch-size-max": 7.0, "batch-size-avg": math.nan}
        return tuple(
            Metric(group="connector-task-metrics", name=name, value=value, tags=tags)
            for name, value in values.items()
        )

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int:
        self._check(task_id)
        self.kills.append((task_id, force))
        return 1

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        rings = LineRings(1 << 20)
        for line in self.lines:
            rings.add(line)
        return {
            "epoch": self.epoch,
            "next": max((line.number for line in self.lines), default=0),
            "lines": [line.to_json() for line in rings.find(question)],
        }

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        self._check(task_id)
        return "Thread MainThread\n"

    async def acls(self, phase: str | None) -> dict[str, Any]:
        if phase not in (None, "disabled", "preparing", "enabled"):
            raise BadRequestError(f"phase={phase}: must be disabled, preparing or enabled.")
        return {"phase": phase or "preparing", "principals": {}, "task_counts": {}, "grants": []}

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        if expected_sha256 != self.sha256:
            raise ConflictError("not the file that was expected")
        self.phase_changes.append((phase, run_id))
        return {"phase": phase, "run_id": run_id, "config_sha256": "n", "restart": "self"}

    def restart_for_phase(self) -> None:
        self.restarts += 1

    def drain(self, *, undrain: bool) -> None:
        self.drains.append(undrain)
        self.state = "active" if undrain else "drained"

    def _check(self, task_id: ConnectorTaskId) -> None:
        if task_id == ELSEWHERE:
            raise NotAssignedError("Task c-1 runs on another worker", target_url=self.owner_url)
        if task_id == STOPPED:
            raise ConflictError("Task c-2 has no process")
        if task_id != HERE:
            raise NotFoundError(f"Unknown task: {task_id}")
