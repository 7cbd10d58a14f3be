"""The prediction from listed ACLs equals the decision of a broker's StandardAuthorizer.

Hundreds of names, each with entries that a seed picked: literal, prefixed and `*`, allowing and
denying, for the user, for another and for all users, from any host and from single ones.
"""

import random
from collections.abc import Iterator

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
from pyconnect_agent.kafka.acl_probes import AclProbes
from pyconnect_cli.acls.plan.check import Authorizer
from pyconnect_cli.kafka.admin import KafkaAccess, connected, list_acls
from pyconnect_clients.acls.model import (
    Access,
    GrantOperation,
    GrantVerdict,
    Resource,
    ResourceType,
)
from tests.support.eventually import eventually
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
    """One entry about this name, or about a part of its beginning."""
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
    """Every answer of the broker to the user itself, about hundreds of resources."""
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
        """A broker learns of new entries a little later."""
        found[:] = differences(secured, user, needs)
        return not found

    eventually(decided_alike, describe=lambda: f"seed {seed}: {found}")


def differences(secured: SecuredBroker, user: str, needs: list[Access]) -> list[str]:
    """Return the cases in which the prediction differs from the broker's answer.

    A broker reveals nothing else about a resource that may not be described.
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
