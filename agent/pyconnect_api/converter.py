"""Converters between Connect data and the bytes in Kafka.

Corresponds to `org.apache.kafka.connect.storage.Converter` and `HeaderConverter`. An instance is
configured once and then used by one task's threads. A class may implement both kinds; its
`configure` then takes `is_key` with a default. Failures to convert are DataException; only an
unreachable service (a schema registry) is RetriableException.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from pyconnect_api.configdef import ConfigDef
from pyconnect_api.header import KafkaHeaders
from pyconnect_api.schema import Schema, SchemaAndValue

CONVERTER_TYPE_CONFIG = "converter.type"
"""Set by the worker to `key`, `value` or `header` in every converter's configuration."""


class Converter(ABC):
    """Converts record keys or values."""

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        """Take the options below `key.converter.` or `value.converter.`, prefix removed."""

    @abstractmethod
    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        """Return the bytes to send; None is a Kafka null.

        `headers` are the outgoing Kafka headers; the converter may append to them.
        """

    @abstractmethod
    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        """Return schema and value of consumed bytes; `headers` are the record's Kafka headers."""

    def from_connect_many(
        self, topic: str, schema: Schema | None, values: Sequence[object]
    ) -> list[bytes | None]:
        """Return the bytes of each value, all of one schema.

        Override this, together with `from_connect_data`, in a converter that is quicker with many
        values, and neither reads nor adds headers. An exception for any of the values is allowed:
        the worker then converts one by one, and reports the values that fail.
        """
        return [self.from_connect_data(topic, [], schema, value) for value in values]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[list[Schema | None], list[object]]:
        """Return the schemas and the values of consumed bytes; otherwise as `from_connect_many`."""
        found = [self.to_connect_data(topic, [], each) for each in data]
        return [schema for schema, _ in found], [value for _, value in found]

    def config(self) -> ConfigDef:
        """Return the options this converter understands."""
        return ConfigDef()

    def close(self) -> None:
        """Release the resources of `configure`; called once, also after failures."""


class HeaderConverter(ABC):
    """Converts header values, one at a time."""

    def configure(self, configs: Mapping[str, object]) -> None:
        """Take the options below `header.converter.`, prefix removed."""

    @abstractmethod
    def from_connect_header(
        self, topic: str, header_key: str, schema: Schema | None, value: object
    ) -> bytes | None:
        """Return the bytes of the header's value; None is a null header."""

    @abstractmethod
    def to_connect_header(self, topic: str, header_key: str, data: bytes | None) -> SchemaAndValue:
        """Return schema and value of a consumed header's bytes."""

    def config(self) -> ConfigDef:
        """Return the options this converter understands."""
        return ConfigDef()

    def close(self) -> None:
        """Release the resources of `configure`; called once, also after failures."""
