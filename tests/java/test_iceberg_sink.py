"""Apache's Iceberg sink, which takes the consumer out of its context by reflection."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.agents.agent import STRING_CONVERTER, Agent, Agents, java_processes
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.maven_plugins import ICEBERG_SINK, location_of
from tests.support.servers.iceberg_rest import TOKEN, running_rest_catalog
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, produce

pytestmark = [pytest.mark.java, pytest.mark.long(only=True)]

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)
WAIT_S = 180


@pytest.fixture
def agent(agents: Agents) -> Agent:
    return agents.start(properties={"plugin.path": str(location_of(ICEBERG_SINK).parent)})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[RestCatalog]:
    directory = tmp_path / "lake"
    directory.mkdir()
    with running_rest_catalog(directory) as address:
        yield RestCatalog("tests", uri=address, token=TOKEN)


def send(broker: SharedBroker, topic: str, begin: int, end: int) -> None:
    for partition in (0, 1):
        numbers = range(begin + partition, end, 2)
        values = [json.dumps({"id": n, "name": f"n{n}"}).encode() for n in numbers]
        produce(broker.bootstrap_servers, topic, *values, partition=partition)


@pytest.mark.timeout(900)
def test_each_record_is_in_the_table_once_when_processes_are_killed(
    agent: Agent, catalog: RestCatalog, kafka_broker: SharedBroker
) -> None:
    """Each record is in the table once: offsets are committed with the worker's group metadata."""
    topic, control = unique_name("events"), unique_name("control")
    create_topics(kafka_broker.bootstrap_servers, [topic], partitions=2)
    create_topics(kafka_broker.bootstrap_servers, [control])
    table = unique_name("events").replace("-", "_")
    catalog.create_namespace("db")
    catalog.create_table(("db", table), SCHEMA)
    name = unique_name("iceberg")
    config = {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "tasks.max": "2",
        "topics": topic,
        "key.converter": STRING_CONVERTER,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "consumer.override.session.timeout.ms": "10000",
        "iceberg.tables": f"db.{table}",
        "iceberg.control.topic": control,
        "iceberg.control.commit.interval-ms": "1000",
        "iceberg.control.commit.timeout-ms": "10000",
        "iceberg.kafka.bootstrap.servers": kafka_broker.bootstrap_servers,
        "iceberg.catalog.type": "rest",
        "iceberg.catalog.uri": catalog.properties["uri"],
        "iceberg.catalog.token": TOKEN,
        "iceberg.catalog.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
    }
    send(kafka_broker, topic, 0, 2_000)
    agent.create(name, config)

    def ids() -> list[int]:
        found: list[int] = catalog.load_table(("db", table)).scan().to_arrow()["id"].to_pylist()
        return sorted(found)

    eventually(lambda: ids() == list(range(2_000)), WAIT_S, lambda: f"{len(ids())} rows")
    for begin in (2_000, 4_000):
        send(kafka_broker, topic, begin, begin + 2_000)
        for process in java_processes(agent)[-1:]:
            os.kill(process.pid, signal.SIGKILL)
        agent.start_with(name, config, "RUNNING", "RUNNING", "RUNNING")
    eventually(lambda: ids() == list(range(6_000)), WAIT_S, lambda: f"{len(ids())} rows")
