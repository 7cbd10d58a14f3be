"""The broker's properties for the requested options."""

from collections.abc import Mapping
from pathlib import Path

from pyconnect_sandbox.broker import (
    BrokerSecurity,
    NodePorts,
    internal_topics,
    random_cluster_id,
    sasl_properties,
    scram_format_arguments,
    server_properties,
)


def properties_of(
    *,
    security: BrokerSecurity | None = None,
    sasl_port: int | None = None,
    voters: Mapping[int, int] | None = None,
    overrides: Mapping[str, str] | None = None,
) -> dict[str, str]:
    return server_properties(
        node_id=1,
        ports=NodePorts(plaintext=9092, controller=9093, sasl=sasl_port),
        voters=voters or {1: 9093},
        data_directory=Path("/data"),
        security=security or BrokerSecurity(),
        overrides=overrides or {},
    )


def test_listeners_are_on_the_loopback_address_only() -> None:
    """No other host reaches a sandbox; the controller is not advertised."""
    listeners = properties_of(sasl_port=9094)["listeners"].split(",")
    assert len(listeners) == 3
    assert all("://127.0.0.1:" in listener for listener in listeners)
    assert "CONTROLLER" not in properties_of(sasl_port=9094)["advertised.listeners"]


def test_an_authorizer_needs_acls_and_has_super_users() -> None:
    """Plaintext clients and named principals are super users; without ACLs there are none."""
    assert "authorizer.class.name" not in properties_of()
    security = BrokerSecurity(acl=True, super_users=("User:root",))
    assert properties_of(security=security)["super.users"] == "User:ANONYMOUS;User:root"


def test_internal_topics_have_a_replica_on_each_of_three_brokers() -> None:
    """A cluster's coordinators survive the loss of any one broker."""
    alone = properties_of()
    cluster = properties_of(voters={1: 1, 2: 2, 3: 3})
    assert alone["offsets.topic.replication.factor"] == "1"
    assert alone["transaction.state.log.min.isr"] == "1"
    assert cluster["offsets.topic.replication.factor"] == "3"
    assert cluster["transaction.state.log.min.isr"] == "2"
    assert cluster["controller.quorum.voters"] == "1@127.0.0.1:1,2@127.0.0.1:2,3@127.0.0.1:3"


def test_a_cluster_id_is_never_taken_for_an_option() -> None:
    """None of many ids starts with a dash, and all have Kafka's 22 characters."""
    ids = {random_cluster_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(cluster_id) == 22 and not cluster_id.startswith("-") for cluster_id in ids)


def test_given_properties_and_passwords_are_kept() -> None:
    """Given properties replace the sandbox's, also for internal topics; passwords keep quotes."""
    properties = properties_of(overrides={"offsets.topic.num.partitions": "7"})
    expected = {"__consumer_offsets": 7, "__transaction_state": 5}
    assert {topic.name: topic.partitions for topic in internal_topics(properties)} == expected
    jaas = sasl_properties({"alice": 'a"b\\c'})["listener.name.sasl.plain.sasl.jaas.config"]
    assert jaas.endswith('required user_alice="a\\"b\\\\c";')


def test_every_user_gets_both_scram_mechanisms() -> None:
    """StorageTool gets each user once for each mechanism."""
    expected = [f'SCRAM-SHA-{n}=[name="alice",password="secret"]' for n in (256, 512)]
    arguments = scram_format_arguments({"alice": "secret"})
    assert arguments == ["--add-scram", expected[0], "--add-scram", expected[1]]
