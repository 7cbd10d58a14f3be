"""The requests of the admin interface to this worker.

Layer: herder. Called on the event loop only; nothing here blocks it.
"""

from __future__ import annotations

from typing import Any, Protocol

from pyconnect_agent.core.config.effective import EffectiveValue
from pyconnect_agent.core.ids import ConnectorTaskId
from pyconnect_agent.core.log_lines import LogQuestion
from pyconnect_agent.core.metrics.values import Metric


class WorkerAdmin(Protocol):
    """One worker, as its operator sees it."""

    async def about(self) -> dict[str, Any]:
        """The document of `GET /agent`."""
        ...

    def config(self) -> tuple[EffectiveValue, ...]: ...

    async def children(self) -> list[dict[str, Any]]:
        """One document per child process, sorted."""
        ...

    def connectors(self) -> dict[str, Any]:
        """The target state of each connector of the cluster, which no status shows."""
        ...

    async def metrics(self) -> tuple[Metric, ...]: ...

    def kill(self, task_id: ConnectorTaskId, *, force: bool) -> int | None:
        """Begin to kill a task of this worker; return its pid, None without one.

        NotFoundError for a task that does not exist, NotAssignedError for one that runs elsewhere
        (`target_url` None if its worker is not known), ConflictError for one that does not run.
        """
        ...

    def logs(self, question: LogQuestion) -> dict[str, Any]:
        """The document of `GET /agent/connectors/C/logs`; see `children.ports`."""
        ...

    async def stacks(self, task_id: ConnectorTaskId) -> str:
        """Return the stacks; errors as `kill`, and InternalError if the process shows none."""
        ...

    async def change_phase(self, phase: str, run_id: str, expected_sha256: str) -> dict[str, Any]:
        """Write a phase to the worker's file; call `restart_for_phase` after the answer is sent.

        ForbiddenError unless the worker's properties allow it, ConflictError for another file or
        run than expected, BadRequestError for a wrong phase or id.
        """
        ...

    def restart_for_phase(self) -> None:
        """Restart the worker if the written phase is not in force."""
        ...

    async def acls(self, phase: str | None) -> dict[str, Any]:
        """The document of `GET /agent/acls`; None: the worker's own phase.

        BadRequestError for a wrong phase, and for a standalone worker.
        """
        ...

    def drain(self, *, undrain: bool) -> None:
        """Begin to release all work, or to join again; `about` reports the progress."""
        ...
