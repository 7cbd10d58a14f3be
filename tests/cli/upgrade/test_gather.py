"""Facts for a plan: settings of Connect's topics, and ACLs that are only listed."""

from pyconnect_cli.acls.plan.check import check
from pyconnect_cli.upgrade.gather import acl_doubts, topic_findings
from pyconnect_clients.acls.model import Evidence
from pyconnect_clients.acls.needs import ClusterFacts
from pyconnect_clients.connect_names import Phase
from tests.support.cases import cases
from tests.support.servers.secured import WORKER


@cases(
    "replicas, policy, least, single, problem, warning",
    ([(3, 3)], "compact", 2, True, "", ""),
    ([(1, 1)], "compact", 1, True, "", ""),
    ([(3, 3)] * 25, "compact", 2, False, "", ""),
    ([(3, 3)] * 2, "compact", 2, True, "t has 2 partitions; it must have one", ""),
    ([(3, 3)], "compact,delete", 2, False, "t has cleanup.policy=compact,delete", ""),
    ([(3, 1), (3, 3)], "compact", 2, False, "1 partition of t with fewer than 2", ""),
    ([(2, 2)], "compact", 2, False, "", "t has min.insync.replicas=2 and 2 replicas"),
)
def test_a_topic_of_connect(
    replicas: list[tuple[int, int]],
    policy: str,
    least: int,
    single: bool,
    problem: str,
    warning: str,
) -> None:
    """A wrong setting is a problem; min.insync.replicas equal to several replicas is a warning."""
    problems, warnings = topic_findings(
        "t", single=single, replicas=replicas, policy=policy, least_in_sync=least
    )
    for found, expected in ((problems, problem), (warnings, warning)):
        assert len(found) == (1 if expected else 0)
        assert expected in "".join(found)


@cases(
    "super_users, only_listed, blocked, doubtful",
    (frozenset(), True, False, True),
    (frozenset(), False, True, False),
    (frozenset({"User:worker"}), False, False, False),
)
def test_a_principal_without_bindings_may_be_a_super_user(
    super_users: frozenset[str], only_listed: bool, blocked: bool, doubtful: bool
) -> None:
    """A principal without bindings may be a super user, so its grants count as unknown."""
    evidence = Evidence(bindings={"": ()}, super_users=super_users)
    report = check(ClusterFacts(workers=(WORKER,)), Phase.PREPARING, evidence)
    blockers, unknown = acl_doubts(report, only_listed=only_listed)
    assert bool(blockers) is blocked
    assert any("name them with --super-user" in text for text in unknown) is doubtful
    assert not [text for text in unknown if "is not known" in text]
