"""librdkafka accepts translated properties, and logs of a client without a broker are rare."""

import logging
import time
from collections.abc import Mapping
from typing import Any

import pytest
import trustme
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from pyconnect_agent.core.clients.configs import (
    ClientConfig,
    InternalTopic,
    connector_admin,
    connector_producer,
    exactly_once_producer,
    fencing_producer,
    internal_consumer,
    internal_producer,
    leader_producer,
    shared_admin,
    sink_consumer,
    source_offsets_consumer,
)
from pyconnect_agent.core.clients.librdkafka import translate
from pyconnect_agent.core.config.client_keys import CLIENT_CONFIG_DEFS, ClientKind
from pyconnect_agent.kafka.clients import create_consumer
from pyconnect_clients.connections import with_token_callback
from pyconnect_sandbox.server import free_port
from tests.support.agents.worker_properties import distributed
from tests.support.cases import cases
from tests.support.eventually import eventually

pytestmark = pytest.mark.wire

CLIENTS = {
    ClientKind.PRODUCER: Producer,
    ClientKind.CONSUMER: Consumer,
    ClientKind.ADMIN: AdminClient,
}
WORKER = distributed(bootstrap_servers="127.0.0.1:1", exactly_once_source_support="enabled")


def construct(kind: ClientKind, properties: Mapping[str, str]) -> None:
    """Make a client that never connects; KafkaException names a property that it refuses."""
    client = CLIENTS[kind](with_token_callback(properties) | {"log_level": "0"})
    if isinstance(client, Consumer):
        client.close()


@cases(
    "config",
    *(internal_producer(WORKER, topic) for topic in InternalTopic),
    *(internal_consumer(WORKER, topic) for topic in InternalTopic),
    leader_producer(WORKER),
    shared_admin(WORKER),
    connector_producer(WORKER, {}, "id"),
    exactly_once_producer(WORKER, {}, "id", "jb-c-0"),
    sink_consumer(WORKER, "c", {}, "id"),
    source_offsets_consumer(WORKER, "c", {}, "id"),
    connector_admin(WORKER, {}, "id"),
    fencing_producer(WORKER, {}, "id", "jb-c-0"),
    ids=lambda config: f"{config.kind.name}-{config.java_config['client.id']}",
)
def test_every_client_of_the_worker_can_be_made(config: ClientConfig) -> None:
    """librdkafka accepts all clients with the worker's defaults, without a warning."""
    built = config.build()
    assert built.warnings == ()
    construct(config.kind, built.properties)


@pytest.mark.parametrize("kind", list(ClientKind))
def test_javas_defaults_written_out_are_accepted(kind: ClientKind) -> None:
    """librdkafka accepts Java's defaults written out, without a warning."""
    required = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
    keys = CLIENT_CONFIG_DEFS[kind].keys.values()
    defaults = {key.name: key.to_json()["default_value"] for key in keys}
    written = {name: text for name, text in defaults.items() if isinstance(text, str)}
    built = translate(written | required, kind)
    assert built.warnings == ()
    construct(kind, built.properties)


@cases("size", "100", "1000", "52428800", "500000000")
def test_any_size_of_fetch_is_accepted(size: str) -> None:
    """Any fetch size is accepted: the translation keeps the proportions of librdkafka."""
    java = {"group.id": "g", "fetch.max.bytes": size, "request.timeout.ms": "100"}
    construct(ClientKind.CONSUMER, translate(java, ClientKind.CONSUMER).properties)


@cases(
    "login",
    {
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'a.PlainLoginModule required username="u" password="p";',
    },
    {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": 'a.ScramLoginModule required username="u" password="p";',
    },
    {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": 'a.Module required unsecuredLoginStringClaim_sub="u";',
    },
    ids=lambda login: login["sasl.mechanism"],
)
def test_logins_are_accepted(login: dict[str, str]) -> None:
    """Logins work over TLS, with PEM texts for trust and identity."""
    authority = trustme.CA()
    identity = authority.issue_cert("localhost")
    java = login | {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.certificates": authority.cert_pem.bytes().decode(),
        "ssl.keystore.key": identity.private_key_pem.bytes().decode(),
        "ssl.keystore.certificate.chain": identity.cert_chain_pems[0].bytes().decode(),
        "ssl.endpoint.identification.algorithm": "https",
    }
    for kind in ClientKind:
        built = translate(java | {"group.id": "g"}, kind)
        assert built.warnings == ()
        construct(kind, built.properties)


def test_an_unreachable_broker_is_logged_at_intervals(caplog: pytest.LogCaptureFixture) -> None:
    """An unreachable broker is logged at intervals, though librdkafka tries all the time."""
    address = f"127.0.0.1:{free_port()}"
    config: dict[str, Any] = {"bootstrap.servers": address, "group.id": "unused"}

    def told() -> list[str]:
        found = [record for record in caplog.records if address in str(record.__dict__)]
        assert {record.message for record in found} <= {"Kafka client reported an error"}
        return [vars(record)["error"] for record in found]

    with caplog.at_level(logging.DEBUG):
        consumer = create_consumer(config)
        eventually(lambda: consumer.poll(0.05) is None and "_TRANSPORT" in told(), 20, told)
        end_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            consumer.poll(0.05)
        consumer.close()
    assert len(told()) == len(set(told()))
