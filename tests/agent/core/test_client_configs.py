"""Client configurations, in Java's keys and in librdkafka's."""

from __future__ import annotations

import pytest

from pyconnect_agent.core.client_configs import (
    ClientConfig,
    InternalTopic,
    connector_admin,
    connector_producer,
    exactly_once_producer,
    fencing_producer,
    internal_consumer,
    internal_producer,
    leader_producer,
    sink_consumer,
    sink_group_id,
    source_offsets_consumer,
)
from pyconnect_agent.core.client_keys import ClientKind
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_agent.core.kafka_python_config import kafka_python_config
from pyconnect_agent.core.librdkafka_config import translate
from pyconnect_api import ConfigException
from tests.support.worker_properties import PROPERTIES, distributed


def worker(**properties: str) -> DistributedConfig:
    """Return a worker's configuration; two underscores in names stand for a dot."""
    changed = {name.replace("__", "."): value for name, value in properties.items()}
    return DistributedConfig.parse(PROPERTIES | changed)


def test_later_layers_win() -> None:
    """Framework, then the worker's `producer.`, then the connector's override."""
    config = connector_producer(
        worker(producer__linger__ms="5", producer__acks="1"), {"producer.override.acks": "0"}, "id"
    ).java_config
    assert (config["acks"], config["linger.ms"], config["client.id"]) == ("0", "5", "id")
    assert config["max.in.flight.requests.per.connection"] == "1"


def test_connector_clients_inherit_only_the_brokers() -> None:
    """Security of the worker itself is not theirs; admin clients inherit it all."""
    secured = worker(
        bootstrap__servers="b:1", security__protocol="SSL", producer__security__protocol="SASL_SSL"
    )
    assert connector_producer(secured, {}, "i").java_config["security.protocol"] == "SASL_SSL"
    assert "security.protocol" not in sink_consumer(secured, "c", {}, "i").java_config
    assert connector_admin(secured, {}, "i").java_config["security.protocol"] == "SSL"
    assert connector_producer(secured, {}, "i").java_config["bootstrap.servers"] == "b:1"


def test_a_forbidden_override_stops_the_client() -> None:
    """The policy counts at start too."""
    strict = worker(connector__client__config__override__policy="None")
    with pytest.raises(ConfigException, match="Client Config Overrides not allowed"):
        connector_producer(strict, {"producer.override.acks": "0"}, "i")


def test_internal_producers_are_never_transactional_by_accident() -> None:
    """A worker-wide transactional id is taken out."""
    for topic in InternalTopic:
        config = internal_producer(worker(transactional__id="x"), topic).java_config
        assert "transactional.id" not in config
        assert config["enable.idempotence"] == "false"
    statuses = internal_producer(worker(), InternalTopic.STATUSES).java_config
    assert statuses["retries"] == "0"
    assert statuses["client.id"] == "jb-statuses"


def test_the_leaders_transactional_id_cannot_be_changed() -> None:
    """Another value is replaced, and the operator told."""
    config = leader_producer(worker(transactional__id="mine"))
    assert config.java_config["transactional.id"] == "connect-cluster-jb"
    assert config.warnings == (
        (
            "The value 'mine' for the 'transactional.id' property will be ignored as it cannot be "
            "overridden for the worker's config topic producer when exactly-once source support is "
            "enabled or in preparation to be enabled. The value 'connect-cluster-jb' will be used "
            "instead."
        ),
    )


def test_the_agents_own_key_names_the_leaders_transactional_id() -> None:
    """A top-level `transactional.id` stays ignored, with the same warning."""
    config = leader_producer(worker(agent__leader__transactional__id="own"))
    assert (config.java_config["transactional.id"], config.warnings) == ("own", ())
    both = leader_producer(worker(agent__leader__transactional__id="own", transactional__id="mine"))
    assert both.java_config["transactional.id"] == "own"
    [warning] = both.warnings
    assert "The value 'mine' for the 'transactional.id' property will be ignored" in warning


@pytest.mark.parametrize(
    ("support", "given", "level"),
    [
        ("disabled", None, "read_uncommitted"),
        ("disabled", "read_committed", "read_committed"),
        ("preparing", None, "read_uncommitted"),
        ("enabled", None, "read_committed"),
        ("enabled", "read_uncommitted", "read_committed"),
        ("enabled", "READ_COMMITTED", "read_committed"),
    ],
)
def test_config_and_offsets_topics_are_read_committed_only_when_enabled(
    support: str, given: str | None, level: str
) -> None:
    """As Apache's workers read them: the offsets they compare count aborted records otherwise."""
    properties = {"exactly__once__source__support": support}
    if given is not None:
        properties["isolation__level"] = given
    for topic in (InternalTopic.CONFIGS, InternalTopic.OFFSETS):
        config = internal_consumer(worker(**properties), topic)
        assert config.build().properties["isolation.level"] == level
        assert bool(config.warnings) == (given == "read_uncommitted" and support == "enabled")
    statuses = internal_consumer(worker(**properties), InternalTopic.STATUSES).java_config
    assert statuses.get("isolation.level") == given


def test_exactly_once_producers_are_idempotent_whatever_the_user_says() -> None:
    """A differing value is replaced with a warning; none is no reason for one."""
    silent = exactly_once_producer(worker(), {}, "i", "jb-c-0")
    assert silent.java_config["transactional.id"] == "jb-c-0"
    assert silent.java_config["enable.idempotence"] == "true"
    assert silent.warnings == ()
    loud = exactly_once_producer(
        worker(), {"producer.override.enable.idempotence": "false"}, "i", "jb-c-0"
    )
    assert loud.java_config["enable.idempotence"] == "true"
    assert "for connectors when exactly-once source support is enabled" in loud.warnings[0]


def test_source_offsets_are_read_committed_unless_chosen_otherwise() -> None:
    """With exactly-once support there is no choice."""
    override = {"consumer.override.isolation.level": "read_uncommitted"}
    chosen = source_offsets_consumer(worker(), "c", override, "i")
    assert chosen.java_config["isolation.level"] == "read_uncommitted"
    enabled = worker(exactly__once__source__support="enabled")
    forced = source_offsets_consumer(enabled, "c", override, "i")
    assert forced.java_config["isolation.level"] == "read_committed"
    assert len(forced.warnings) == 1


def test_a_sinks_group_may_be_overridden() -> None:
    """Offset operations use the same group as the consumer."""
    cases = [
        (worker(), {}, "connect-c"),
        (worker(consumer__group__id="w"), {}, "w"),
        (worker(consumer__group__id="w"), {"consumer.override.group.id": "o"}, "o"),
    ]
    for configured, config, group in cases:
        assert sink_group_id(configured, "c", config) == group
        assert sink_consumer(configured, "c", config, "i").java_config["group.id"] == group


def test_fencing_connects_as_the_connectors_admin_client() -> None:
    """Its brokers and its principal, another kind of client."""
    config = fencing_producer(
        worker(security__protocol="SSL", retries="3"),
        {"admin.override.bootstrap.servers": "other:1", "producer.override.acks": "1"},
        "i",
        "jb-c-0",
    )
    assert config.kind is ClientKind.PRODUCER
    assert config.java_config["bootstrap.servers"] == "other:1"
    assert config.java_config["security.protocol"] == "SSL"
    assert config.java_config["acks"] == "all"


def test_secrets_do_not_show_in_the_text_form() -> None:
    """Neither before nor after translation."""
    config = connector_producer(worker(), {"producer.override.sasl.jaas.config": "hunter22"}, "i")
    assert "hunter22" not in repr(config)
    built = translate({"ssl.key.password": "hunter22", "security.protocol": "SSL"}, PRODUCER)
    assert "hunter22" not in repr(built)


PRODUCER, CONSUMER, ADMIN = ClientKind.PRODUCER, ClientKind.CONSUMER, ClientKind.ADMIN


@pytest.mark.parametrize(
    ("kind", "java", "librdkafka"),
    [
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
    ],
)
def test_settings_are_put_into_librdkafkas_words(
    kind: ClientKind, java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """The meaning stays, nothing is warned about."""
    built = translate(java, kind)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka
    assert built.warnings == ()


def test_keys_are_placed_as_java_places_them() -> None:
    """Otherwise a Java worker would look for offsets in another partition."""
    assert translate({}, PRODUCER).properties["partitioner"] == "murmur2_random"


def test_transactional_producers_have_no_longer_limit_than_their_transaction() -> None:
    """librdkafka refuses it; without a setting it follows the transaction's limit."""
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


def test_limits_the_caller_has_to_keep_are_handed_over() -> None:
    """They are not librdkafka's, and Java's largest number is no limit."""
    built = translate({"max.poll.records": "7", "max.block.ms": "9223372036854775807"}, CONSUMER)
    assert built.max_poll_records == 7
    assert built.max_block_ms is None
    assert not {"max.poll.records", "max.block.ms"} & set(built.properties)


@pytest.mark.parametrize(
    ("java", "part"),
    [
        ({"no.such.setting": "1"}, "'no.such.setting' is unknown"),
        ({"interceptor.classes": "a.B"}, "'interceptor.classes' has no effect"),
        ({"linger.ms": "1000000"}, "900000 is used"),
        ({"partitioner.class": "a.Mine"}, "The partitioner a.Mine is not available"),
    ],
)
def test_what_cannot_be_done_is_warned_about(java: dict[str, str], part: str) -> None:
    """The warning names the setting."""
    (warning,) = translate(java, PRODUCER).warnings
    assert part in warning


def test_settings_of_other_kinds_of_clients_are_dropped_silently() -> None:
    """A worker's unprefixed properties go to all of its clients."""
    assert translate({"fetch.min.bytes": "1"}, PRODUCER).warnings == ()
    assert "fetch.min.bytes" not in translate({"fetch.min.bytes": "1"}, PRODUCER).properties


def test_values_of_the_wrong_type_are_refused() -> None:
    """With Kafka's text."""
    with pytest.raises(ConfigException, match=r"configuration linger\.ms: Not a number"):
        translate({"linger.ms": "soon"}, PRODUCER)


PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="a" password="b c;\\"";'
)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        (
            {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN},
            {"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": 'b c;"'},
        ),
        (
            {
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.jaas.config": "o.ScramLoginModule required username=u password='p w';",
            },
            {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p w"},
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
                "sasl.jaas.config": (
                    'o.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="r" '
                    'extension_cluster="c";'
                ),
            },
            {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.client.id": "i",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "r",
                "sasl.oauthbearer.extensions": "cluster=c",
            },
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": (
                    'o.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="alice";'
                ),
            },
            {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": "principal=alice",
            },
        ),
    ],
)
def test_logins_are_read_from_jaas_entries(
    java: dict[str, str], librdkafka: dict[str, str]
) -> None:
    """Quotes and escapes are those of JAAS files."""
    built = translate(java | {"security.protocol": "SASL_PLAINTEXT"}, ADMIN)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka
    assert "sasl.jaas.config" not in built.properties


@pytest.mark.parametrize(
    "text", ["", "Module required", "Module maybe a=b;", "Module required a=;", 'M required a="b;']
)
def test_broken_jaas_entries_are_refused_without_showing_them(text: str) -> None:
    """The text says what is wrong, not what was written."""
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": text or ";",
    }
    with pytest.raises(ConfigException, match="hidden") as refused:
        translate(java, ADMIN)
    assert "Module maybe" not in str(refused.value)


@pytest.mark.parametrize(
    ("java", "librdkafka"),
    [
        ({"ssl.truststore.location": "/ca.pem"}, {"ssl.ca.location": "/ca.pem"}),
        (
            {"ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"},
            {"ssl.ca.location": "/ca"},
        ),
        ({"ssl.truststore.certificates": "-----BEGIN"}, {"ssl.ca.pem": "-----BEGIN"}),
        (
            {
                "ssl.keystore.key": "K",
                "ssl.keystore.certificate.chain": "C",
                "ssl.key.password": "p",
            },
            {"ssl.key.pem": "K", "ssl.certificate.pem": "C", "ssl.key.password": "p"},
        ),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.password": "p"},
        ),
        (
            {"ssl.endpoint.identification.algorithm": ""},
            {"ssl.endpoint.identification.algorithm": "none"},
        ),
    ],
)
def test_tls_settings_are_translated(java: dict[str, str], librdkafka: dict[str, str]) -> None:
    """PEM and PKCS#12, as files or texts."""
    built = translate(java | {"security.protocol": "SSL"}, ADMIN)
    assert {key: built.properties.get(key) for key in librdkafka} == librdkafka


@pytest.mark.parametrize("store", ["truststore", "keystore"])
def test_jks_files_are_refused_with_the_way_out(store: str) -> None:
    """librdkafka cannot read them; silence would end in an obscure handshake error."""
    with pytest.raises(ConfigException, match="keytool"):
        translate({"security.protocol": "SSL", f"ssl.{store}.location": "/s.jks"}, ADMIN)


def test_kafka_python_gets_the_same_network_and_login() -> None:
    """In its own argument names; what needs objects is handed over beside them."""
    worker_properties = dict(
        distributed(bootstrap_servers="a:1,b:2", request_timeout_ms="40000").originals
    )
    config = kafka_python_config(
        worker_properties
        | {
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": PLAIN,
            "ssl.truststore.location": "/ca.pem",
            "ssl.keystore.key": "K",
            "send.buffer.bytes": "-1",
            "receive.buffer.bytes": "100",
        },
        client_id="me",
    )
    assert config.arguments == {
        "bootstrap_servers": ["a:1", "b:2"],
        "client_id": "me",
        "request_timeout_ms": 40000,
        "receive_buffer_bytes": 100,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "a",
        "sasl_plain_password": 'b c;"',
        "ssl_cafile": "/ca.pem",
    }
    assert config.pem_key == "K"
    assert "b c" not in repr(config)


def test_librdkafka_properties_can_be_put_on_top() -> None:
    """For what only the caller knows, such as the end-of-partition events it needs."""
    config = ClientConfig(kind=CONSUMER, java_config={"group.id": "g"})
    assert config.build({"enable.partition.eof": "true"}).properties["enable.partition.eof"] == (
        "true"
    )
