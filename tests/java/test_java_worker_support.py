"""The Java worker that tests compare with is Apache's, and can be killed, frozen and restarted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from pyconnect_cli.sandbox.connect_worker import rest_status
from tests.support.eventually import eventually
from tests.support.kafka import Servers, SharedBroker, SharedJavaWorker
from tests.support.names import unique_name

pytestmark = pytest.mark.java


def get(url: str) -> Any:
    with urlopen(url, timeout=10) as answer:
        return json.load(answer)


def put(url: str, body: object) -> None:
    request = Request(
        url,
        method="PUT",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urlopen(request, timeout=30):
        pass


def file_source(topic: str, path: Path) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(path),
        "topic": topic,
        "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    }


def test_the_shared_java_worker_is_of_the_kafka_version_we_compare_with(
    java_worker: SharedJavaWorker,
) -> None:
    """GET / of the session's Java worker names Kafka 4.3.1."""
    assert get(f"{java_worker.url}/")["version"] == "4.3.1"


def test_a_file_goes_through_the_java_worker(java_worker: SharedJavaWorker, tmp_path: Path) -> None:
    """FileStreamSource and FileStreamSink of connect-file run in the session's worker."""
    source, sink, topic = (unique_name(kind) for kind in ("source", "sink", "lines"))
    (tmp_path / "in").write_text("first\nsecond\n")
    put(f"{java_worker.url}/connectors/{source}/config", file_source(topic, tmp_path / "in"))
    put(
        f"{java_worker.url}/connectors/{sink}/config",
        {
            "connector.class": "FileStreamSink",
            "file": str(tmp_path / "out"),
            "topics": topic,
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        },
    )
    eventually(
        lambda: (tmp_path / "out").exists() and (tmp_path / "out").read_text() == "first\nsecond\n",
        timeout_s=60,
        describe="both lines in the sink's file",
    )


def test_a_killed_worker_comes_back_at_its_address_with_its_connectors(
    servers: Servers, kafka_broker: SharedBroker, tmp_path: Path
) -> None:
    """A worker that is killed and started has the connectors of its config topic."""
    worker = servers.java_worker(kafka_broker.bootstrap_servers, unique_name("group"))
    url = worker.url
    (tmp_path / "in").touch()
    put(f"{url}/connectors/kept/config", file_source(unique_name("lines"), tmp_path / "in"))

    worker.kill()
    assert rest_status(worker.port, "/", timeout_s=1) is None
    worker.start()

    assert worker.url == url
    assert get(f"{url}/connectors") == ["kept"]


def test_a_suspended_worker_answers_again_when_it_is_resumed(
    servers: Servers, kafka_broker: SharedBroker
) -> None:
    """A frozen worker answers nothing until it is resumed."""
    worker = servers.java_worker(kafka_broker.bootstrap_servers, unique_name("group"))

    worker.suspend()
    assert rest_status(worker.port, "/", timeout_s=0.5) is None
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
        connectors=({"name": "alone", **file_source(unique_name("lines"), tmp_path / "in")},),
    )
    assert eventually(lambda: get(f"{worker.url}/connectors") == ["alone"])
