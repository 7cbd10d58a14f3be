"""The answer of `GET /`."""

from __future__ import annotations

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_agent.core.reporting import ServerInfo
from pyconnect_clients.installation import version


def server_info(kafka_cluster_id: str) -> ServerInfo:
    """Return the answer.

    `version` is Kafka's version of the interface, because clients of Apache's workers check it for
    features; the worker's own version is in `commit`, which those clients do not read.
    """
    return ServerInfo(
        version=CONNECT_VERSION,
        commit=f"pyconnect-{version()}",
        kafka_cluster_id=kafka_cluster_id,
    )
