"""The answer of `GET /`."""

from __future__ import annotations

from pyconnect_agent.core.reporting import ServerInfo
from pyconnect_clients.installation import version


def server_info(release: str, kafka_cluster_id: str) -> ServerInfo:
    """Return the answer.

    `version` is the release of Kafka Connect that the worker speaks, because clients of Apache's
    workers check it for features. They do not read `commit`, which has the worker's own version.
    """
    return ServerInfo(
        version=release,
        commit=f"pyconnect-{version()}",
        kafka_cluster_id=kafka_cluster_id,
    )
