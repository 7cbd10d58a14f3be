"""A status as this worker writes it. Layer: core."""

from __future__ import annotations

from pyconnect_agent.core.herder.turn import Turn
from pyconnect_agent.core.ids import State
from pyconnect_agent.core.reporting import Status


def status(
    turn: Turn, state: State, *, trace: str | None = None, version: str | None = None
) -> Status:
    """A status as this worker writes it now."""
    return Status(
        state=state,
        worker_id=turn.state.settings.worker_id,
        generation=turn.state.status_generation,
        trace=trace,
        version=version,
    )
