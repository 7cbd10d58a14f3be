"""Configurations of Kafka clients: layers of Java's keys, and the keys of other libraries."""

import pytest

from pyconnect_agent.core.clients.configs import (
    ClientConfig,
    InternalTopic,
    connector_admin,
    connector_producer,
    exactly_once_producer,
    fencing_producer,
    internal_consumer,
    internal_producer,
    kafka_python_config,
    leader_producer,
    sink_consumer,
    source_offsets_consumer,
)
from pyconnect_agent.core.clients.librdkafka import client_security, translate
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_api import ConfigException
from pyconnect_clients.connect_names import sink_group_id
from pyconnect_clients.security import PasswordLogin, PemFile, Protocol, Tls
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases


def test_overrides_are_the_last_layer_and_may_be_forbidden() -> None:
    """Overrides replace the framework's and the worker's values, if the policy allows them."""
    config = connector_producer(
        distributed(producer_linger_ms="5", producer_acks="1"),
        {"producer.override.acks": "0"},
        "id",
    ).java_config
    assert (config["acks"], config["linger.ms"], config["client.id"]) == ("0", "5", "id")
    assert config["max.in.flight.requests.per.connection"] == "1"
    strict = distributed(connector_client_config_override_policy="None")
    with pytest.raises(ConfigException, match="Client Config Overrides not allowed"):
        connector_producer(strict, {"producer.override.acks": "0"}, "i")


def test_clients_inherit_brokers_and_hide_secrets() -> None:
    """Only admin clients inherit security from unprefixed keys, and no text form has a secret."""
    secured = distributed(
        bootstrap_servers="b:1", security_protocol="SSL", producer_security_protocol="SASL_SSL"
    )
    assert connector_producer(secured, {}, "i").java_config["security.protocol"] == "SASL_SSL"
    assert "security.protocol" not in sink_consumer(secured, "c", {}, "i").java_config
    assert connector_admin(secured, {}, "i").java_config["security.protocol"] == "SSL"
    assert connector_producer(secured, {}, "i").java_config["bootstrap.servers"] == "b:1"
    config = connector_producer(
        distributed(), {"producer.override.sasl.jaas.config": "hunter22"}, "i"
    )
    assert "hunter22" not in repr(config)
    built = translate(
        {"ssl.key.password": "hunter22", "security.protocol": "SSL"}, ClientKind.PRODUCER
    )
    assert "hunter22" not in repr(built)


def test_internal_producers_are_never_transactional_by_accident() -> None:
    """A transactional id in the worker's properties does not reach internal producers."""
    for topic in InternalTopic:
        config = internal_producer(distributed(transactional_id="x"), topic).java_config
        assert "transactional.id" not in config
        assert config["enable.idempotence"] == "false"
    statuses = internal_producer(distributed(), InternalTopic.STATUSES).java_config
    assert statuses["retries"] == "0"
    assert statuses["client.id"] == "jb-statuses"


def test_the_leaders_transactional_id_has_a_key_of_its_own() -> None:
    """`transactional.id` is ignored with a warning; the agent's own key sets the id."""
    config = leader_producer(distributed(transactional_id="mine"))
    assert config.java_config["transactional.id"] == "connect-cluster-jb"
    assert config.warnings == (
        (
            "The value 'mine' for the 'transactional.id' property will be ignored as it cannot be "
            "overridden for the worker's config topic producer when exactly-once source support is "
            "enabled or in preparation to be enabled. The value 'connect-cluster-jb' will be used "
            "instead."
        ),
    )
    config = leader_producer(distributed(agent_leader_transactional_id="own"))
    assert (config.java_config["transactional.id"], config.warnings) == ("own", ())
    both = leader_producer(
        distributed(agent_leader_transactional_id="own", transactional_id="mine")
    )
    assert both.java_config["transactional.id"] == "own"
    [warning] = both.warnings
    assert "The value 'mine' for the 'transactional.id' property will be ignored" in warning


@cases(
    "support, given, level",
    ("disabled", None, "read_uncommitted"),
    ("disabled", "read_committed", "read_committed"),
    ("preparing", None, "read_uncommitted"),
    ("enabled", None, "read_committed"),
    ("enabled", "read_uncommitted", "read_committed"),
    ("enabled", "READ_COMMITTED", "read_committed"),
)
def test_config_and_offsets_topics_are_read_committed_only_when_enabled(
    support: str, given: str | None, level: str
) -> None:
    """Workers compare offsets of these topics, so aborted records count as for Apache's workers."""
    properties = {"exactly_once_source_support": support}
    if given is not None:
        properties["isolation_level"] = given
    for topic in (InternalTopic.CONFIGS, InternalTopic.OFFSETS):
        config = internal_consumer(distributed(**properties), topic)
        assert config.build().properties["isolation.level"] == level
        assert bool(config.warnings) == (given == "read_uncommitted" and support == "enabled")
    statuses = internal_consumer(distributed(**properties), InternalTopic.STATUSES).java_config
    assert statuses.get("isolation.level") == given


def test_exactly_once_producers_are_idempotent_with_any_setting_of_the_user() -> None:
    """A user's other value is replaced with a warning; a missing one gives no warning."""
    silent = exactly_once_producer(distributed(), {}, "i", "jb-c-0")
    assert silent.java_config["transactional.id"] == "jb-c-0"
    assert silent.java_config["enable.idempotence"] == "true"
    assert silent.warnings == ()
    loud = exactly_once_producer(
        distributed(), {"producer.override.enable.idempotence": "false"}, "i", "jb-c-0"
    )
    assert loud.java_config["enable.idempotence"] == "true"
    assert "for connectors when exactly-once source support is enabled" in loud.warnings[0]


def test_source_offsets_are_read_committed_unless_chosen_otherwise() -> None:
    """With exactly-once support, an override of the isolation level has no effect."""
    override = {"consumer.override.isolation.level": "read_uncommitted"}
    chosen = source_offsets_consumer(distributed(), "c", override, "i")
    assert chosen.java_config["isolation.level"] == "read_uncommitted"
    enabled = distributed(exactly_once_source_support="enabled")
    forced = source_offsets_consumer(enabled, "c", override, "i")
    assert forced.java_config["isolation.level"] == "read_committed"
    assert len(forced.warnings) == 1


def test_a_sinks_group_may_be_overridden() -> None:
    """A sink's consumer and the offset operations use the same group."""
    cases = [
        (distributed(), {}, "connect-c"),
        (distributed(consumer_group_id="w"), {}, "w"),
        (distributed(consumer_group_id="w"), {"consumer.override.group.id": "o"}, "o"),
    ]
    for configured, config, group in cases:
        assert sink_group_id("c", config, configured.originals) == group
        assert sink_consumer(configured, "c", config, "i").java_config["group.id"] == group


def test_fencing_connects_as_the_connectors_admin_client() -> None:
    """The fencing producer has the brokers and the security of the connector's admin client."""
    config = fencing_producer(
        distributed(security_protocol="SSL", retries="3"),
        {"admin.override.bootstrap.servers": "other:1", "producer.override.acks": "1"},
        "i",
        "jb-c-0",
    )
    assert config.kind is ClientKind.PRODUCER
    assert config.java_config["bootstrap.servers"] == "other:1"
    assert config.java_config["security.protocol"] == "SSL"
    assert config.java_config["acks"] == "all"


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"


@cases("url", "https://own/token", "https://listed/token")
def test_a_connector_has_tokens_fetched_from_urls_of_the_worker(url: str) -> None:
    """The URL may be that of a worker's client or be in the worker's list."""
    allowing = distributed(
        **{f"producer.{TOKEN_URL}": "https://own/token"},
        **{"agent.oauthbearer.allowed.urls": "https://listed/token"},
    )
    overrides = {f"producer.override.{TOKEN_URL}": url}
    assert connector_producer(allowing, overrides, "c").java_config[TOKEN_URL] == url


@cases("url", "file:///etc/shadow", "http://169.254.169.254/", "https://own/")
def test_a_connector_cannot_have_other_urls_read(url: str) -> None:
    """The error names the worker's key that can allow the URL."""
    strict = distributed(**{TOKEN_URL: "https://own/token"})
    overrides = {f"producer.override.{TOKEN_URL}": url}
    with pytest.raises(ConfigException, match=r"agent\.oauthbearer\.allowed\.urls"):
        connector_producer(strict, overrides, "c")


def test_kafka_python_gets_the_same_network_and_login() -> None:
    """kafka-python gets network settings as its arguments, and security as a separate value."""
    worker_properties = dict(
        distributed(bootstrap_servers="a:1,b:2", request_timeout_ms="50000").originals
    )
    config = kafka_python_config(
        worker_properties
        | {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": 'o.PlainLoginModule required username="a" password="b c;\\"";',
            "ssl.truststore.location": "/ca.pem",
            "send.buffer.bytes": "-1",
            "receive.buffer.bytes": "100",
        },
        client_id="me",
    )
    assert config.arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "request_timeout_ms": 50000,
        "reconnect_backoff_max_ms": 1000,
        "receive_buffer_bytes": 100,
    }
    assert config.security.tls == Tls(trust=PemFile(location="/ca.pem"))
    assert config.security.sasl is not None
    assert config.security.sasl.login == PasswordLogin(username="a", password='b c;"')
    assert "b c" not in repr(config)


def test_missing_settings_have_connects_defaults() -> None:
    """kafka-python's pause before a reconnection would be longer than a session."""
    arguments = kafka_python_config({"bootstrap.servers": "a:1"}, client_id="me").arguments
    assert (arguments["reconnect_backoff_max_ms"], arguments["request_timeout_ms"]) == (1000, 40000)
    given = {"reconnect.backoff.max.ms": "7"}
    assert kafka_python_config(given, client_id="me").arguments["reconnect_backoff_max_ms"] == 7


PLAIN = 'o.PlainLoginModule required username="u" password="hunter2";'


def test_unusable_settings_are_errors_of_the_configuration() -> None:
    """A worker with such settings does not start, and a task fails."""
    broken = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.jaas.config": "x"}
    with pytest.raises(ConfigException, match=r"configuration: sasl\.jaas\.config: .*hidden"):
        client_security(broken)
    with pytest.raises(ConfigException, match="hidden"):
        translate(broken, ClientKind.ADMIN)


def test_settings_without_effect_are_warned_of_once() -> None:
    """Settings without effect give one warning each, but not if they equal Java's default."""
    java = {"ssl.protocol": "TLSv1.3", "ssl.cipher.suites": "X", "sasl.mechansim": "PLAIN"}
    security, warnings = client_security(java)
    assert security.protocol is Protocol.PLAINTEXT
    assert warnings == [
        "The client setting 'ssl.cipher.suites' has no effect in this worker",
        "The client setting 'sasl.mechansim' has no effect in this worker",
    ]
    assert list(translate(java, ClientKind.ADMIN).warnings) == warnings


def test_a_client_gets_its_security_beside_everything_else() -> None:
    """Key stores are passed on by name, because core reads no files."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": PLAIN,
        "ssl.truststore.location": "/t.jks",
        "client.id": "c",
    }
    built = translate(java, ClientKind.ADMIN)
    expected = {
        "client.id": "c",
        "security.protocol": "sasl_ssl",
        "sasl.username": "u",
        "sasl.password": "hunter2",
        "ssl.truststore.location": "/t.jks",
    }
    assert {name: built.properties.get(name) for name in expected} == expected
    assert "sasl.jaas.config" not in built.properties
    assert "hunter2" not in repr(built)


PRODUCER, CONSUMER, ADMIN = ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN


@cases(
    "kind, java, librdkafka",
    (PRODUCER, {"delivery.timeout.ms": "2147483647"}, {"delivery.timeout.ms": "0"}),
    (PRODUCER, {"max.request.size": "5000000"}, {"message.max.bytes": "5000000"}),
    (PRODUCER, {"buffer.memory": "33554432"}, {"queue.buffering.max.kbytes": "32768"}),
    (
        PRODUCER,
        {"compression.type": "zstd", "compression.zstd.level": "7"},
        {"compression.type": "zstd", "compression.level": "7"},
    ),
    (PRODUCER, {"partitioner.ignore.keys": "true"}, {"partitioner": "random"}),
    (CONSUMER, {"fetch.max.wait.ms": "100"}, {"fetch.wait.max.ms": "100"}),
    (CONSUMER, {"auto.offset.reset": "none"}, {"auto.offset.reset": "error"}),
    (
        CONSUMER,
        {"auto.offset.reset": "by_duration:PT1H"},
        {"auto.offset.reset": "by_duration:3600000"},
    ),
    (
        CONSUMER,
        {"auto.offset.reset": "By_Duration:p1dT-1h2m3.5s"},
        {"auto.offset.reset": "by_duration:82923500"},
    ),
    (
        CONSUMER,
        {
            "partition.assignment.strategy": (
                "org.apache.kafka.clients.consumer.RangeAssignor, "
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
            )
        },
        {"partition.assignment.strategy": "range"},
    ),
    (ADMIN, {"send.buffer.bytes": "-1"}, {"socket.send.buffer.bytes": "0"}),
    (ADMIN, {"request.timeout.ms": "40000"}, {"socket.timeout.ms": "40000"}),
)
def test_settings_are_put_into_librdkafkas_words(
    kind: ClientKind, java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """The settings keep their meaning and give no warning."""
    built = translate(java, kind)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka
    assert built.warnings == ()


def test_keys_are_placed_as_java_places_them() -> None:
    """Java workers look for offsets in the partition that Java's partitioner chooses."""
    assert translate({}, PRODUCER).properties["partitioner"] == "murmur2_random"


def test_transactional_producers_have_no_longer_limit_than_their_transaction() -> None:
    """librdkafka refuses delivery and socket timeouts above the transaction's timeout."""
    base = {"transactional.id": "t", "enable.idempotence": "true"}
    built = translate(base | {"delivery.timeout.ms": "2147483647"}, PRODUCER).properties
    assert "delivery.timeout.ms" not in built
    short = translate(
        base | {"transaction.timeout.ms": "10000", "request.timeout.ms": "30000"}, PRODUCER
    ).properties
    assert short["socket.timeout.ms"] == "10000"
    assert (
        translate(base | {"delivery.timeout.ms": "5000"}, PRODUCER).properties[
            "delivery.timeout.ms"
        ]
        == "5000"
    )


def test_the_caller_adds_and_keeps_what_librdkafka_does_not_know() -> None:
    """Limits are returned to the caller, and Java's largest number means no limit."""
    built = translate({"max.poll.records": "7", "max.block.ms": "9223372036854775807"}, CONSUMER)
    assert built.max_poll_records == 7
    assert built.max_block_ms is None
    assert not {"max.poll.records", "max.block.ms"} & set(built.properties)
    config = ClientConfig(kind=CONSUMER, java_config={"group.id": "g"})
    assert config.build({"enable.partition.eof": "true"}).properties["enable.partition.eof"] == (
        "true"
    )


@cases(
    "java, part",
    ({"no.such.setting": "1"}, "'no.such.setting' is unknown"),
    ({"interceptor.classes": "a.B"}, "'interceptor.classes' has no effect"),
    ({"linger.ms": "1000000"}, "900000 is used"),
    ({"partitioner.class": "a.Mine"}, "The partitioner a.Mine is not available"),
)
def test_unsupported_settings_give_a_warning(java: dict[str, str], part: str) -> None:
    """A setting that librdkafka lacks or limits gives a warning with its name."""
    (warning,) = translate(java, PRODUCER).warnings
    assert part in warning


def test_values_of_the_wrong_type_are_refused() -> None:
    """A wrong value has Kafka's text; settings of other kinds of clients are dropped silently."""
    with pytest.raises(ConfigException, match=r"configuration linger\.ms: Not a number"):
        translate({"linger.ms": "soon"}, PRODUCER)
    assert translate({"fetch.min.bytes": "1"}, PRODUCER).warnings == ()
    assert "fetch.min.bytes" not in translate({"fetch.min.bytes": "1"}, PRODUCER).properties


@cases("text", "", "P", "PT", "1h", "P1Y", "P1DT", "-PT1S", "PT-1S")
def test_a_duration_that_java_refuses_is_refused(text: str) -> None:
    """A wrong duration would make a consumer start at another position."""
    with pytest.raises(ConfigException, match="by_duration offset reset strategy"):
        translate({"auto.offset.reset": f"by_duration:{text}"}, CONSUMER)
