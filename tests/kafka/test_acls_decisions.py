"""The prediction from listed ACLs equals the decision of a broker's StandardAuthorizer.

There are hundreds of names, each with entries picked by a seed: literal, prefixed and `*`, allowing
and denying, for the user, for another and for all users, from any host and from single ones.
Further tests check the errors of clients with few rights: a transactional producer, a snapshot.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import admin as kafka_admin
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
)

from pyconnect_agent.core.clients.configs import kafka_python_config
from pyconnect_agent.core.errors import AuthorizationError
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_agent.kafka.task_producer import CLIENT_ERRORS, TransactionalProducer
from pyconnect_agent.tasks.trace import is_permanent
from pyconnect_cli.acls.plan.check import Authorizer
from pyconnect_cli.acls.plan.grants import Grant
from pyconnect_cli.kafka.admin import KafkaAccess, connected, list_acls
from pyconnect_clients.acls.model import (
    Access,
    GrantOperation,
    GrantVerdict,
    Pattern,
    Resource,
    ResourceType,
)
from pyconnect_reconcile.errors import ReconcileError
from pyconnect_reconcile.spec import Cluster
from pyconnect_reconcile.topics.cluster_view import ClusterView
from pyconnect_reconcile.topics.snapshot import UNKNOWN_POLICY
from tests.support.eventually import eventually
from tests.support.names import unique_name
from tests.support.seeds import picked_seed
from tests.support.servers.secured import SecuredBroker, sasl

pytestmark = pytest.mark.kafka

NAMES = 120
HOST = "127.0.0.1"
KINDS = {
    ResourceType.TOPIC: kafka_admin.ResourceType.TOPIC,
    ResourceType.GROUP: kafka_admin.ResourceType.GROUP,
    ResourceType.TRANSACTIONAL_ID: kafka_admin.ResourceType.TRANSACTIONAL_ID,
}
ASKED = {
    ResourceType.TOPIC: ("Read", "Write", "Create", "Delete", "Describe", "DescribeConfigs"),
    ResourceType.GROUP: ("Read", "Delete", "Describe"),
    ResourceType.TRANSACTIONAL_ID: ("Write",),
}
LISTED = (ResourceType.TOPIC, ResourceType.GROUP)
GRANTED = {
    ResourceType.TOPIC: ("ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER_CONFIGS", "DESCRIBE"),
    ResourceType.GROUP: ("ALL", "READ", "DELETE", "DESCRIBE"),
    ResourceType.TRANSACTIONAL_ID: ("ALL", "WRITE", "DESCRIBE"),
}


def picked(pick: random.Random, kind: ResourceType, name: str, user: str) -> AclBinding:
    """Return an entry about this name, or about a prefix of it."""
    pattern = pick.choice([ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED])
    if pattern is ResourcePatternType.PREFIXED:
        name = name[: pick.randint(len(name) - 3, len(name))]
    elif pick.random() < 0.2:
        # A star within a name is a character.
        name = name[:-1] + "*"
    return AclBinding(
        KINDS[kind],
        name,
        pattern,
        pick.choice([f"User:{user}", f"User:{user}", "User:other", "User:*"]),
        pick.choice(["*", "*", HOST, "10.1.2.3"]),
        AclOperation[pick.choice(GRANTED[kind])],
        pick.choice([AclPermissionType.ALLOW, AclPermissionType.ALLOW, AclPermissionType.DENY]),
    )


def entries(pick: random.Random, user: str) -> Iterator[AclBinding]:
    for kind in KINDS:
        for number in range(NAMES):
            for _ in range(pick.randint(0, 4)):
                yield picked(pick, kind, f"decided-{number:03}", user)
    for kind, operation in (
        (kafka_admin.ResourceType.TOPIC, "DELETE"),
        (kafka_admin.ResourceType.GROUP, "DELETE"),
    ):
        yield AclBinding(
            kind, "*", ResourcePatternType.LITERAL, f"User:{user}", "*",
            AclOperation[operation], AclPermissionType.ALLOW,
        )  # fmt: skip


def test_predictions_are_the_brokers_decisions(secured: SecuredBroker) -> None:
    """The broker decides as predicted for each operation of the user on hundreds of resources."""
    seed = picked_seed()
    user = secured.user()
    bindings = list(dict.fromkeys(entries(random.Random(seed), user)))
    admin = AdminClient({"bootstrap.servers": secured.plaintext})
    secured.create_topics(*(f"decided-{number:03}" for number in range(NAMES)))
    for future in admin.create_acls(bindings).values():
        future.result(60)
    needs = [
        Access(GrantOperation(operation), Resource(kind, f"decided-{number:03}"))
        for kind in KINDS
        for number in range(NAMES)
        for operation in ASKED[kind]
    ]
    found: list[str] = []

    def decided_alike() -> bool:
        """Return whether the decisions are equal, once the broker has read the new entries."""
        found[:] = differences(secured, user, needs)
        return not found

    eventually(decided_alike, describe=lambda: f"seed {seed}: {found}")


def differences(secured: SecuredBroker, user: str, needs: list[Access]) -> list[str]:
    """Return the cases in which the prediction differs from the broker's answer.

    A broker reveals nothing else about a resource that the user may not describe.
    """
    with connected(KafkaAccess(bootstrap=secured.plaintext), lambda: 30.0) as protocol:
        listed = list_acls(protocol).bindings
    assert listed is not None
    authorizer = Authorizer(listed)
    config = kafka_python_config(
        {"bootstrap.servers": secured.sasl, **sasl(user)}, client_id="decisions"
    )
    with AclProbes(config, 30_000) as probes:
        answers = probes.ask(needs)
    found = []
    for need, (verdict, evidence) in answers.items():
        operation, resource = need
        decision = authorizer.decide(f"User:{user}", operation, resource, HOST)
        describe = GrantOperation.DESCRIBE
        shown = authorizer.decide(f"User:{user}", describe, resource, HOST).allowed
        if not shown and operation is not describe and resource.type in LISTED:
            continue
        assert verdict is not GrantVerdict.UNKNOWN, (need, evidence)
        if decision.allowed is not (verdict is GrantVerdict.PROVEN):
            found.append(f"{need}: {decision.reason}; the broker: {evidence}")
    return found


class Refused:
    """A user's producer and one grant on its transactional id."""

    def __init__(self, secured: SecuredBroker) -> None:
        self.secured = secured
        self.topic, transactional_id = unique_name("refused"), unique_name("id")
        user = secured.user()
        secured.create_topics(self.topic, cleanup_policy="delete")
        resource = Resource(ResourceType.TRANSACTIONAL_ID, transactional_id)
        self.grant = Grant(
            secured.sasl, f"User:{user}", resource, Pattern.LITERAL, GrantOperation.WRITE
        )
        self._config = {**secured.client(user), "transactional.id": transactional_id}
        self.producer = self._new()

    def start(self) -> None:
        """Initialise producers until the broker knows the grant; a denial ends a producer."""
        self.secured.grant([self.grant])
        eventually(self._starts)

    def _starts(self) -> bool:
        self.producer = self._new()
        try:
            return self.producer.init(lambda: False)
        except AuthorizationError:
            return False

    def _new(self) -> TransactionalProducer:
        return TransactionalProducer(self._config, max_block_ms=30_000)


def test_a_transactional_id_that_is_denied_is_named(secured: SecuredBroker) -> None:
    """The error at the start of the task names the denied transactional id."""
    refused = Refused(secured)
    with pytest.raises(AuthorizationError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED") as raised:
        refused.producer.init(lambda: False)
    assert is_permanent(raised.value)


def test_a_topic_that_is_denied_is_named_when_the_transaction_is_committed(
    secured: SecuredBroker,
) -> None:
    """The commit names the denied topic: the client drops its records without an error."""
    refused = Refused(secured)

    def record_is_queued() -> bool:
        refused.start()
        refused.producer.begin()
        try:
            refused.producer.produce(refused.topic, b"x")
        except CLIENT_ERRORS:
            return False  # The answer about the topic was quicker than the call.
        return True

    eventually(record_is_queued)
    with pytest.raises(AuthorizationError, match=refused.topic) as raised:
        refused.producer.commit([refused.topic])
    assert "TOPIC_AUTHORIZATION_FAILED" in str(raised.value)
    assert "see individual delivery reports" in str(raised.value.__cause__)
    assert is_permanent(raised.value)
    refused.producer.close(0)


def test_a_right_that_is_taken_back_is_named_where_a_record_is_refused(
    secured: SecuredBroker,
) -> None:
    """The refused record names the revoked right, where the client reports `fatal error` alone."""
    refused = Refused(secured)
    topic = Resource(ResourceType.TOPIC, refused.topic)
    secured.grant([refused.grant._replace(resource=topic)])
    refused.start()
    secured.revoke(refused.grant)
    refused.producer.begin()
    found: list[BaseException] = []

    def record_is_refused() -> bool:
        try:
            refused.producer.produce(refused.topic, b"x")
        except CLIENT_ERRORS as exc:
            found.append(exc)
        return bool(found)

    eventually(record_is_refused)
    assert "Fatal error" in str(found[0])
    explained = refused.producer.explain(found[0], refused.topic, 1)
    assert isinstance(explained, AuthorizationError)
    assert "AUTHORIZATION_FAILED" in str(explained)
    refused.producer.close(0)


WAIT_S = 150


def test_the_cleanup_policy_is_unknown_without_describe_configs(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """Offsets are read without the right; with it the topic is known to be compacted."""
    topic, user = unique_name("audited"), secured.user()
    secured.create_topics(topic)
    properties = tmp_path / "client.properties"
    properties.write_text("".join(f"{key}={value}\n" for key, value in sasl(user).items()))
    cluster = Cluster(bootstrap=secured.sasl, properties=str(properties))

    def may(operation: GrantOperation) -> None:
        resource = Resource(ResourceType.TOPIC, topic)
        secured.grant([Grant("", f"User:{user}", resource, Pattern.LITERAL, operation)])

    def policy() -> str | None:
        try:
            [found] = ClusterView(cluster).snapshot([topic]).topics
        except ReconcileError:
            # The broker does not know of the grants yet.
            return None
        return found.cleanup_policy

    may(GrantOperation.DESCRIBE)
    may(GrantOperation.READ)
    eventually(lambda: policy() == UNKNOWN_POLICY, WAIT_S)
    may(GrantOperation.DESCRIBE_CONFIGS)
    eventually(lambda: policy() == "compact", WAIT_S)
