"""Java processes end with their tasks and workers: killed, frozen, or cut off from the worker."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_processes import java_processes
from tests.support.agents.agent import Agent, Agents, closing
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics

pytestmark = pytest.mark.java

WAIT_S = 150
SESSION_S = 6
PROPERTIES = {
    "session.timeout.ms": str(SESSION_S * 1000),
    "heartbeat.interval.ms": "500",
    "task.shutdown.graceful.timeout.ms": "1000",
    "agent.connector.sleep": "false",
}


@pytest.fixture
def agent(
    kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> Iterator[Agent]:
    """A worker with a Java source whose task runs."""
    plugin_path = tmp_path / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    topic = unique_name("numbers")
    create_topics(kafka_broker.bootstrap_servers, [topic])
    for agents in closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path)):
        agent = agents.start(properties={**PROPERTIES, "plugin.path": str(plugin_path)})
        source = {"connector.class": "io.pyconnect.tests.NumberSource", "topic": topic}
        agent.create("source", source)
        agent.wait_for_states("source", "RUNNING", "RUNNING")
        yield agent


def await_end(*processes: psutil.Process, timeout_s: float = WAIT_S) -> None:
    eventually(lambda: not any(map(is_alive, processes)), timeout_s, lambda: processes)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_java_processes_end_with_their_task_and_their_worker(agent: Agent) -> None:
    """A frozen one is ended when its task is restarted, and any when its parents are killed."""
    _, frozen = java_processes(agent)
    frozen.suspend()
    agent.do("POST", "/connectors/source/tasks/0/restart")
    await_end(frozen)
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    eventually(lambda: len(java_processes(agent)) == 2, WAIT_S)
    connector, task = java_processes(agent)
    task.suspend()
    parent = task.parent()
    assert parent is not None
    parent.kill()
    await_end(task)
    assert is_alive(connector)
    agent.wait_for_states("source", "RUNNING", "FAILED")
    connector.suspend()
    agent.kill_supervisor()
    await_end(connector)


def test_java_processes_end_with_the_lease(agent: Agent) -> None:
    """A worker process that is frozen cannot renew the leases of its children."""
    java = java_processes(agent)
    assert len(java) == 2
    worker = agent.supervisor()
    worker.suspend()
    try:
        await_end(*java, timeout_s=5 * SESSION_S)
    finally:
        worker.resume()
