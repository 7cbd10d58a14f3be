"""The Java worker that tests compare with, its metric names, and workers without brokers."""

import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pyconnect_agent.core.metric_values import (
    DESCRIPTIONS,
    RESTARTS,
    SINK_TASK,
    SOURCE_TASK,
    TRANSFORMATION,
)
from pyconnect_sandbox.connect_worker import (
    AgentProcess,
    ConnectWorker,
    JavaConnectWorker,
    WorkerLaunch,
    rest_status,
    worker_properties,
)
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import STRING_CONVERTER, sink_config, source_config
from tests.support.agents.rest_client import WorkerRest
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers, SharedBroker, SharedJavaWorker, free_ports

pytestmark = pytest.mark.java

AS_LINES = {"value_converter": STRING_CONVERTER}


def test_the_shared_java_worker_is_of_the_kafka_version_we_compare_with(
    java_worker: SharedJavaWorker,
) -> None:
    """The session's Java worker reports Kafka 4.3.1."""
    assert WorkerRest(java_worker).get("/")["version"] == "4.3.1"


def test_a_file_goes_through_the_java_worker(java_worker: SharedJavaWorker, tmp_path: Path) -> None:
    """FileStreamSource and FileStreamSink of connect-file run in the session's worker."""
    source, sink, topic = (unique_name(kind) for kind in ("source", "sink", "lines"))
    (tmp_path / "in").write_text("first\nsecond\n")
    rest = WorkerRest(java_worker)
    rest.create(source, source_config(tmp_path / "in", topic, **AS_LINES))
    rest.create(sink, sink_config(tmp_path / "out", topic, **AS_LINES))
    eventually(
        lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text() == "first\nsecond\n",
        timeout_s=150,
        describe="both lines in the sink's file",
    )


@pytest.fixture(scope="module")
def own_worker(module_servers: Servers, kafka_broker: SharedBroker) -> JavaConnectWorker:
    """A worker that tests may kill and freeze."""
    return module_servers.java_worker(kafka_broker.bootstrap_servers, unique_name("group"))


@pytest.fixture
def worker(own_worker: JavaConnectWorker) -> JavaConnectWorker:
    return own_worker.start()


def test_a_killed_worker_comes_back_at_its_address_with_its_connectors(
    worker: JavaConnectWorker, tmp_path: Path
) -> None:
    """A worker that is killed and started has the connectors of its config topic."""
    rest, url = WorkerRest(worker), worker.url
    (tmp_path / "in").touch()
    rest.create("kept", source_config(tmp_path / "in", unique_name("lines")))

    worker.kill()
    assert rest_status(worker.port, "/", timeout_s=1) is None
    worker.start()

    assert worker.url == url
    assert rest.get("/connectors") == ["kept"]


def test_a_suspended_worker_answers_again_when_it_is_resumed(worker: JavaConnectWorker) -> None:
    """A frozen worker answers nothing until it is resumed."""
    worker.suspend()
    eventually(lambda: rest_status(worker.port, "/", timeout_s=0.5) is None)
    worker.resume()

    assert eventually(lambda: rest_status(worker.port, "/", timeout_s=1) == 200)


def test_a_standalone_worker_runs_the_connectors_it_is_given(
    servers: Servers, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """ConnectStandalone starts with a connector's properties file."""
    (tmp_path / "in").touch()
    worker = servers.java_worker(
        kafka_broker.bootstrap_servers,
        unique_name("group"),
        properties={"offset.storage.file.filename": str(tmp_path / "offsets")},
        connectors=({"name": "alone", **source_config(tmp_path / "in", unique_name("lines"))},),
    )
    assert eventually(lambda: WorkerRest(worker).get("/connectors") == ["alone"])


# Metrics that a Java worker does not have.
OWN = {
    (SINK_TASK, "sink-closing-commit-total"),
    (SINK_TASK, "sink-closing-commit-time-ms"),
    (SOURCE_TASK, "source-record-commit-lag-max-ms"),
    (SOURCE_TASK, "source-record-commit-lag-avg-ms"),
    (TRANSFORMATION, "transform-record-in-total"),
    (TRANSFORMATION, "transform-record-out-total"),
    (TRANSFORMATION, "transform-record-dropped-total"),
    (TRANSFORMATION, "transform-record-failed-total"),
    (TRANSFORMATION, "transform-record-avg-time-us"),
}
NEVER_FILLED = {(SINK_TASK, "sink-record-lag-max")}
ROW = re.compile(r"<td>([^<]+)</td>\s*<td>[^<]*</td>\s*<td>kafka\.connect:type=([^,<]+)[^<]*</td>")


def test_groups_and_names_are_those_of_kafka(kafka_runtime: KafkaRuntime) -> None:
    """Metrics are those of Kafka's own table, apart from OWN and those that Kafka never fills."""
    command = kafka_runtime.command("org.apache.kafka.connect.runtime.ConnectMetrics", heap_mb=128)
    printed = subprocess.run(command, capture_output=True, text=True, timeout=400, check=True)
    theirs = {(group, name) for name, group in ROW.findall(printed.stdout)}
    ours = {
        (group, name)
        for group, members in DESCRIPTIONS.items()
        for name in members
        if group != RESTARTS
    }
    assert len(theirs) > 70
    assert ours - theirs == OWN
    assert theirs - ours == NEVER_FILLED


IMPATIENT = {"request.timeout.ms": "3000", "default.api.timeout.ms": "3000"}
END_S = 120

Make = Callable[[KafkaRuntime, WorkerLaunch], ConnectWorker]


@cases(
    "make",
    pytest.param(JavaConnectWorker, id="java"),
    pytest.param(lambda _, config: AgentProcess(config), id="agent"),
)
def test_a_worker_refuses_connections_until_it_has_found_its_brokers(
    make: Make, kafka_runtime: KafkaRuntime, tmp_path: Path
) -> None:
    """A client never waits for an answer that may not come; a worker without brokers ends."""
    nobody, port = free_ports(2)
    worker = make(
        kafka_runtime,
        WorkerLaunch(
            directory=tmp_path / "worker",
            properties={**worker_properties(f"127.0.0.1:{nobody}", "group"), **IMPATIENT},
            port=port,
        ),
    )
    refused: list[bool] = []

    def has_ended() -> bool:
        refused.append(_refuses(port))
        return not worker.is_running

    worker.launch()
    try:
        eventually(has_ended, END_S)
    finally:
        worker.stop()
    assert all(refused)


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except ConnectionRefusedError:
        return True
    return False
