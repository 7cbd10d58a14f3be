"""Apache's own FileStream connectors, from their jar, in an agent."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.java_processes import java_processes
from tests.support.agents.agent import (
    STRING_CONVERTER,
    Agent,
    Agents,
    append_lines,
    closing,
    wait_until_equal,
)
from tests.support.agents.file_stream import FileStreams, lines_of, write_lines
from tests.support.agents.rest_client import WorkerRest
from tests.support.eventually import eventually
from tests.support.servers.kafka import SharedBroker, SharedJavaWorker
from tests.support.servers.topics import aborted_transactions, open_records, read_topic

pytestmark = pytest.mark.java

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
WAIT_S = 150
ENABLED = {"exactly.once.source.support": "enabled", "task.shutdown.graceful.timeout.ms": "5000"}
INTERVAL = {
    "transaction.boundary": "interval",
    "transaction.boundary.interval.ms": "1000",
}
# Of a transaction that is open when its process is killed, however slow the machine is.
NEVER = {"transaction.boundary.interval.ms": "3600000"}


@pytest.fixture(scope="module")
def plugin_path(kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of plugins that has Apache's file connectors."""
    location = tmp_path_factory.mktemp("plugins") / "file"
    location.mkdir()
    (jar,) = kafka_runtime.libs.glob("connect-file-*.jar")
    shutil.copy(jar, location)
    return location.parent


@pytest.fixture
def streams(kafka_broker: SharedBroker) -> FileStreams:
    return FileStreams(kafka_broker.bootstrap_servers)


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


def test_lines_go_from_file_to_file(
    agents: Agents, plugin_path: Path, streams: FileStreams, tmp_path: Path
) -> None:
    """Source and sink run in Java, each connector and task in a process of its own."""
    agent = agents.start(properties={"plugin.path": str(plugin_path)})
    original, copied = tmp_path / "original", tmp_path / "copied"
    write_lines(original, 5_000)
    awake = {"agent.connector.sleep": "false"}
    source = {**streams.source(original), "connector.class": SOURCE, **awake}
    sink = {**streams.sink(copied), "connector.class": SINK, **awake}
    agent.create(source["name"], source)
    agent.create(sink["name"], sink)
    wait_until_equal(copied, original)
    assert len(java_processes(agent)) == 4
    write_lines(original, 5_000, start=5_000)
    wait_until_equal(copied, original)


def test_positions_count_characters(
    agents: Agents,
    plugin_path: Path,
    java_worker: SharedJavaWorker,
    kafka_broker: SharedBroker,
    tmp_path: Path,
) -> None:
    """As on a Java worker: the task counts characters, and skips as many bytes when it starts."""
    agent = agents.start(properties={"plugin.path": str(plugin_path)})
    original = tmp_path / "original"
    original.write_text("zäh\nöd\n")
    found = []
    for worker in (WorkerRest(java_worker), agent):
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
    """A task repeats and loses nothing when its Java or Python process dies in a transaction."""
    agent = agents.start(properties={"plugin.path": str(plugin_path), **ENABLED})
    bootstrap, topic, name = streams.bootstrap_servers, streams.topic, streams.source_name
    original, lines = tmp_path / "original", 0
    # The Java task counts characters and skips bytes: its positions are right for ASCII only.
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
        # What the Java task has in its buffer it returns once more comes.
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
    """The process of the only task: the connector's has been there longer."""
    parents = [process.parent() for process in java_processes(agent)]
    return max((p for p in parents if p is not None), key=lambda process: process.create_time())
