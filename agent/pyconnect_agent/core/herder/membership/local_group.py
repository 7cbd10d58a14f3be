"""The assignment of a group of one: a worker without peers, and standalone mode.

It speaks the incremental protocol's language, so that the herder knows only one way of joining.
"""

from __future__ import annotations

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
