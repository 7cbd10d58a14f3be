"""A Java worker and an agent of the same release of Kafka Connect, to be compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pyconnect_agent.core.apache_release import RELEASE_4_4, RELEASE_KEY, RELEASES
from pyconnect_sandbox.runtime import KafkaRuntime
from tests.java.kafka_4_4 import runtime_with_file_connectors
from tests.support.names import unique_name
from tests.support.servers.kafka import Servers, SharedBroker

PROVIDER = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@dataclass(frozen=True, slots=True)
class Workers:
    """Of pytest-xdist's worker alone, as the session's workers of 4.3.1."""

    release: str
    java_url: str
    agent_url: str


@pytest.fixture(scope="session")
def kafka_4_4(
    kafka_runtime: KafkaRuntime, tmp_path_factory: pytest.TempPathFactory
) -> KafkaRuntime:
    """Kafka 4.4.0 with FileStream connectors."""
    return runtime_with_file_connectors(kafka_runtime, tmp_path_factory.mktemp("kafka-4.4"))


@pytest.fixture(scope="session", params=RELEASES)
def workers(
    request: pytest.FixtureRequest,
    kafka_broker: SharedBroker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workers]:
    """Those of 4.4 have a config provider, `file`."""
    if request.param != RELEASE_4_4:
        java, agent = map(request.getfixturevalue, ("java_worker", "agent_worker"))
        yield Workers(request.param, java.url, agent.url)
        return
    servers = Servers(request.getfixturevalue("kafka_4_4"), tmp_path_factory.mktemp("workers-4.4"))
    own = {**PROVIDER, "agent.restart.policy": "never", RELEASE_KEY: request.param}
    bootstrap = kafka_broker.bootstrap_servers
    try:
        yield Workers(
            request.param,
            servers.java_worker(bootstrap, unique_name("java-4.4"), properties=PROVIDER).url,
            servers.agent(bootstrap, unique_name("agents-4.4"), properties=own).url,
        )
    finally:
        servers.close()


@pytest.fixture
def provided(tmp_path: Path) -> Path:
    """A file for the provider: a number, and a text that is none."""
    file = tmp_path / "provided.properties"
    file.write_text("number=1\ntext=s3cret\nconverter=nope\n")
    return file
