"""The Java worker that tests compare with is Apache's, and can be killed, frozen and restarted."""

from pathlib import Path

import pytest

from pyconnect_sandbox.connect_worker import JavaConnectWorker, rest_status
from tests.support.agents.agent import STRING_CONVERTER, sink_config, source_config
from tests.support.agents.rest_client import WorkerRest
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers, SharedBroker, SharedJavaWorker

pytestmark = pytest.mark.java

AS_LINES = {"value_converter": STRING_CONVERTER}


def test_the_shared_java_worker_is_of_the_kafka_version_we_compare_with(
    java_worker: SharedJavaWorker,
) -> None:
    """GET / of the session's Java worker names Kafka 4.3.1."""
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
