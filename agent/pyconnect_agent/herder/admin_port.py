"""What the admin interface may ask of this worker.

Layer: herder. Called on the event loop only; nothing here blocks it.
"""

from __future__ import annotations

from typing import Any, Protocol

from pyconnect_agent.core.config.effective import EffectiveValue
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.metrics.values import Metric


class WorkerAdmin(Protocol):
    """One worker, seen by its operator."""

    async def about(self) -> dict[str, Any]:
        """The document of `GET /agent`."""
        ...

    def config(self) -> tuple[EffectiveValue, ...]: ...

    async def children(self) -> list[dict[str, Any]]:
        """One document per child process, sorted."""
        ...

    async def metrics(self) -> tuple[Metric, ...]:
        """Everything that Connect measures."""
        ...

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int | None:
        """Begin to kill a task of this worker; returns its pid, None without one.

        NotFoundError for a task that does not exist, NotAssignedError for one that runs elsewhere
        (`target_url` None when its worker is not known), ConflictError for one that does not run.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """The document of `GET /agent/connectors/C/logs`; see `children.ports`."""
        ...

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        """Errors as `kill`, and InternalError when the process shows none."""
        ...

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write a phase to the worker's file; `restart_for_phase` once that was answered.

        ForbiddenError unless the worker's properties allow it, ConflictError for another file or
        run than expected, BadRequestError for what is no phase or id.
        """
        ...

    def restart_for_phase(self) -> None:
        """Restart the worker if what was written is not in force."""
        ...

    async def acls(self, phase: str | None) -> dict[str, Any]:
        """The document of `GET /agent/acls`; None: the worker's own phase.

        BadRequestError for what is no phase, and for a standalone worker.
        """
        ...

    def drain(self, *, undrain: bool) -> None:
        """Begin to give up all work, or to take part again; `about` reports the progress."""
        ...
