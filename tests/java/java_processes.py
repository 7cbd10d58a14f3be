"""The Java processes of an agent."""

from __future__ import annotations

import psutil

from tests.support.agent import Agent


def java_processes(agent: Agent) -> list[psutil.Process]:
    """The Java processes of the agent, the connector's before that of its task."""
    found = agent.supervisor().children(recursive=True)
    java = [process for process in found if process.name() == "java"]
    return sorted(java, key=lambda process: process.create_time())
