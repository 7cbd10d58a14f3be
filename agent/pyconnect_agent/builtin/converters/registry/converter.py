"""The common half of the converters with a schema registry: subjects, ids, caches.

Corresponds to what `AbstractKafkaSchemaSerDe` does for Confluent's converters. A format derives its
schema of a Connect schema, and makes functions that write and read bodies; both are made once for
each schema. A None value is a Kafka null whatever its schema, and the reverse. An instance serves
one thread.

A message refers to its schema by Confluent's wire format:


    00 | schema id, 4 bytes unsigned big-endian | body          written and read
    header __key_schema_id or __value_schema_id = 01 | GUID, 16 bytes | message indexes       read
    header … = 00 | schema id, 4 bytes | message indexes                                      read

Message indexes are Protobuf's: the path of the message type in its file, as zigzag varints after
their count; the common path [0] is the single byte 00. Elsewhere there are none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pyconnect_agent.builtin.converters.base import RecentlyUsed
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

KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"

_BY_ID, _BY_GUID = 0, 1
_ID_BYTES, _GUID_BYTES = 4, 16


@dataclass(frozen=True, slots=True)
class Frame:
    """A message taken apart: its schema's id or GUID, and what follows.

    `header_rest` is what follows in the header that names the schema, None when the message does.
    """

    schema: int | str
    body: bytes
    header_rest: bytes | None = None


def prefix(schema_id: int) -> bytes:
    """Return what precedes the body."""
    return bytes((_BY_ID,)) + schema_id.to_bytes(_ID_BYTES, "big")


def parse(data: bytes, headers: KafkaHeaders, *, is_key: bool) -> Frame:
    """Take a message apart; DataException when it does not name a schema."""
    name = KEY_HEADER if is_key else VALUE_HEADER
    for header, value in reversed(headers):
        if header == name and value:
            schema, rest = _schema_of(value)
            return Frame(schema, data, rest)
    schema, body = _schema_of(data)
    return Frame(schema, body)


def _schema_of(data: bytes) -> tuple[int | str, bytes]:
    magic = data[0] if data else None
    if magic == _BY_ID and len(data) > _ID_BYTES:
        return int.from_bytes(data[1 : 1 + _ID_BYTES], "big"), data[1 + _ID_BYTES :]
    if magic == _BY_GUID and len(data) > _GUID_BYTES:
        return str(UUID(bytes=data[1 : 1 + _GUID_BYTES])), data[1 + _GUID_BYTES :]
    raise DataException(
        "Unknown magic byte! The message does not begin with the id of a schema; was it written "
        "by another converter or serializer?"
    )


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Return the bytes of a path of message types."""
    if list(indexes) == [0]:
        return b"\0"
    out = bytearray()
    for number in (len(indexes), *indexes):
        rest = number << 1
        while rest > 0x7F:
            out.append(rest & 0x7F | 0x80)
            rest >>= 7
        out.append(rest)
    return bytes(out)


def read_indexes(data: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path of message types that `data` begins with, and what follows it."""
    count, position = _read_zigzag(data, 0)
    if count == 0:
        return (0,), data[position:]
    indexes = []
    for _ in range(count):
        index, position = _read_zigzag(data, position)
        indexes.append(index)
    return tuple(indexes), data[position:]


def _read_zigzag(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while position < len(data):
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            number = (result >> 1) ^ -(result & 1)
            if number < 0:
                break
            return number, position
        shift += 7
    raise DataException("The message's path to its Protobuf type is damaged")


Encode = Callable[[object], bytes]
"""Returns the body of a value that is not None."""
Decode = Callable[[Frame], SchemaAndValue]
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
        self.configured(config)
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
                target = self._target(topic, self.derived(schema))
                assert target.id is not None
                known = (prefix(target.id), self.encoder(schema, target))
                self._encoders.put((topic, schema), known)
            last = self._last = (topic, schema, *known)
        return last[2] + last[3](value)

    def to_connect_data(
        self, topic: str, headers: KafkaHeaders, data: bytes | None
    ) -> SchemaAndValue:
        if data is None:
            return NULL
        frame = parse(data, headers, is_key=self._is_key)
        decode = self._decoders.get(frame.schema)
        if decode is None:
            registry = self.registry
            decode = self.decoder(
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
    def configured(self, config: Mapping[str, object]) -> None:
        """Take the format's own options."""

    @abstractmethod
    def derived(self, schema: Schema) -> DerivedSchema:
        """Return the format's schema for a Connect schema."""

    @abstractmethod
    def encoder(self, schema: Schema, target: RegistrySchema) -> Encode:
        """Return the function that writes values of `schema` as `target` says."""

    @abstractmethod
    def decoder(self, source: RegistrySchema) -> Decode:
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
