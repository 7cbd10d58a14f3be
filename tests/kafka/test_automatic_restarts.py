"""Failed tasks of a real agent come back by themselves, unless a restart cannot help."""

from typing import Any

import psutil
import pytest

from tests.support.agents.agent import Agent, Agents
from tests.support.audits.sequences import WAIT_S, Sequences
from tests.support.eventually import eventually
from tests.support.plugins.bad_plugins import BAD_SOURCE

pytestmark = pytest.mark.kafka

AUTOMATIC = {
    # The group has agents only.
    "agent.restart.policy": "auto",
    "agent.restart.backoff.ms": "200",
    "task.shutdown.graceful.timeout.ms": "2000",
}


def task_of(agent: Agent, name: str) -> dict[str, Any]:
    """Return task 0 as the agent shows it."""
    found: dict[str, Any] = next(
        child
        for child in agent.get("/agent/tasks")
        if (child["connector"], child["task"]) == (name, 0)
    )
    return found


def attempts(agent: Agent, name: str) -> int:
    """Of task 0; 0 before it was started."""
    children = agent.get("/agent/tasks")
    found = [child["restarts"]["attempts"] for child in children if child["connector"] == name]
    return max(found, default=0)


def logged(agent: Agent, name: str) -> str:
    return str(agent.get(f"/agent/connectors/{name}/logs?task=0&level=WARN")["lines"])


def test_a_task_whose_process_is_killed_twice_comes_back_twice(
    agents: Agents, sequences: Sequences
) -> None:
    """Exactly-once: each number is there once. Attempts, metrics and the log tell of it."""
    agent = agents.start(properties={**AUTOMATIC, "exactly.once.source.support": "enabled"})
    agent.create("numbers", sequences.config())
    for life in range(2):
        sequences.allow(50 * (life + 1))
        sequences.wait_for(50 * (life + 1))
        before = task_of(agent, "numbers")["pid"]
        psutil.Process(before).kill()
        eventually(lambda known=before: task_of(agent, "numbers")["pid"] not in (None, known))
        agent.wait_for_states("numbers", "RUNNING", "RUNNING")
    sequences.allow(120)
    sequences.wait_for(120)
    shown = task_of(agent, "numbers")["restarts"]
    assert (shown["policy"], shown["attempts"], shown["next_ms"]) == ("on-failure", 2, None)
    metrics = agent.call("GET", "/agent/metrics").text
    assert (
        'kafka_connect_agent_restart_metrics_restart_attempts_total{connector="numbers",task="0"}'
        " 2.0" in metrics
    )
    assert logged(agent, "numbers").count("task process ended by itself") == 2
    assert agent.call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(120)


def test_tasks_of_a_killed_process_come_back_into_one(agents: Agents, sequences: Sequences) -> None:
    """Exactly-once: each number is there once."""
    agent = agents.start(properties={**AUTOMATIC, "exactly.once.source.support": "enabled"})
    agent.create("numbers", sequences.config(3, agent_isolation="connector"))
    for life in range(2):
        sequences.allow(50 * (life + 1))
        sequences.wait_for(50 * (life + 1), tasks=3)
        tasks = [child for child in agent.get("/agent/tasks") if child["task"] is not None]
        (before,) = {child["pid"] for child in tasks}
        psutil.Process(before).kill()
        agent.wait_for_states("numbers", "RUNNING", "RUNNING", "RUNNING", "RUNNING")
        eventually(lambda known=before: task_of(agent, "numbers")["pid"] not in (None, known))
    sequences.allow(120)
    sequences.wait_for(120, tasks=3)
    assert agent.call("PUT", "/connectors/numbers/pause").status == 202
    sequences.check(120, tasks=3)


def test_a_wrong_setting_is_not_repeated(agents: Agents) -> None:
    """Another task that fails for a passing reason is restarted meanwhile, many times."""
    agent = agents.start(properties={**AUTOMATIC, "agent.restart.backoff.max.ms": "200"})
    agent.create("wrong", {"connector.class": BAD_SOURCE, "task.start": "config-exception"})
    agent.create("passing", {"connector.class": BAD_SOURCE, "task.start": "raise"})
    agent.wait_for_states("wrong", "RUNNING", "FAILED")
    eventually(lambda: attempts(agent, "passing") >= 3, WAIT_S)
    shown = task_of(agent, "wrong")["restarts"]
    assert (shown["attempts"], shown["ended"], shown["next_ms"]) == (0, "permanent", None)
    agent.wait_for_states("wrong", "RUNNING", "FAILED")
    trace = agent.get("/connectors/wrong/status")["tasks"][0]["trace"]
    assert "ConfigException: wrong on purpose" in trace
    assert "a configuration error or a missing authorization has to be corrected first" in trace
