"""Whether the members of a group agree on their leader's transactional id."""

from pyconnect_agent.core.assign.leader import LeaderIds
from pyconnect_agent.core.group_protocol import Subscription
from tests.support.cases import cases

KAFKAS = "connect-cluster-g"


def ids(own: str, *, fencing: bool = True) -> LeaderIds:
    return LeaderIds(own=own, apaches=KAFKAS, fencing=fencing)


def members(*told: str | None) -> dict[str, Subscription]:
    """Members `m0`, `m1`, … at `http://w0/`, `http://w1/`, …"""
    return {
        f"m{number}": Subscription(
            version=2, url=f"http://w{number}/", config_offset=0, leader_transactional_id=leader_id
        )
        for number, leader_id in enumerate(told)
    }


@cases(
    "own, told, others",
    (KAFKAS, (None, None), {}),
    (KAFKAS, (None, KAFKAS), {}),
    ("own", ("own", "own"), {}),
    ("own", ("own", None), {"http://w1/": KAFKAS}),
    ("own", ("own", "b", "own", "c"), {"http://w1/": "b", "http://w3/": "c"}),
    (KAFKAS, (None, "own"), {"http://w1/": "own"}),
)
def test_members_with_another_leader_id_are_named(
    own: str, told: tuple[str | None, ...], others: dict[str, str]
) -> None:
    """A member that names no leader id, such as a Java worker, leads under Kafka's id."""
    assert ids(own).others(members(*told)) == others


def test_an_id_counts_for_fencing_only() -> None:
    """At `disabled` no id is wrong; Kafka's own is not sent: subscriptions have Apache's bytes."""
    assert ids("own", fencing=False).others(members("own", None)) == {}
    assert ids(KAFKAS).told is None
    assert ids("own").told == "own"


def test_a_member_that_cannot_be_understood_is_named_by_its_member_id() -> None:
    """It has no URL, and it did not say the own id."""
    unreadable = {"m9": Subscription(version=0, url="", config_offset=-1)}
    assert ids("own").others(unreadable) == {"m9": KAFKAS}
