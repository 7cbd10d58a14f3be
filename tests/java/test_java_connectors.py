"""Apache's FileStream connectors in an agent, and the end of Java processes."""

import shutil
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import (
    STRING_CONVERTER,
    Agent,
    Agents,
    append_lines,
    java_processes,
    wait_until_equal,
)
from tests.support.agents.file_stream import FileStreams, lines_of, write_lines
from tests.support.agents.rest_client import WorkerRest
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import test_connectors as compiled_connectors
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker
from tests.support.servers.topics import (
    aborted_transactions,
    create_topics,
    open_records,
    read_topic,
)

pytestmark = pytest.mark.java

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
WAIT_S = 150
ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "5000"}
INTERVAL = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
# The transaction must still be open when its process is killed, however slow the machine is.
NEVER = {"transaction.boundary.interval.ms": "3600000"}


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plugin path with Apache's file connectors."""
    location = tmp_path_factory.mktemp("plugins") / "file"
    location.mkdir()
    (jar,) = kafka_runtime.libs.glob("connect-file-*.jar")
    shutil.copy(jar, location)
    return location.parent


@pytest.fixture(scope="module")
def plain(module_agents: Agents, plugin_path: Path) -> Agent:
    """An agent with at-least-once delivery."""
    return module_agents.start(properties={"plugin.path": str(plugin_path)})


@pytest.fixture
def streams(kafka_broker: SharedBroker) -> FileStreams:
    return FileStreams(kafka_broker.bootstrap_servers)


def test_lines_go_from_file_to_file(plain: Agent, streams: FileStreams, tmp_path: Path) -> None:
    """Source and sink run in Java, with one process for each connector and task."""
    original, copied = tmp_path / "original", tmp_path / "copied"
    write_lines(original, 5_000)
    awake = {"agent.connector.sleep": "false"}
    source = {**streams.source(original), "connector.class": SOURCE, **awake}
    sink = {**streams.sink(copied), "connector.class": SINK, **awake}
    plain.create(source["name"], source)
    plain.create(sink["name"], sink)
    wait_until_equal(copied, original)
    assert len(java_processes(plain)) == 4
    write_lines(original, 5_000, start=5_000)
    wait_until_equal(copied, original)
    for name in (source["name"], sink["name"]):
        plain.do("DELETE", f"/connectors/{name}")


def test_positions_count_characters(
    plain: Agent, java_worker: SharedJavaWorker, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """The task counts characters and skips as many bytes when it starts, as on a Java worker."""
    original = tmp_path / "original"
    original.write_text("zäh\nöd\n")
    found = []
    for worker in (WorkerRest(java_worker), plain):
        streams = FileStreams(kafka_broker.bootstrap_servers)
        name = streams.source_name
        settings = {"connector.class": SOURCE, "value.converter": STRING_CONVERTER}
        config = {**streams.source(original), **settings}
        worker.create(name, config)
        _await_position(worker, name, 7)
        worker.start_with(name, config, "RUNNING", "RUNNING")
        _await_position(worker, name, 9)
        found.append([value.decode() for value in streams.values()])
        worker.do("DELETE", f"/connectors/{name}")
    assert found == [["zäh", "öd", "d"]] * 2


def test_exactly_once_when_processes_are_killed(
    agents: Agents, plugin_path: Path, streams: FileStreams, tmp_path: Path
) -> None:
    """No line is lost or repeated when the Java or Python process is killed in a transaction."""
    agent = agents.start(properties={"plugin.path": str(plugin_path), **ENABLED})
    bootstrap, topic, name = streams.bootstrap_servers, streams.topic, streams.source_name
    original, lines = tmp_path / "original", 0
    # The Java task counts characters but skips bytes: its positions are right for ASCII only.
    original.touch()
    config = {**streams.source(original, batch_size="20"), "connector.class": SOURCE, **INTERVAL}
    agent.create(name, config)
    for deaths, victim in enumerate(("java", "python", "java"), start=1):
        agent.start_with(name, config | NEVER, "RUNNING", "RUNNING")
        append_lines(original, lines + 1, lines + 2_000)
        lines += 2_000
        eventually(lambda: open_records(bootstrap, topic), WAIT_S, lambda: agent.states(name))
        task = _task_process(agent)
        (task if victim == "python" else task.children()[0]).kill()
        agent.wait_for_states(name, "RUNNING", "FAILED")
        agent.start_with(name, config, "RUNNING", "RUNNING")
        assert aborted_transactions(bootstrap, [topic]) == deaths
    eventually(
        # The Java task keeps lines in its buffer until more lines come.
        lambda: len(_committed(streams)) >= lines - 100,
        WAIT_S,
        lambda: f"{len(_committed(streams))} records",
    )
    found = _committed(streams)
    assert found == lines_of(original)[: len(found)]


def _await_position(worker: WorkerRest[Any], name: str, position: int) -> None:
    def offsets() -> list[object]:
        return [each["offset"] for each in worker.get(f"/connectors/{name}/offsets")["offsets"]]

    eventually(lambda: offsets() == [{"position": position}], WAIT_S, offsets)


def _committed(streams: FileStreams) -> list[str]:
    records = read_topic(streams.bootstrap_servers, streams.topic, committed=True)
    return [(record.value() or b"").decode() for record in records]


def _task_process(agent: Agent) -> psutil.Process:
    """Return the process of the only task, which is younger than the connector's."""
    parents = [process.parent() for process in java_processes(agent)]
    return max((p for p in parents if p is not None), key=lambda process: process.create_time())


SESSION_S = 6
PROPERTIES = {
    "session.timeout.ms": str(SESSION_S * 1000),
    "heartbeat.interval.ms": "500",
    "task.shutdown.graceful.timeout.ms": "1000",
    "agent.connector.sleep": "false",
}


@pytest.fixture
def numbered(
    agents: Agents, kafka_broker: SharedBroker, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> Agent:
    """An agent with a Java source whose task runs."""
    plugin_path = tmp_path / "plugins"
    plugin_path.mkdir()
    compiled_connectors(kafka_runtime, plugin_path)
    topic = unique_name("numbers")
    create_topics(kafka_broker.bootstrap_servers, [topic])
    agent = agents.start(properties={**PROPERTIES, "plugin.path": str(plugin_path)})
    source = {"connector.class": "io.pyconnect.tests.NumberSource", "topic": topic}
    agent.create("source", source)
    agent.wait_for_states("source", "RUNNING", "RUNNING")
    return agent


def await_end(*processes: psutil.Process, timeout_s: float = WAIT_S) -> None:
    eventually(lambda: not any(map(is_alive, processes)), timeout_s, lambda: processes)


def is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_java_processes_end_with_their_task_and_their_worker(numbered: Agent) -> None:
    """A restart ends the frozen process of a task; the kill of its parents ends any process."""
    _, frozen = java_processes(numbered)
    frozen.suspend()
    numbered.do("POST", "/connectors/source/tasks/0/restart")
    await_end(frozen)
    numbered.wait_for_states("source", "RUNNING", "RUNNING")
    eventually(lambda: len(java_processes(numbered)) == 2, WAIT_S)
    connector, task = java_processes(numbered)
    task.suspend()
    parent = task.parent()
    assert parent is not None
    parent.kill()
    await_end(task)
    assert is_alive(connector)
    numbered.wait_for_states("source", "RUNNING", "FAILED")
    connector.suspend()
    numbered.kill_supervisor()
    await_end(connector)


def test_java_processes_end_with_the_lease(numbered: Agent) -> None:
    """Java processes end when a frozen worker process cannot renew their leases."""
    java = java_processes(numbered)
    assert len(java) == 2
    worker = numbered.supervisor()
    worker.suspend()
    try:
        await_end(*java, timeout_s=5 * SESSION_S)
    finally:
        worker.resume()
