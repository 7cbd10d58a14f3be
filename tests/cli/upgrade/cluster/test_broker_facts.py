"""The required settings of Connect's topics before an upgrade."""

from pyconnect_cli.upgrade.cluster.broker_facts import topic_findings
from tests.support.cases import cases


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
    """Problems refuse; that a broker may not be away is only told, and not where there is one."""
    problems, warnings = topic_findings(
        "t", single=single, replicas=replicas, policy=policy, least_in_sync=least
    )
    for found, expected in ((problems, problem), (warnings, warning)):
        assert len(found) == (1 if expected else 0)
        assert expected in "".join(found)
