"""The common half of the converters with a schema registry: subjects, ids, caches.

Layer: builtin. Corresponds to what `AbstractKafkaSchemaSerDe` does for Confluent's converters. A
format derives its schema of a Connect schema, and makes functions that write and read bodies; both
are made once for each schema. A None value is a Kafka null whatever its schema, and the reverse.
An instance serves one thread.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyconnect_agent.builtin.converters.recent import RecentlyUsed
from pyconnect_agent.builtin.converters.registry import framing
from pyconnect_agent.builtin.converters.registry.options import RegistryOptions, registry_options
from pyconnect_agent.kafka.schema_registry import RegistryClient, RegistrySchema
from pyconnect_api import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    CONVERTER_TYPE_CONFIG,
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    NULL,
    STRING_SCHEMA,
    ConfigException,
    Converter,
    DataException,
    KafkaHeaders,
    Schema,
    SchemaAndValue,
)

Encode = Callable[[object], bytes]
"""Returns the body of a value that is not None."""
Decode = Callable[[framing.Frame], SchemaAndValue]
"""Returns what a message of one schema means."""

_SCHEMAS_OF_SCALARS: Mapping[type, Schema] = {
    bool: BOOLEAN_SCHEMA,
    int: INT64_SCHEMA,
    float: FLOAT64_SCHEMA,
    str: STRING_SCHEMA,
    bytes: BYTES_SCHEMA,
}


@dataclass(frozen=True, slots=True)
class DerivedSchema:
    """A Connect schema in a format; `record_name` None if it names no record."""

    registered: RegistrySchema
    record_name: str | None


class RegistryConverter(Converter):
    """Converter of keys and values whose schemas a registry keeps."""

    def __init__(self) -> None:
        self._is_key = False
        self._options: RegistryOptions | None = None
        self._registry: RegistryClient | None = None
        self._encoders: RecentlyUsed[tuple[str, Schema], tuple[bytes, Encode]]
        self._decoders: RecentlyUsed[int | str, Decode]
        self._encoders, self._decoders = RecentlyUsed(0), RecentlyUsed(0)
        self._last: tuple[str, Schema, bytes, Encode] | None = None

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        config = self.config().parse(
            {**configs, CONVERTER_TYPE_CONFIG: "key" if is_key else "value"}
        )
        self._is_key = is_key
        options = self._options = registry_options(config, is_key=is_key)
        self._encoders, self._decoders = (
            RecentlyUsed(options.cache_size),
            RecentlyUsed(options.cache_size),
        )
        self._last = None
        self._configured(config)
        self._registry = RegistryClient(options.client)

    def close(self) -> None:
        if self._registry is not None:
            self._registry.close()

    def from_connect_data(
        self, topic: str, headers: KafkaHeaders, schema: Schema | None, value: object
    ) -> bytes | None:
        if value is None:
            return None
        if schema is None:
            schema = self._schema_of(value)
        last = self._last
        if last is None or last[1] is not schema or last[0] != topic:
            known = self._encoders.get((topic, schema))
            if known is None:
                target = self._target(topic, self._derived(schema))
                assert target.id is not None
                known = (framing.prefix(target.id), self._encoder(schema, target))
                self._encoders.put((topic, schema), known)
            last = self._last = (topic, schema, *known)
        return last[2] + last[3](value)

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return NULL
        frame = framing.parse(data, headers, is_key=self._is_key)
        decode = self._decoders.get(frame.schema)
        if decode is None:
            registry = self.registry
            decode = self._decoder(
                registry.by_id(frame.schema)
                if isinstance(frame.schema, int)
                else registry.by_guid(frame.schema)
            )
            self._decoders.put(frame.schema, decode)
        return decode(frame)

    @property
    def registry(self) -> RegistryClient:
        """The registry; ConfigException before `configure`."""
        if self._registry is None:
            raise ConfigException(f"{type(self).__name__} was not configured")
        return self._registry

    @abstractmethod
    def _configured(self, config: Mapping[str, object]) -> None:
        """Take the format's own options."""

    @abstractmethod
    def _derived(self, schema: Schema) -> DerivedSchema:
        """Return the format's schema for a Connect schema."""

    @abstractmethod
    def _encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        """Return the function that writes values of `schema` as `target` says."""

    @abstractmethod
    def _decoder(self, source: RegistrySchema) -> Decode:
        """Return the function that reads messages of a schema."""

    def _schema_of(self, value: object) -> Schema:
        schema = _SCHEMAS_OF_SCALARS.get(type(value))
        if schema is None:
            raise DataException(
                f"{type(self).__name__} cannot write a {type(value).__qualname__} without a schema"
            )
        return schema

    def _target(self, topic: str, derived: DerivedSchema) -> RegistrySchema:
        """Return the schema to write with, which has an id."""
        options, registry = self._options, self.registry
        assert options is not None
        subject = options.subject_name(topic, self._is_key, derived.record_name)
        if options.use_latest:
            return registry.latest(subject)
        own = derived.registered
        find = registry.register if options.auto_register else registry.lookup
        schema_id = find(subject, own, normalize=options.normalize)
        return RegistrySchema(schema_id, own.text, own.kind, own.references)
