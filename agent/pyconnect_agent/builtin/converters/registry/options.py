"""The options of all converters with a schema registry, and what its client makes of them.

The names are those of Confluent's converters. Stores are PEM files: Java's own key store formats
are refused with the way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module

from pyconnect_agent.builtin.converters.base import converter_config_def
from pyconnect_api import (
    ConfigDef,
    ConfigException,
    ConfigType,
    DataException,
    Importance,
    LambdaValidator,
    NonEmptyString,
    Password,
    ValidString,
)
from pyconnect_api.configdef import define_table
from pyconnect_clients.errors import ClientPropertyError
from pyconnect_clients.installation import install_command
from pyconnect_clients.jaas import parse_jaas

SubjectName = Callable[[str, bool, str | None], str]
"""Makes a subject of topic, is_key and the record's full name, None if the schema has none."""


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
    """Return a new definition of what all converters with a registry understand."""
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


def define_flags(definition: ConfigDef, flags: Iterable[tuple[str, bool, str]]) -> ConfigDef:
    """Add a format's own switches: name, default, documentation."""
    for name, default, documentation in flags:
        definition.define(
            name,
            ConfigType.BOOLEAN,
            default=default,
            importance=Importance.LOW,
            documentation=documentation,
        )
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
    """Return the options of a parsed configuration; ConfigException when they contradict."""
    auto_register, use_latest = config[AUTO_REGISTER] is True, config[USE_LATEST] is True
    if auto_register and use_latest:
        raise ConfigException(
            f"'{USE_LATEST}' has no effect while '{AUTO_REGISTER}' is true; set that to false"
        )
    settings: dict[str, object] = {"url": str(config[URL]), "cache.capacity": config[CACHE_SIZE]}
    if config["proxy"]:
        settings["proxy"] = config["proxy"]
    return RegistryOptions(
        client=settings | _basic(config) | _bearer(config) | _ssl(config),
        auto_register=auto_register,
        use_latest=use_latest,
        normalize=config[NORMALIZE] is True,
        cache_size=int(str(config[CACHE_SIZE])),
        subject_name=subject_strategy(str(config[KEY_SUBJECT if is_key else VALUE_SUBJECT])),
    )


def _basic(config: Mapping[str, object]) -> dict[str, object]:
    match config[BASIC_SOURCE]:
        case "USER_INFO":
            return {BASIC_USER_INFO: _required_secret(config, BASIC_USER_INFO)}
        case "SASL_INHERIT":
            try:
                login = parse_jaas(_required_secret(config, JAAS)).options
            except ClientPropertyError as exc:
                raise ConfigException(f"Invalid client configuration: {exc}") from exc
            return {BASIC_USER_INFO: f"{login.get('username', '')}:{login.get('password', '')}"}
    return {}


def _bearer(config: Mapping[str, object]) -> dict[str, object]:
    if not config[BEARER_SOURCE]:
        return {}
    settings = {BEARER_SOURCE: config[BEARER_SOURCE], "bearer.auth.logical.cluster": ""}
    settings |= {name: config[name] for name in _BEARER_TEXTS if config[name]}
    return settings | {name: _plain(config[name]) for name in _BEARER_SECRETS if config[name]}


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
    """Return the strategy of that class name; ConfigException when there is none."""
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
    """Raise ConfigException, with the command that installs it, when a library is missing."""
    try:
        for module in ("confluent_kafka.schema_registry", *_MODULES[extra]):
            import_module(module)
    except ImportError as error:
        raise ConfigException(
            f"{converter} needs {error.name}, which is not installed; "
            f"install the extra `{extra}`: {install_command(extra)}"
        ) from error
