"""Which worker this is: what `GET /` and `--version` show."""

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
    """Return what `GET /` answers.

    `version` is that of the interface, because clients of Apache's workers look there for what they
    may use; the worker's own stands in `commit`, where those never look.
    """
    return ServerInfo(
        version=CONNECT_VERSION,
        commit=f"pyconnect-{version()}",
        kafka_cluster_id=kafka_cluster_id,
    )
