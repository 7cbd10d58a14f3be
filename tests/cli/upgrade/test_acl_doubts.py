"""Obstacles of an upgrade for which only the list of ACLs is known."""

from pyconnect_cli.acls.plan.check import check
from pyconnect_cli.upgrade.gather import acl_doubts
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import ClusterFacts, WorkerFacts
from pyconnect_clients.connect_names import Phase
from tests.support.cases import cases

PRINCIPAL = "User:connect"
WORKER = WorkerFacts(
    name="worker.properties",
    properties={
        "group.id": "g",
        "config.storage.topic": "c",
        "offset.storage.topic": "o",
        "status.storage.topic": "s",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' username="connect" password="x";',
    },
)


@cases(
    "super_users, only_listed, blocked, doubtful",
    (frozenset(), True, False, True),
    (frozenset(), False, True, False),
    (frozenset({PRINCIPAL}), False, False, False),
)
def test_a_principal_without_bindings_may_be_a_super_user(
    super_users: frozenset[str], only_listed: bool, blocked: bool, doubtful: bool
) -> None:
    """The file of a worker must not turn what is not known into a missing ACL."""
    evidence = Evidence(bindings={"": ()}, super_users=super_users)
    report = check(ClusterFacts(workers=(WORKER,)), Phase.PREPARING, evidence)
    blockers, unknown = acl_doubts(report, only_listed=only_listed)
    assert bool(blockers) is blocked
    assert any("name them with --super-user" in text for text in unknown) is doubtful
    assert not [text for text in unknown if "is not known" in text]
