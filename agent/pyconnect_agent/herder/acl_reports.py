"""The answer of `GET /agent/acls`: grants of the worker and its connectors, from the brokers.

Layer: herder. The herder's state has the connectors; the composition root supplies the check.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from pyconnect_agent.core.errors import BadRequestError
from pyconnect_agent.herder.service import HerderService
from pyconnect_clients.acls.facts import ConnectorFacts


class AclCheck(Protocol):
    """Asks brokers about the grants of this worker's clients."""

    def report(self, phase: str | None, connectors: Sequence[ConnectorFacts]) -> dict[str, Any]:
        """Ask the brokers (blocks); ValueError for a text that is not a phase."""
        ...


class AclReports:
    """Serves any number of requests; `check` None: a standalone worker, which has no phases."""

    def __init__(self, check: AclCheck | None, herder: HerderService) -> None:
        self._check = check
        self._herder = herder

    async def report(self, phase: str | None) -> dict[str, Any]:
        """Return the document; BadRequestError for a wrong phase, or on a standalone worker."""
        if self._check is None:
            raise BadRequestError("A standalone worker has no phases whose grants can be checked.")
        try:
            return await asyncio.to_thread(self._check.report, phase, self._connectors())
        except ValueError as error:
            raise BadRequestError(
                f"phase={phase}: must be disabled, preparing or enabled."
            ) from error

    def _connectors(self) -> tuple[ConnectorFacts, ...]:
        state = self._herder.state
        snapshot = state.snapshot
        return tuple(
            ConnectorFacts(
                name=name,
                type=state.settings.connector_type(config),
                config=config,
                tasks=snapshot.task_count(name),
                fenced_tasks=snapshot.task_count_records.get(name),
                topics=self._herder.active_topics(name),
            )
            for name, config in sorted(snapshot.connector_configs.items())
        )
