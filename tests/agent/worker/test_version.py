"""The answer of `GET /` about the worker."""

import re

from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION
from pyconnect_agent.worker.lifecycle import server_info
from pyconnect_clients.installation import version


def test_an_agent_is_recognised_by_version_and_commit() -> None:
    """`version` is a Kafka release, with which clients compare; `commit` names the product."""
    assert server_info(CONNECT_VERSION, "id").version == CONNECT_VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+", CONNECT_VERSION)
    assert server_info(CONNECT_VERSION, "id").commit == f"pyconnect-{version()}"
    assert version() != "unknown"
