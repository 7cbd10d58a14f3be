"""The version of this worker, for `GET /` and `--version`."""

from __future__ import annotations

from importlib import metadata

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_agent.core.reporting import ServerInfo

DISTRIBUTION = "pyconnect-worker"


def version() -> str:
    """Return the installed distribution's version, `unknown` in a bare source tree."""
    try:
        return metadata.version(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        return "unknown"


def server_info(kafka_cluster_id: str) -> ServerInfo:
    """Return the answer of `GET /`.

    `version` is Kafka's version of the interface, because clients of Apache's workers check it for
    features; the worker's own version is in `commit`, which those clients do not read.
    """
    return ServerInfo(
        version=CONNECT_VERSION,
        commit=f"pyconnect-{version()}",
        kafka_cluster_id=kafka_cluster_id,
    )
