"""The formats of a schema registry in real tasks: our converters and Confluent's AvroConverter."""

import json
import shutil
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from pyconnect_sandbox.runtime import KafkaRuntime
from tests.support.agents.agent import Agent, Agents, append_lines, sink_config, source_config
from tests.support.cases import cases
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.plugins.java_jars import file_connectors
from tests.support.plugins.maven_plugins import SNOWFLAKE, location_of
from tests.support.servers.kafka import SharedBroker
from tests.support.servers.topics import create_topics, read_topic

pytestmark = pytest.mark.java

WAIT_S = 150
RECORDS = 20
LINES = 3
JAVA_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
PYTHON_SOURCE = "pyconnect_agent.builtin.connectors.file_stream.FileStreamSourceConnector"
IN_STRUCTS = {
    "transforms": "hoist",
    "transforms.hoist.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.hoist.field": "line",
}
HEAD_BYTES = 5
"""Size of the zero byte and the schema id at the start of a message."""


@pytest.fixture(scope="module")
def plain(module_agents: Agents) -> Agent:
    return module_agents.start()


@cases(
    "converter",
    "io.confluent.connect.avro.AvroConverter",
    "io.confluent.connect.json.JsonSchemaConverter",
    "io.confluent.connect.protobuf.ProtobufConverter",
)
def test_generated_records_pass_through_the_registrys_format(
    plain: Agent, schema_registry_url: str, converter: str, tmp_path: Path
) -> None:
    """Tasks accept the class names and settings of Confluent's converters."""
    out, topic = tmp_path / "out", unique_name("orders")
    values = {
        "value.converter": converter,
        "value.converter.schema.registry.url": schema_registry_url,
    }
    source = {
        "connector.class": "Datagen",
        "quickstart": "orders",
        "topic": topic,
        "max.interval": "0",
        "iterations": str(RECORDS),
        "random.seed": "1",
    }
    plain.create(unique_name("source"), source | values)
    plain.create(unique_name("sink"), sink_config(out, topic) | values)

    def lines() -> list[str]:
        return out.read_text().splitlines() if out.exists() else []

    eventually(lambda: len(lines()) == RECORDS, WAIT_S, lines)
    assert [f"orderid={number}," in line for number, line in enumerate(lines())] == [True] * RECORDS
    assert all("address=Struct{city=City_" in line for line in lines())


@pytest.fixture
def agent(agents: Agents, kafka_runtime: KafkaRuntime, tmp_path: Path) -> Agent:
    """An agent with Confluent's converter out of Snowflake's jar: tests cannot fetch its own."""
    plugin_path = tmp_path / "plugins"
    plugin_path.mkdir()
    file_connectors(kafka_runtime, plugin_path)
    shutil.copytree(location_of(SNOWFLAKE), plugin_path / SNOWFLAKE.name)
    return agents.start(properties={"plugin.path": str(plugin_path)})


@pytest.mark.long(only=True)
@pytest.mark.timeout(850)
def test_java_and_python_write_the_same_avro(
    agent: Agent, kafka_broker: SharedBroker, schema_registry_url: str, tmp_path: Path
) -> None:
    """Both converters register the same schema, and the Java converter reads both topics."""
    bootstrap = kafka_broker.bootstrap_servers
    lines, copied = tmp_path / "lines", tmp_path / "copied"
    append_lines(lines, 1, LINES)
    converter = {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": schema_registry_url,
    }
    topics = {source: unique_name("lines") for source in (JAVA_SOURCE, PYTHON_SOURCE)}
    create_topics(bootstrap, list(topics.values()))
    for source, topic in topics.items():
        config = {**source_config(lines, topic), **converter, **IN_STRUCTS}
        agent.create(topic, {**config, "connector.class": source})
    sink = unique_name("sink")
    agent.create(sink, {**sink_config(copied, ",".join(topics.values())), **converter})

    def found() -> list[str]:
        return sorted(copied.read_text().splitlines()) if copied.exists() else []

    expected = [f"Struct{{line=line {number}}}" for number in range(1, LINES + 1) for _ in topics]
    eventually(
        lambda: found() == expected,
        WAIT_S,
        lambda: (found(), [agent.get(f"/connectors/{n}/status") for n in (*topics.values(), sink)]),
    )
    of_java, of_python = (
        [record.value() or b"" for record in read_topic(bootstrap, topic)]
        for topic in topics.values()
    )
    assert {value[0] for value in of_java + of_python} == {0}
    assert [value[HEAD_BYTES:] for value in of_java] == [value[HEAD_BYTES:] for value in of_python]
    with SchemaRegistryClient({"url": schema_registry_url}) as registry:
        schemas = [
            json.loads(registry.get_latest_version(f"{topic}-value").schema.schema_str or "")
            for topic in topics.values()
        ]
    assert schemas[0] == schemas[1]
