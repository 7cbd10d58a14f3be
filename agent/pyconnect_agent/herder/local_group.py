"""A group of one: every join succeeds at once and gives this worker everything.

Layer: herder. Used by a worker without peers and in standalone mode.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from pyconnect_agent.core.herder.effects import RequestRejoin
from pyconnect_agent.core.herder.events import Event, Joined
from pyconnect_agent.core.internal_topics.config_snapshot import ConfigSnapshot
from pyconnect_agent.core.protocol.messages import Assignment, ProtocolVersion, Work


def local_assignment(
    member_id: str, worker_url: str, snapshot: ConfigSnapshot, owned: Work
) -> Assignment:
    """Assign everything that is configured, and revoke the rest."""
    names = snapshot.connectors()
    configured = Work(names, tuple(task_id for name in names for task_id in snapshot.tasks(name)))
    return Assignment(
        version=ProtocolVersion.COMPATIBLE,
        leader=member_id,
        leader_url=worker_url,
        config_offset=snapshot.offset,
        assigned=configured - owned,
        revoked=owned - configured,
    )


class LocalGroup:
    """Implements `performer.Group`. Lives on the event loop."""

    def __init__(self, worker_url: str, post: Callable[[Event], None]) -> None:
        self._worker_url = worker_url
        self._post = post
        self._generation = 0

    def start(self) -> None:
        """Do nothing: there is no coordinator to find."""

    def stop(self, timeout_ms: int) -> None:
        """Do nothing: there is no other member to inform."""

    def confirmed_s(self) -> float | None:
        return time.monotonic()

    def begin_after(self, generation: int) -> None:
        """Continue the generations of the worker's earlier processes."""
        self._generation = generation

    def request_rejoin(self, effect: RequestRejoin) -> None:
        self._generation += 1
        member_id = self._worker_url
        assignment = local_assignment(member_id, self._worker_url, effect.snapshot, effect.owned)
        joined = Joined(member_id=member_id, generation=self._generation, assignment=assignment)
        self._post(joined)

    def leave(self, reason: str) -> None:
        """Do nothing: there is no other member to notice."""
