"""Generated records through an agent, in a format of the registry, and back out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.agent import Agents, closing, sink_config
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.servers.kafka import SharedBroker

pytestmark = pytest.mark.java

WAIT_S = 150
RECORDS = 20


@pytest.fixture
def agents(kafka_broker: SharedBroker, tmp_path: Path) -> Iterator[Agents]:
    yield from closing(lambda: Agents(kafka_broker.bootstrap_servers, tmp_path))


@pytest.mark.parametrize(
    "converter",
    [
        "io.confluent.connect.avro.AvroConverter",
        "io.confluent.connect.json.JsonSchemaConverter",
        "io.confluent.connect.protobuf.ProtobufConverter",
    ],
)
def test_generated_records_pass_through_the_registrys_format(
    agents: Agents, schema_registry_url: str, converter: str, tmp_path: Path
) -> None:
    """The names and settings of Confluent's converters do, in real tasks."""
    agent, out, topic = agents.start(), tmp_path / "out", unique_name("orders")
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
    agent.create(unique_name("source"), source | values)
    agent.create(unique_name("sink"), sink_config(out, topic) | values)

    def lines() -> list[str]:
        return out.read_text().splitlines() if out.exists() else []

    eventually(lambda: len(lines()) == RECORDS, WAIT_S, lines)
    assert [f"orderid={number}," in line for number, line in enumerate(lines())] == [True] * RECORDS
    assert all("address=Struct{city=City_" in line for line in lines())
