"""The answer of `GET /` about the worker."""

from __future__ import annotations

import re

from pyconnect_agent.core.apache_release import CONNECT_VERSION
from pyconnect_agent.worker.lifecycle import server_info
from pyconnect_clients.installation import version


def test_clients_find_the_level_of_the_interface_in_version() -> None:
    """`version` is a Kafka release: clients compare it with the one a feature came with."""
    assert server_info(CONNECT_VERSION, "id").version == CONNECT_VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+", CONNECT_VERSION)


def test_an_agent_is_recognised_by_its_commit() -> None:
    """`commit` names the product and its own version."""
    assert server_info(CONNECT_VERSION, "id").commit == f"pyconnect-{version()}"
    assert version() != "unknown"
