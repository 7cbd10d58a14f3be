"""The transactional id of a Connect cluster's leader (KIP-618). Pure."""

from __future__ import annotations

from collections.abc import Mapping

LEADER_ID_KEY = "agent.leader.transactional.id"
"""Of pyconnect's own agents: the leader's id instead of Kafka's, the same on every worker."""


def leader_id(group_id: str, properties: Mapping[str, str | None] | None = None) -> str:
    """Return the leader's transactional id, from a worker's properties if known."""
    return (properties or {}).get(LEADER_ID_KEY) or f"connect-cluster-{group_id}"
