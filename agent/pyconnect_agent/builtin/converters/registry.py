"""The common half of the converters with a schema registry: options, subjects, ids, caches.

Corresponds to what `AbstractKafkaSchemaSerDe` does for Confluent's converters. A format derives its
schema of a Connect schema, and makes functions that write and read bodies; both are made once for
each schema. A None value with any schema is a Kafka null, and the reverse. An instance serves
one thread.

A message refers to its schema by Confluent's wire format:

    00 | schema id, 4 bytes unsigned big-endian | body          written and read
    header __key_schema_id or __value_schema_id = 01 | GUID, 16 bytes | message indexes       read
    header … = 00 | schema id, 4 bytes | message indexes                                      read

Message indexes are Protobuf's: the path of the message type in its file, as zigzag varints after
their count; the common path [0] is the single byte 00. Other formats have none.

The names of the options are those of Confluent's converters. Stores are PEM files: Java's own key
store formats are refused with advice.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar
from uuid import UUID

from pyconnect_agent.builtin.converters.base import RecentlyUsed, converter_config_def
from pyconnect_agent.kafka.schema_registry import RegistryClient, RegistrySchema
from pyconnect_api import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    CONVERTER_TYPE_CONFIG,
    FLOAT64_SCHEMA,
    INT64_SCHEMA,
    NULL,
    STRING_SCHEMA,
    ConfigDef,
    ConfigException,
    Converter,
    DataException,
    KafkaHeaders,
    LambdaValidator,
    NonEmptyString,
    Password,
    Schema,
    SchemaAndValue,
    ValidString,
)
from pyconnect_api.configdef import Validator, define_table
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.installation import install_command
from pyconnect_clients.jaas import parse_jaas

SubjectName = Callable[[str, bool, str | None], str]
"""Returns a subject for topic, is_key and the record's full name (None without one)."""

URL = "schema.registry.url"
AUTO_REGISTER = "auto.register.schemas"
USE_LATEST = "use.latest.version"
NORMALIZE = "normalize.schemas"
CACHE_SIZE = "schemas.cache.size"
KEY_SUBJECT = "key.subject.name.strategy"
VALUE_SUBJECT = "value.subject.name.strategy"
BASIC_SOURCE = "basic.auth.credentials.source"
BASIC_USER_INFO = "basic.auth.user.info"
JAAS = "sasl.jaas.config"
BEARER_SOURCE = "bearer.auth.credentials.source"
PREFIX = "schema.registry."

_BEARER_TEXTS = (
    "bearer.auth.issuer.endpoint.url",
    "bearer.auth.client.id",
    "bearer.auth.scope",
    "bearer.auth.logical.cluster",
    "bearer.auth.identity.pool.id",
)
_BEARER_SECRETS = ("bearer.auth.token", "bearer.auth.client.secret")
_SSL_TEXTS = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.truststore.location",
    "ssl.truststore.type",
    "ssl.keystore.location",
    "ssl.keystore.type",
)
_SSL_SECRETS = ("ssl.key.password",)
_OPTIONAL_TEXTS = (*_BEARER_TEXTS, *(PREFIX + name for name in _SSL_TEXTS), "proxy")
_SECRETS = (*_BEARER_SECRETS, *(PREFIX + name for name in _SSL_SECRETS), BASIC_USER_INFO, JAAS)

_TABLE = """
schema.registry.url  STRING  HIGH  !
    URLs of the schema registry, separated by commas.
auto.register.schemas  BOOLEAN  MEDIUM  true
    Whether a schema that the subject does not have is registered; otherwise writing with it fails.
use.latest.version  BOOLEAN  LOW  false
    Whether to write with the latest schema of the subject in place of the record's own. Needs
    'auto.register.schemas' to be false.
normalize.schemas  BOOLEAN  MEDIUM  false
    Whether the registry compares and stores schemas in normal form.
schemas.cache.size  INT  LOW  1000
    The number of schemas this converter keeps ready.
key.subject.name.strategy  STRING  MEDIUM  io.confluent.kafka.serializers.subject.TopicNameStrategy
    How the subject of the schemas of keys is named: TopicNameStrategy, RecordNameStrategy or
    TopicRecordNameStrategy.
value.subject.name.strategy  STRING  MEDIUM  io.confluent.kafka.serializers.subject.TopicNameStrategy
    How the subject of the schemas of values is named: TopicNameStrategy, RecordNameStrategy or
    TopicRecordNameStrategy.
basic.auth.credentials.source  STRING  MEDIUM  URL
    Where user and password come from: the URL, 'basic.auth.user.info' (USER_INFO) or
    'sasl.jaas.config' (SASL_INHERIT).
bearer.auth.credentials.source  STRING  MEDIUM  ""
    Where a bearer token comes from: 'bearer.auth.token' (STATIC_TOKEN) or an OAuth server
    (OAUTHBEARER). Empty: none is sent.
"""  # noqa: E501  one key, one line


def registry_config_def() -> ConfigDef:
    """Return a new definition of the settings of all converters with a registry."""
    strategy = LambdaValidator(
        lambda _name, value: subject_strategy(str(value)),
        "TopicNameStrategy, RecordNameStrategy or TopicRecordNameStrategy",
    )
    definition = define_table(
        converter_config_def(),
        _TABLE,
        {
            URL: NonEmptyString(),
            KEY_SUBJECT: strategy,
            VALUE_SUBJECT: strategy,
            BASIC_SOURCE: ValidString.one_of("URL", "USER_INFO", "SASL_INHERIT"),
            BEARER_SOURCE: ValidString.one_of("", "STATIC_TOKEN", "OAUTHBEARER"),
        },
    )
    for name in _SECRETS:
        define_table(definition, f"{name}  PASSWORD  MEDIUM  ~\n    Access to the registry.")
    for name in _OPTIONAL_TEXTS:
        stores = "; stores are PEM files" if "ssl" in name else ""
        define_table(definition, f"{name}  STRING  LOW  ~\n    Access to the registry{stores}.")
    return definition


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """The parsed options; `client` is for the registry's client and holds secrets."""

    client: Mapping[str, object]
    auto_register: bool
    use_latest: bool
    normalize: bool
    cache_size: int
    subject_name: SubjectName

    def __repr__(self) -> str:
        return f"RegistryOptions(auto_register={self.auto_register}, use_latest={self.use_latest})"


def registry_options(config: Mapping[str, object], *, is_key: bool) -> RegistryOptions:
    """Return the options of a parsed config; ConfigException if they contradict each other."""
    auto_register, use_latest = config[AUTO_REGISTER] is True, config[USE_LATEST] is True
    if auto_register and use_latest:
        raise ConfigException(
            f"'{USE_LATEST}' has no effect while '{AUTO_REGISTER}' is true; set that to false"
        )
    client: dict[str, object] = {"url": str(config[URL]), "cache.capacity": config[CACHE_SIZE]}
    if config["proxy"]:
        client["proxy"] = config["proxy"]
    match config[BASIC_SOURCE]:
        case "USER_INFO":
            client[BASIC_USER_INFO] = _required_secret(config, BASIC_USER_INFO)
        case "SASL_INHERIT":
            try:
                login = parse_jaas(_required_secret(config, JAAS)).options
            except ClientPropertyError as exc:
                raise ConfigException(f"Invalid client configuration: {exc}") from exc
            user_info = f"{login.get('username', '')}:{login.get('password', '')}"
            client[BASIC_USER_INFO] = user_info
    if config[BEARER_SOURCE]:
        client |= {BEARER_SOURCE: config[BEARER_SOURCE], "bearer.auth.logical.cluster": ""}
        client |= {name: config[name] for name in _BEARER_TEXTS if config[name]}
        client |= {name: _plain(config[name]) for name in _BEARER_SECRETS if config[name]}
    return RegistryOptions(
        client=client | _ssl(config),
        auto_register=auto_register,
        use_latest=use_latest,
        normalize=config[NORMALIZE] is True,
        cache_size=int(str(config[CACHE_SIZE])),
        subject_name=subject_strategy(str(config[KEY_SUBJECT if is_key else VALUE_SUBJECT])),
    )


def _ssl(config: Mapping[str, object]) -> dict[str, object]:
    found = {name: config[PREFIX + name] for name in _SSL_TEXTS if config[PREFIX + name]}
    settings = {name: value for name, value in found.items() if "store" not in name}
    for store, setting in (
        ("truststore", "ssl.ca.location"),
        ("keystore", "ssl.certificate.location"),
    ):
        location = found.get(f"ssl.{store}.location")
        if location is None:
            continue
        if str(found.get(f"ssl.{store}.type", "")).upper() != "PEM":
            raise ConfigException(
                f"'{PREFIX}ssl.{store}.location' must be a PEM file, and "
                f"'{PREFIX}ssl.{store}.type' PEM; keytool and openssl convert a Java key store"
            )
        settings.setdefault(setting, location)
    key_password = config[PREFIX + "ssl.key.password"]
    return settings | ({"ssl.key.password": _plain(key_password)} if key_password else {})


def _required_secret(config: Mapping[str, object], name: str) -> str:
    if not config[name]:
        raise ConfigException(f"'{name}' is missing, which '{BASIC_SOURCE}' asks for")
    return _plain(config[name])


def _plain(secret: object) -> str:
    assert isinstance(secret, Password)
    return secret.value


def subject_strategy(name: str) -> SubjectName:
    """Return the strategy of that class name; raise ConfigException if it is unknown."""
    found = _STRATEGIES.get(name.rpartition(".")[2])
    if found is None:
        raise ConfigException(
            f"Unknown subject name strategy {name}; there are {', '.join(sorted(_STRATEGIES))}"
        )
    return found


def _record_name(topic: str, is_key: bool, record: str | None) -> str:
    if record is None:
        part = "key" if is_key else "value"
        raise DataException(
            f"The subject name strategy needs the name of a record: the {part} of topic {topic} "
            "has no struct schema with a name"
        )
    return record


_STRATEGIES: dict[str, SubjectName] = {
    "TopicNameStrategy": lambda topic, is_key, _: f"{topic}-{'key' if is_key else 'value'}",
    "RecordNameStrategy": _record_name,
    "TopicRecordNameStrategy": lambda topic, is_key, record: (
        f"{topic}-{_record_name(topic, is_key, record)}"
    ),
}

_MODULES = {
    "avro": ("fastavro",),
    "json-schema": ("jsonschema",),
    "protobuf": ("google.protobuf.descriptor_pb2", "google.type.date_pb2", "grpc_tools.protoc"),
}


def require_extra(extra: str, converter: str) -> None:
    """Raise ConfigException, with the command that installs the extra, if a library is missing."""
    try:
        for module in ("confluent_kafka.schema_registry", *_MODULES[extra]):
            import_module(module)
    except ImportError as error:
        raise ConfigException(
            f"{converter} needs {error.name}, which is not installed; "
            f"install the extra `{extra}`: {install_command(extra)}"
        ) from error


KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"

_BY_ID, _BY_GUID = 0, 1
_ID_BYTES, _GUID_BYTES = 4, 16


@dataclass(frozen=True, slots=True)
class Frame:
    """A message in parts: its schema's id or GUID, and the rest.

    `header_rest` is the rest of the header that names the schema, None if the message names it.
    """

    schema: int | str
    body: bytes
    header_rest: bytes | None = None


def prefix(schema_id: int) -> bytes:
    """Return the bytes before the body."""
    return bytes((_BY_ID,)) + schema_id.to_bytes(_ID_BYTES, "big")


def parse(data: bytes, headers: KafkaHeaders, *, is_key: bool) -> Frame:
    """Take a message apart; raise DataException if it does not name a schema."""
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
    """Return the path of message types at the beginning of `data`, and the rest."""
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
"""Returns the body of a value other than None."""
Decode = Callable[[Frame], SchemaAndValue]
"""Returns the schema and value of a message with one schema."""

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
    """A converter of keys and values whose schemas a registry keeps.

    A format has the registry's `KIND` of its schemas, a `FORMAT` for error messages, the `EXTRA`
    of its library, and a `TABLE` of its own options with their `VALIDATORS`.
    """

    KIND: ClassVar[str]
    FORMAT: ClassVar[str]
    EXTRA: ClassVar[str]
    TABLE: ClassVar[str]
    VALIDATORS: ClassVar[Mapping[str, Validator]] = {}

    def __init__(self) -> None:
        self._is_key = False
        self._options: RegistryOptions | None = None
        self._registry: RegistryClient | None = None
        self._encoders: RecentlyUsed[tuple[str, Schema], tuple[bytes, Encode]]
        self._decoders: RecentlyUsed[int | str, Decode]
        self._encoders, self._decoders = RecentlyUsed(0), RecentlyUsed(0)
        self._last: tuple[str, Schema, bytes, Encode] | None = None

    def config(self) -> ConfigDef:
        require_extra(self.EXTRA, type(self).__name__)
        return define_table(registry_config_def(), self.TABLE, self.VALIDATORS)

    def configure(self, configs: Mapping[str, object], is_key: bool) -> None:
        config = self.config().parse(
            {**configs, CONVERTER_TYPE_CONFIG: "key" if is_key else "value"}
        )
        self._is_key = is_key
        options = self._options = registry_options(config, is_key=is_key)
        self._encoders = RecentlyUsed(options.cache_size)
        self._decoders = RecentlyUsed(options.cache_size)
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
                options, registry = self._options, self.registry
                derived = self.derived(schema)
                assert options is not None
                subject = options.subject_name(topic, self._is_key, derived.record_name)
                if options.use_latest:
                    target = registry.latest(subject)
                else:
                    target = derived.registered
                    find = registry.register if options.auto_register else registry.lookup
                    schema_id = find(subject, target, normalize=options.normalize)
                    target = replace(target, id=schema_id)
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
            registry, named = self.registry, frame.schema
            source = registry.by_id(named) if isinstance(named, int) else registry.by_guid(named)
            if source.kind != self.KIND:
                raise DataException(f"The message's schema is not {self.FORMAT} but {source.kind}")
            decode = self.decoder(source)
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
        """Return the function that writes values of `schema` in the registered schema `target`."""

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
