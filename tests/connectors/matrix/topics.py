"""The converters of the matrix, from records to the bytes of a topic and back."""

from collections.abc import Sequence
from enum import StrEnum

from pyconnect_agent.builtin.converters.avro.converter import AvroConverter
from pyconnect_agent.builtin.converters.json import JsonConverter
from pyconnect_agent.kafka.schema_registry import RegistrySchema
from pyconnect_api import Converter, Schema, SourceRecord

TOPIC = "matrix"


class Topic(StrEnum):
    """The forms of records in the topic."""

    JSON = "JSON with schemas"
    PLAIN = "JSON without schemas"
    AVRO = "Avro"


class MemoryRegistry:
    """A schema registry that gives each schema a number."""

    def __init__(self) -> None:
        self._schemas: list[RegistrySchema] = []

    def register(self, subject: str, schema: RegistrySchema, *, normalize: bool) -> int:
        del subject, normalize
        self._schemas.append(schema)
        return len(self._schemas) - 1

    def by_id(self, schema_id: int) -> RegistrySchema:
        return self._schemas[schema_id]

    def close(self) -> None:
        """Do nothing: the registry has no connection."""


def converter(topic: Topic) -> Converter:
    """Return a converter of values, with its defaults."""
    if topic is Topic.AVRO:
        avro = AvroConverter()
        avro.configure({"schema.registry.url": "http://127.0.0.1:9"}, False)
        avro._registry = MemoryRegistry()  # type: ignore[assignment]  # of the same methods
        return avro
    plain = JsonConverter()
    plain.configure({"schemas.enable": str(topic is Topic.JSON).lower()}, False)
    return plain


def through(topic: Topic, records: Sequence[SourceRecord]) -> list[tuple[Schema | None, object]]:
    """Return the records' values as a sink receives them from the topic."""
    writes, reads = converter(topic), converter(topic)
    if topic is Topic.AVRO:
        reads._registry = writes._registry  # type: ignore[attr-defined]
    found = []
    for record in records:
        data = writes.from_connect_data(TOPIC, [], record.value_schema, record.value)
        back = reads.to_connect_data(TOPIC, [], data)
        found.append((back.schema, back.value))
    return found
