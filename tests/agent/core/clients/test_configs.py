"""Client configurations in Java's keys, layer upon layer."""

import pytest

from pyconnect_agent.core.clients.configs import (
    InternalTopic,
    connector_admin,
    connector_producer,
    exactly_once_producer,
    fencing_producer,
    internal_consumer,
    internal_producer,
    leader_producer,
    sink_consumer,
    source_offsets_consumer,
)
from pyconnect_agent.core.clients.librdkafka import translate
from pyconnect_agent.core.config.client_keys import ClientKind
from pyconnect_agent.core.config.worker_config import DistributedConfig
from pyconnect_api import ConfigException
from pyconnect_clients.connect_names import sink_group_id
from tests.support.agents.worker_properties import PROPERTIES
from tests.support.cases import cases


def worker(**properties: str) -> DistributedConfig:
    """Return a worker's configuration; two underscores in names stand for a dot."""
    changed = {name.replace("__", "."): value for name, value in properties.items()}
    return DistributedConfig.parse(PROPERTIES | changed)


def test_overrides_are_the_last_layer_and_may_be_forbidden() -> None:
    """After the framework and the worker's `producer.`; the policy counts at start too."""
    config = connector_producer(
        worker(producer__linger__ms="5", producer__acks="1"), {"producer.override.acks": "0"}, "id"
    ).java_config
    assert (config["acks"], config["linger.ms"], config["client.id"]) == ("0", "5", "id")
    assert config["max.in.flight.requests.per.connection"] == "1"
    strict = worker(connector__client__config__override__policy="None")
    with pytest.raises(ConfigException, match="Client Config Overrides not allowed"):
        connector_producer(strict, {"producer.override.acks": "0"}, "i")


def test_clients_inherit_brokers_and_hide_secrets() -> None:
    """Admin clients inherit security too; no text form shows a secret."""
    secured = worker(
        bootstrap__servers="b:1", security__protocol="SSL", producer__security__protocol="SASL_SSL"
    )
    assert connector_producer(secured, {}, "i").java_config["security.protocol"] == "SASL_SSL"
    assert "security.protocol" not in sink_consumer(secured, "c", {}, "i").java_config
    assert connector_admin(secured, {}, "i").java_config["security.protocol"] == "SSL"
    assert connector_producer(secured, {}, "i").java_config["bootstrap.servers"] == "b:1"
    config = connector_producer(worker(), {"producer.override.sasl.jaas.config": "hunter22"}, "i")
    assert "hunter22" not in repr(config)
    built = translate(
        {"ssl.key.password": "hunter22", "security.protocol": "SSL"}, ClientKind.PRODUCER
    )
    assert "hunter22" not in repr(built)


def test_internal_producers_are_never_transactional_by_accident() -> None:
    """A worker-wide transactional id is taken out."""
    for topic in InternalTopic:
        config = internal_producer(worker(transactional__id="x"), topic).java_config
        assert "transactional.id" not in config
        assert config["enable.idempotence"] == "false"
    statuses = internal_producer(worker(), InternalTopic.STATUSES).java_config
    assert statuses["retries"] == "0"
    assert statuses["client.id"] == "jb-statuses"


def test_the_leaders_transactional_id_has_a_key_of_its_own() -> None:
    """`transactional.id` is ignored with a warning, also beside the agent's key."""
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
    config = leader_producer(worker(agent__leader__transactional__id="own"))
    assert (config.java_config["transactional.id"], config.warnings) == ("own", ())
    both = leader_producer(worker(agent__leader__transactional__id="own", transactional__id="mine"))
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


def test_exactly_once_producers_are_idempotent_with_any_setting_of_the_user() -> None:
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
        assert sink_group_id("c", config, configured.originals) == group
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


TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"


@cases("url", "https://own/token", "https://listed/token")
def test_a_connector_has_tokens_fetched_from_urls_of_the_worker(url: str) -> None:
    """From one of its clients, or from its list."""
    allowing = worker(
        **{f"producer.{TOKEN_URL}": "https://own/token"},
        **{"agent.oauthbearer.allowed.urls": "https://listed/token"},
    )
    overrides = {f"producer.override.{TOKEN_URL}": url}
    assert connector_producer(allowing, overrides, "c").java_config[TOKEN_URL] == url


@cases("url", "file:///etc/shadow", "http://169.254.169.254/", "https://own/")
def test_a_connector_cannot_have_other_urls_read(url: str) -> None:
    """The error names the key of the worker that could allow it."""
    strict = worker(**{TOKEN_URL: "https://own/token"})
    overrides = {f"producer.override.{TOKEN_URL}": url}
    with pytest.raises(ConfigException, match=r"agent\.oauthbearer\.allowed\.urls"):
        connector_producer(strict, overrides, "c")
