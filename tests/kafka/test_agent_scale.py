"""An agent whose group has many connectors that do nothing."""

from pathlib import Path

import psutil
import pytest

from tests.support.agents.agent import Agents
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.cluster import stopped, write_stopped_connectors
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.kafka

CONNECTORS = 1_000
MOST_BYTES = 100 * 1024 * 1024


def test_a_thousand_stopped_connectors_take_no_processes_and_little_memory(
    kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """100 MiB in all; what is left are the worker process and the fork server."""
    group_id = unique_name("stopped")
    write_stopped_connectors(kafka_broker.bootstrap_servers, f"{group_id}-configs", CONNECTORS)
    agents = Agents(kafka_broker.bootstrap_servers, tmp_path)
    try:
        agent = agents.start(group_id=group_id)
        eventually(lambda: stopped(agent.process) == CONNECTORS, 60)
        supervisor = psutil.Process(agent.process.pid)
        processes = [supervisor, *supervisor.children(recursive=True)]
        eventually(lambda: agent.children() == [])
        # Shared pages are counted once.
        used = sum(p.memory_full_info().pss for p in processes if p.is_running())
        assert used < MOST_BYTES
    finally:
        agents.close()
