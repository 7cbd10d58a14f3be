"""The typed configuration of workers."""

import json
import pickle
from pathlib import Path

import pytest

from pyconnect_agent.core.config.listeners import (
    HeaderAction,
    HeaderRule,
    Listener,
    advertised_url,
    parse_header_rules,
)
from pyconnect_agent.core.config.worker_config import (
    ConnectProtocol,
    DistributedConfig,
    StandaloneConfig,
    worker_config_warnings,
)
from pyconnect_agent.core.plugin_catalog import CONNECT_VERSION, RELEASE_4_4
from pyconnect_api.errors import ConfigException
from pyconnect_clients.connect_names import Phase
from tests.support.agents.worker_properties import PROPERTIES, distributed
from tests.support.cases import cases

CONNECT_KEYS = json.loads(
    (Path(__file__).parent / "connect_4_3_1_worker_keys.json").read_text(encoding="utf-8")
)
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
ON_PURPOSE = {"bootstrap.servers"}
"""Keys with another default than Connect's: the one before Connect 4.2."""


@pytest.mark.parametrize("key", CONNECT_KEYS, ids=lambda key: str(key[0]))
def test_every_key_of_connect_is_known_with_its_type_and_default(key: list[object]) -> None:
    """The properties of a Java worker have the same meaning, types and defaults here."""
    name, type_name, required, default, importance, _ = key
    ours = DistributedConfig.definition().keys[str(name)].to_json()
    assert (ours["type"], ours["importance"]) == (type_name, importance)
    if name not in ON_PURPOSE:
        assert (ours["required"], ours["default_value"]) == (required, default)


def test_values_are_typed_and_named_after_their_keys() -> None:
    """Durations are numbers of milliseconds, choices are enums, lists are tuples."""
    config = distributed(
        exactly_once_source_support="Preparing",
        connect_protocol="eager",
        offset_flush_interval_ms="10",
        bootstrap_servers="a:1, b:2",
    )
    assert config.exactly_once_source_support is Phase.PREPARING
    assert config.connect_protocol is ConnectProtocol.EAGER
    assert config.offset_flush_interval_ms == 10
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert not config.exactly_once_source_enabled
    assert distributed(exactly_once_source_support="enabled").exactly_once_source_enabled


def test_configurations_are_pickled_and_printed_without_secrets() -> None:
    """Child processes get a config pickled; its text form has no original properties."""
    config = distributed(ssl_key_password="hunter22")
    assert "hunter22" not in repr(config)
    assert config.originals["ssl.key.password"] == "hunter22"
    assert pickle.loads(pickle.dumps(distributed())) == distributed()


@cases("name", "group.id", "key.converter", "config.storage.topic")
def test_required_keys_must_be_set(name: str) -> None:
    """The error of a missing key has Kafka's text."""
    properties = {key: value for key, value in PROPERTIES.items() if key != name}
    with pytest.raises(ConfigException) as refused:
        DistributedConfig.parse(properties)
    expected = f'Missing required configuration "{name}" which has no default value.'
    assert str(refused.value) == expected


@cases(
    "changes, message",
    (
        {"exactly_once_source_support": "on"},
        (
            "Invalid value on for configuration exactly.once.source.support: "
            "String must be one of (case insensitive): DISABLED, ENABLED, PREPARING"
        ),
    ),
    (
        {"inter_worker_signature_algorithm": "HmacSHA1"},
        (
            "Invalid value HmacSHA1 for configuration inter.worker.signature.algorithm: "
            "Signature algorithm must be present in inter.worker.verification.algorithms list"
        ),
    ),
    (
        {"offset_storage_partitions": "0"},
        (
            "Invalid value 0 for configuration offset.storage.partitions: "
            "Number of partitions must be positive, or -1 to use the broker's default"
        ),
    ),
    (
        {"inter_worker_verification_algorithms": ""},
        (
            "Invalid value [] for configuration inter.worker.verification.algorithms: "
            "At least one signature verification algorithm must be provided"
        ),
    ),
    (
        {"listeners": "localhost:8083"},
        "Listener doesn't have the right format (protocol://hostname:port).",
    ),
    ({"listeners": "ftp://localhost:8083"}, 'Listener protocol must be either "http" or "https".'),
    ({"listeners": "http://:1,,"}, "Empty URL found when parsing listeners list."),
    ({"admin_listeners": "http://:1,"}, "Empty URL found when parsing admin.listeners list."),
    ({"bootstrap_servers": "a:1,b"}, "Invalid url in bootstrap.servers: b"),
    ({"bootstrap_servers": "a:b"}, "Invalid url in bootstrap.servers: a:b"),
    ({"bootstrap_servers": "a:65536"}, "Invalid port in bootstrap.servers: a:65536"),
    (
        {"inter_worker_key_size": "39"},
        (
            "Unable to create key generator with algorithm HmacSHA256 and key size 39: "
            "Key length must be at least 40 bits"
        ),
    ),
    (
        {"status_storage_topic": " "},
        ("Invalid value  for configuration status.storage.topic: Must be specified"),
    ),
    ({"group_id": " "}, "Invalid value  for configuration group.id: Must be specified"),
    (
        {"session_timeout_ms": "3000", "heartbeat_interval_ms": "3000"},
        (
            "Invalid value 3000 for configuration heartbeat.interval.ms: "
            "Heartbeat must be set lower than the session timeout (session.timeout.ms 3000)"
        ),
    ),
    (
        {"response_http_headers_config": "set"},
        (
            "Invalid format of header config 'set'. "
            "Expected: '[action] [header name]:[header value]'"
        ),
    ),
    (
        {"response_http_headers_config": "put A:b"},
        ("Invalid header config action: 'put'. Expected one of [set, add, setDate, addDate]"),
    ),
    (
        {"response_http_headers_config": "set A"},
        (
            "Invalid format of header name and header value pair 'A'. "
            "Expected: '[header name]:[header value]'"
        ),
    ),
    (
        {"response_http_headers_config": "set A b:c"},
        "Invalid header name 'A b'. The '[header name]' cannot contain whitespace",
    ),
    (
        {"response_http_headers_config": "set A(b):c"},
        "Invalid header name 'A(b)'. It may hold letters, digits and !#$%&'*+-.^_`|~ only",
    ),
)
def test_invalid_values_are_refused(changes: dict[str, str], message: str) -> None:
    """A worker with an invalid value does not start."""
    with pytest.raises(ConfigException) as refused:
        distributed(**changes)
    assert str(refused.value) == message


def test_addresses_of_brokers_are_of_any_form_that_kafka_knows() -> None:
    """Names and addresses of both IP versions are valid, also behind a protocol."""
    text = "a-b.c_d:1,127.0.0.1:2,[::1]:3,SSL://[fe80::1%eth0]:65535"
    assert distributed(bootstrap_servers=text).bootstrap_servers == tuple(text.split(","))


def test_only_converters_are_looked_up() -> None:
    """A worker refuses unknown converters; other class keys name classes of Java clients."""

    def resolve(name: str) -> object:
        raise LookupError(name)

    with pytest.raises(ConfigException, match=r"configuration key\.converter: Class .* could not"):
        DistributedConfig.parse(PROPERTIES, resolve)
    config = DistributedConfig.parse(
        PROPERTIES, {PROPERTIES["key.converter"]: 1, SIMPLE: 2}.__getitem__
    )
    assert config.header_converter == SIMPLE


def test_a_standalone_worker_needs_an_offsets_file() -> None:
    """A standalone worker needs an offsets file and no key of distributed mode."""
    properties = {"key.converter": "K", "value.converter": "V"}
    with pytest.raises(ConfigException, match=r"offset\.storage\.file\.filename"):
        StandaloneConfig.parse(properties)
    config = StandaloneConfig.parse(properties | {"offset.storage.file.filename": "/tmp/o"})
    assert config.offset_storage_file_filename == "/tmp/o"
    assert not config.exactly_once_source_enabled


def test_properties_without_effect_are_named() -> None:
    """Unused properties are reported, but not prefixed and client settings, which are passed on."""
    config = DistributedConfig.parse(
        PROPERTIES
        | {
            "producer.acks": "all",
            "isolation.level": "read_committed",
            "config.storage.min.insync.replicas": "2",
            "config.storage.partitions": "3",
            "offset.storage.cleanup.policy": "delete",
            "internal.key.converter": "J",
            "typo": "x",
        }
    )
    warnings = "\n".join(worker_config_warnings(config))
    assert "config topic partitions is always 1" in warnings
    assert "'offset.storage.cleanup.policy=delete'" in warnings
    assert "'internal.key.converter'" in warnings
    assert "'typo'" in warnings
    assert len(worker_config_warnings(config)) == 4


IDLE = "is lower than rebalance.timeout.ms"


@cases(
    "given, warning",
    ({"security.protocol": "SASL_SSL"}, "producer. and consumer."),
    ({"security.protocol": "SSL", "producer.security.protocol": "SSL"}, "prefix consumer."),
    ({"security.protocol": "plaintext"}, None),
    ({}, None),
    ({"connections.max.idle.ms": "59999", "rebalance.timeout.ms": "60000"}, IDLE),
    ({"connections.max.idle.ms": "60000", "rebalance.timeout.ms": "60000"}, None),
    ({"connections.max.idle.ms": "-1", "rebalance.timeout.ms": "60000"}, None),
)
def test_insecure_clients_and_short_idle_connections_are_reported(
    given: dict[str, str], warning: str | None
) -> None:
    """Clients without the worker's security and short idle times are reported before tasks hang.

    Connect 4.4 reports connections that are closed sooner than a rebalance may end.
    """
    warnings = worker_config_warnings(DistributedConfig.parse({**PROPERTIES, **given}))
    assert [warning in text for text in warnings if warning] == [True] * bool(warning)
    assert len(warnings) == bool(warning)


def test_a_release_that_no_worker_speaks_is_refused() -> None:
    """A worker accepts only releases that it can follow, and the default is one of them."""
    assert distributed().agent_connect_release == CONNECT_VERSION
    assert distributed(agent_connect_release=RELEASE_4_4).agent_connect_release == RELEASE_4_4
    with pytest.raises(ConfigException, match=r"agent\.connect\.release: .*4\.3\.1, 4\.4\.0"):
        distributed(agent_connect_release="4.5.0")


def test_settings_of_internal_topics_are_the_rest_below_their_prefix() -> None:
    """Topic settings do not include the cleanup policy and the keys that the worker uses itself."""
    config = DistributedConfig.parse(
        PROPERTIES
        | {
            "config.storage.replication.factor": "1",
            "config.storage.cleanup.policy": "delete",
            "config.storage.max.message.bytes": "9",
        }
    )
    assert config.storage_topic_settings("config") == {"max.message.bytes": "9"}


def test_ids_start_with_the_group() -> None:
    """Client ids contain the group; the leader's transactional id is Kafka's or configured."""
    assert distributed().client_id_base == "jb-"
    assert distributed(client_id="w1").client_id_base == "jb-w1-"
    assert distributed().leader_transactional_id == "connect-cluster-jb"
    key = "agent.leader.transactional.id"
    own = distributed(**{key: "own"}, exactly_once_source_support="preparing")
    assert own.leader_transactional_id == "own"
    assert (own.leader_ids.told, own.leader_ids.fencing) == ("own", True)
    assert not distributed(**{key: "own"}).leader_ids.fencing
    assert distributed(**{key: "connect-cluster-jb"}).leader_ids.told is None
    assert distributed().leader_ids.told is None
    with pytest.raises(ConfigException, match="String may not be empty"):
        distributed(**{key: ""})


def test_prefixed_tls_settings_replace_all_unprefixed_ones() -> None:
    """If a key starts with `listeners.https.`, all unprefixed TLS keys are ignored."""
    own = DistributedConfig.parse(
        PROPERTIES | {"ssl.key.password": "a", "listeners.https.ssl.keystore.location": "/k.p12"}
    )
    assert own.rest_ssl()["ssl.keystore.location"] == "/k.p12"
    assert own.rest_ssl()["ssl.key.password"] is None
    # Admin listeners have a prefix of their own; without such keys the unprefixed ones count.
    assert own.rest_ssl("admin.listeners.https.")["ssl.keystore.location"] is None
    admin = PROPERTIES | {"admin.listeners.https.ssl.keystore.location": "/admin.p12"}
    parsed = DistributedConfig.parse(admin).rest_ssl("admin.listeners.https.")
    assert parsed["ssl.keystore.location"] == "/admin.p12"
    shared = DistributedConfig.parse(PROPERTIES | {"ssl.client.auth": "required"})
    assert shared.rest_ssl()["ssl.client.auth"] == "required"


@cases(
    "text, listener",
    ("HTTP://:8083", Listener(protocol="http", host="", port=8083)),
    ("https://[::1]:0", Listener(protocol="https", host="::1", port=0)),
    ("http://host-1.a:80", Listener(protocol="http", host="host-1.a", port=80)),
)
def test_listeners_are_parsed(text: str, listener: Listener) -> None:
    """The protocol of a listener ignores case, and IPv6 addresses are in brackets."""
    assert Listener.parse(text) == listener


HTTP = Listener(protocol="http", host="", port=8083)
HTTPS = Listener(protocol="https", host="::1", port=8443)


def test_the_advertised_url_prefers_http_and_the_given_parts() -> None:
    """Missing parts of the advertised URL come from the first listener of its protocol."""
    assert advertised_url([HTTPS, HTTP], default_host="me") == "http://me:8083/"
    assert advertised_url([HTTPS], default_host="me") == "https://[::1]:8443/"
    expected = "https://[::1]:8443/"
    assert advertised_url([HTTP, HTTPS], default_host="me", protocol="HTTPS") == expected
    assert advertised_url([HTTP], default_host="me", host_name="you", port=1) == "http://you:1/"
    with pytest.raises(ConfigException, match="No listener has the advertised protocol https"):
        advertised_url([HTTP], default_host="me", protocol="https")


def test_header_rules_are_parsed() -> None:
    """Rules with commas are quoted, actions ignore case, and values must be valid in HTTP."""
    rules = parse_header_rules(
        'set X-A: b, "ADD Cache-Control:no-cache, no-store", addDate E:60000'
    )
    assert rules == (
        HeaderRule(action=HeaderAction.SET, name="X-A", value="b"),
        HeaderRule(action=HeaderAction.ADD, name="Cache-Control", value="no-cache, no-store"),
        HeaderRule(action=HeaderAction.ADD_DATE, name="E", value="60000"),
    )
    assert parse_header_rules("  ") == ()
    assert parse_header_rules("set A: é€\r\nB=1")[0].value == "é?  B=1"
