"""The Java processes of an agent."""

import psutil

from tests.support.agents.agent import Agent


def java_processes(agent: Agent) -> list[psutil.Process]:
    """The Java processes of connectors and tasks, the connector's before that of its task.

    Those of validations, which the agent keeps for a while, are left out.
    """
    owners = [child["pid"] for child in agent.get("/agent/tasks") if child["pid"] is not None]
    found = agent.supervisor().children(recursive=True)
    java = [each for each in found if each.name() == "java" and each.ppid() in owners]
    return sorted(java, key=lambda process: process.create_time())
